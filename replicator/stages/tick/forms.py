"""How the records of one table are decoded: the groups of a survey -> forms (debezium.md A2, A3, G2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.debezium import type_inference
from replicator.debezium.logical_types import LogicalType
from replicator.debezium.schema import Example, Form, build_form, lacks_schema, row_columns, untyped_examples
from replicator.spec import Declaration
from replicator.transforms.columns import encodings
from replicator.transforms.columns.encodings import Encodings
from replicator.transforms.columns.layout import index_by_case, type_family, version_of
from replicator.transforms.merge import SYSTEM_COLUMNS


def from_groups(
    groups: Sequence[Row],
    rows: DataFrame,
    declaration: Declaration,
    stored: StructType | None,
    noted: Callable[[], Encodings] = dict,
) -> tuple[list[Form], set[str]]:
    """Return the forms of the groups, and the columns whose types nothing describes. ``rows`` are the groups' records,
    ``noted`` returns the known encodings of the table's columns.
    """
    examples = list(map(_example, {group["form"]: group for group in groups}.values()))
    unknown = untyped_examples(examples, declaration)
    described = encodings.from_forms(
        build_form(example, declaration, {}) for example in examples if example not in unknown
    )
    if stored is not None:
        has_untyped = any(lacks_schema(example) for example in examples)
        known = known_types(stored, encodings.combine(noted(), described)) if has_untyped else {}
        return [build_form(example, declaration, known) for example in examples], set()
    known, typed_names = _types_of_new(described), {names.decode(name).casefold() for name, _ in described}
    typed_names |= {column.name.casefold() for column in declaration.columns}
    own = {name for example in unknown for name in row_columns(example, declaration)}
    guessed = {name for name in own if name.casefold() not in typed_names}
    if unknown:
        known |= {name: logical for name, logical in _inferred(rows, unknown).items() if name in guessed}
    return [build_form(example, declaration, known) for example in examples], guessed


def _example(group: Row) -> Example:
    """Return the record that represents a group."""
    return Example(
        group["form"],
        group["flat"],
        group["wrapped"],
        group["key_wrapped"],
        group["value"] or "{}",
        group["key"],
        tuple(group["key_names"] or ()),
        tuple(group["row_names"] or ()),
    )


def known_types(stored: StructType, noted: Encodings) -> dict[str, LogicalType]:
    """Return the types that the table's own columns give for columns that nothing else describes: of each the newest
    version, if the encoding of its values is known.
    """
    known: dict[str, LogicalType] = {}
    own = [column for column in stored if column.name not in SYSTEM_COLUMNS]
    noted = encodings.unify_case(noted, (version_of(column.name)[0] for column in own))
    for column in sorted(own, key=lambda each: version_of(each.name)[1]):
        first, kind = version_of(column.name)[0], column.dataType.simpleString()
        known.pop(names.decode(first), None)
        logical = encodings.resolve_type(noted.get((first, type_family(kind))), kind)
        if logical is not None:
            known[names.decode(first)] = logical
    return known


def _types_of_new(described: Encodings) -> dict[str, LogicalType]:
    """Return the types that typed records of a table that does not exist yet give for untyped ones; none where they
    differ.
    """
    described = encodings.unify_case(described)
    kinds = Counter(name for name, _ in described)
    found = {name: encodings.parse(form) for (name, _), form in described.items() if kinds[name] == 1}
    return {names.decode(name): logical for name, logical in found.items() if logical is not None}


def _inferred(rows: DataFrame, examples: Sequence[Example]) -> Mapping[str, LogicalType]:
    """Infer types from the whole first range (architecture 9.7)."""
    found: set[tuple[str, str]] = set()
    paths = defaultdict[tuple[str, ...], list[int]](list)
    for example in examples:
        paths[build_form(example, Declaration(""), {}).path].append(example.form)
    for path, ids in paths.items():
        texts = rows.where(F.col("form").isin(*ids)).select("value").rdd.map(lambda row: str(row[0]))
        found.update(texts.mapPartitions(partial(type_inference.field_kinds, path=path)).collect())
    spelling = index_by_case(name for name, _ in sorted(found))
    return type_inference.resolve_types({(spelling[name.casefold()], kind) for name, kind in found})
