"""Forms: groups of records that are decoded alike, and the fields of each (debezium.md A2, A3, G2).

Types come from the record's own schema block; without one from the declaration, then from the existing table, then
from inference (types.md Y3). A declaration also adds what a schema block cannot express: see :func:`refine_types`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replicator.debezium.connect_schema import fields_of, row_fields
from replicator.debezium.logical_types import Field, LogicalType, spark_type
from replicator.debezium.type_parser import parse_type
from replicator.errors import SchemaRefused
from replicator.spec import CHANGE, Column, Declaration

METADATA_PREFIX = "__"

_REFINEMENTS = frozenset({("bigint", LogicalType("bigint", unsigned=True)), ("smallint", LogicalType("boolean"))})
"""Pairs of a schema block's type and the declared type that may refine it: a BIGINT UNSIGNED arrives as signed
(section 5), and MySQL's TINYINT(1) as a number from a snapshot but as a boolean from the stream (section 2).
"""

_CHANGE = (Field(CHANGE, LogicalType("string")),)

_IN_TEXTS = ("text", "hex", "base64text", "base64url")
"""Encodings of decimals and bytes whose schema block says no more than string (section 2)."""


@dataclass(frozen=True)
class Example:
    """One record of a form, as text. ``row_names`` are its columns where no schema block names them."""

    form: int
    flat: bool
    wrapped: bool
    key_wrapped: bool
    value: str
    key: str | None
    key_names: tuple[str, ...]
    row_names: tuple[str, ...]


@dataclass(frozen=True)
class Form:
    """How to decode the records of one form.

    ``fields`` are the row's columns, ``key_fields`` those of the Kafka key, ``image_fields`` those that ``before`` may
    have: a delete without a schema block has no row to take them from. ``raw`` names columns that neither a schema nor
    a declaration describes and that are therefore kept as exact text (types.md Y15, Y16). The key of an ``appended``
    row is the change that inserted it, whatever key its record has.
    """

    id: int
    path: tuple[str, ...]
    key_path: tuple[str, ...]
    fields: tuple[Field, ...]
    key_fields: tuple[Field, ...]
    image_fields: tuple[Field, ...] = ()
    raw: frozenset[str] = frozenset()
    appended: bool = False

    @property
    def is_flat(self) -> bool:
        """Whether the row is the record itself and not an envelope's ``after``."""
        return self.path[-1:] != ("after",)


def build_form(example: Example, declaration: Declaration, known: Mapping[str, LogicalType]) -> Form:
    """Build the form of an example. ``known`` holds the types of columns that only the existing table describes. Raises
    SchemaRefused if a column has the name of the key that append-only tables get.
    """
    payload = ("payload",) if example.wrapped else ()
    known = _match_case(known, example)
    path = payload if example.flat else (*payload, "after")
    declared = _match_case(declared_types(declaration.columns), example)
    fields, raw = _schema_fields(example, declared), frozenset[str]()
    image_fields = fields or ()
    if fields is None:
        image_fields, raw = _untyped_fields(example, declared, known)
        fields = tuple(field for field in image_fields if field.name in example.row_names)
    by_name = {field.name: field for field in fields}
    if declaration.append_only and CHANGE in by_name:
        raise SchemaRefused(
            f"it has its own column {CHANGE}, which is the key of an append-only table",
            where=declaration.table,
            fix="Rename the column at the connector (`ReplaceField`).",
        )
    return Form(
        id=example.form,
        path=path,
        key_path=("payload",) if example.key_wrapped else (),
        fields=fields,
        key_fields=_CHANGE if declaration.append_only else _key(example, declared, by_name, known),
        image_fields=image_fields,
        raw=raw,
        appended=declaration.append_only,
    )


def row_columns(example: Example, declaration: Declaration) -> tuple[str, ...]:
    """The columns of a record's row where no schema block names them, without those that describe the change (F4)."""
    declared = {column.name for column in declaration.columns}
    return tuple(name for name in example.row_names if not (example.flat and _is_metadata(name, declared)))


def _match_case(types: Mapping[str, LogicalType], example: Example) -> Mapping[str, LogicalType]:
    """Types by name, with names in the case that the example has: names that differ in case are one column (G4). If it
    has both, as tables may of letters beyond ASCII, each has its own type.
    """
    block = _block(example)
    own = [*example.row_names, *example.key_names, *(each.name for each in (row_fields(block) if block else ()))]
    there = {name.casefold(): name for name in own} | {name: name for name in own}
    return {there.get(name, there.get(name.casefold(), name)): logical for name, logical in types.items()}


def refine_types(fields: Iterable[Field], declared: Mapping[str, LogicalType]) -> tuple[Field, ...]:
    """Fields of a schema block, refined by what the declaration says and a schema block cannot express."""
    return tuple(
        replace(field, logical=declared[field.name])
        if field.name in declared and _refines(declared[field.name], field.logical)
        else field
        for field in fields
    )


def _refines(declared: LogicalType, described: LogicalType) -> bool:
    if declared.element is not None and described.element is not None:
        return _refines(declared.element, described.element)
    is_text = described.name == "string" and declared.encoding in _IN_TEXTS
    is_sized = described == replace(declared, precision=None, scale=None) and described.name == "variable_decimal"
    return is_text or is_sized or (str(described), declared) in _REFINEMENTS


def overridden_columns(forms: Iterable[Form], declaration: Declaration) -> frozenset[str]:
    """Declared columns that have another type in silver because of a schema block (types.md Y3)."""
    types = declared_types(declaration.columns)
    declared = {name.casefold(): (name, spark_type(logical)) for name, logical in types.items()}
    fields = [field for form in forms for field in form.fields]
    found = ((*declared[field.name.casefold()], field) for field in fields if field.name.casefold() in declared)
    return frozenset(name for name, kind, field in found if spark_type(field.logical) != kind)


def _schema_fields(example: Example, declared: Mapping[str, LogicalType]) -> tuple[Field, ...] | None:
    """The columns that the record's own schema block names; None without one."""
    block = _block(example)
    if block is None:
        return None
    own = (field for field in row_fields(block) if not (example.flat and _is_metadata(field.name, declared)))
    return refine_types(own, declared)


def _block(example: Example) -> dict[str, Any] | None:
    block = json.loads(example.value).get("schema") if example.wrapped else None
    return block if isinstance(block, dict) else None


def _untyped_fields(
    example: Example, declared: Mapping[str, LogicalType], known: Mapping[str, LogicalType]
) -> tuple[tuple[Field, ...], frozenset[str]]:
    """Every column that a record without a schema block may have, the example's first, and which of them are raw."""
    fields: list[Field] = []
    raw: set[str] = set()
    columns = dict.fromkeys((*example.row_names, *declared, *known))
    for name in columns:
        if example.flat and _is_metadata(name, declared):
            continue
        logical = declared.get(name) or known.get(name)
        if logical is None or (name not in declared and logical.name == "string"):
            raw.add(name)
            logical = LogicalType("string")
        fields.append(Field(name, logical))
    return tuple(fields), frozenset(raw)


def _key(
    example: Example, declared: Mapping[str, LogicalType], row: Mapping[str, Field], known: Mapping[str, LogicalType]
) -> tuple[Field, ...]:
    block = _key_block(example)
    if block is not None:
        # the source's own types are propagated to the row's schema only
        of_row = {name: field.logical for name, field in row.items()}
        return refine_types(fields_of(block), {**known, **of_row, **declared})

    def field(name: str) -> Field:
        if name in row:
            return replace(row[name], name=name)
        return Field(name, declared.get(name) or known.get(name) or LogicalType("string"))

    return tuple(field(name) for name in example.key_names)


def _key_block(example: Example) -> dict[str, Any] | None:
    block = json.loads(example.key).get("schema") if example.key is not None and example.key_wrapped else None
    return block if isinstance(block, dict) and block.get("type") == "struct" else None


def declared_types(columns: Iterable[Column]) -> dict[str, LogicalType]:
    """The types of declared columns, by name."""
    return {column.name: parse_type(column.type, unsigned=column.unsigned) for column in columns}


def _is_metadata(name: str, declared: Collection[str]) -> bool:
    """Whether ExtractNewRecordState added the field (F4): it describes the change, not the row. A declared column may
    have such a name, too.
    """
    return name.startswith(METADATA_PREFIX) and name not in declared


def lacks_schema(example: Example) -> bool:
    """Whether the row or the key has no schema block that gives its types."""
    has_key = example.key is None or _key_block(example) is not None
    return _block(example) is None or not has_key


def untyped_examples(examples: Sequence[Example], declaration: Declaration) -> list[Example]:
    """Examples with a column that neither a schema block nor the declaration describes."""
    declared = {column.name.casefold() for column in declaration.columns}

    def is_typed(name: str) -> bool:
        return name.casefold() in declared or _is_metadata(name, declared)

    return [each for each in examples if _block(each) is None and not all(map(is_typed, each.row_names))]
