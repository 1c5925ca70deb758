"""How the records of one table are to be decoded: from the groups of a survey to forms (debezium.md A2, A3, G2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.debezium import infer
from replicator.debezium.logical import Logical, parse_logical, spark_type
from replicator.debezium.schema import Example, Form, form, undescribed
from replicator.errors import ConfigError
from replicator.spec import Declaration
from replicator.transforms.layout import normal, version_of
from replicator.transforms.merge import SYSTEM_COLUMNS


def read(
    groups: Sequence[Row], rows: DataFrame, declaration: Declaration, stored: StructType | None
) -> tuple[list[Form], set[str]]:
    """The forms of the groups, and the columns whose types nobody described. ``rows`` are the groups' records."""
    examples = [
        Example(
            g["form"],
            g["flat"],
            g["wrapped"],
            g["key_wrapped"],
            g["value"] or "{}",
            g["key"],
            tuple(g["key_names"] or ()),
            tuple(g["row_names"] or ()),
        )
        for g in {group["form"]: group for group in groups}.values()
    ]
    known = known_types(stored)
    unknown = undescribed(examples, declaration)
    guessed: set[str] = set()
    if stored is None and unknown:
        known = dict(_inferred(rows, unknown))
        declared = {column.name for column in declaration.columns}
        guessed = {name for example in unknown for name in example.row_names if name not in declared}
    return [form(example, declaration, known) for example in examples], guessed


def known_types(stored: StructType | None) -> dict[str, Logical]:
    """What the table's own columns say about columns that nothing else describes: their newest version, where its type
    alone tells how values are written.
    """
    known: dict[str, Logical] = {}
    own = [column for column in stored or () if column.name not in SYSTEM_COLUMNS]
    for column in sorted(own, key=lambda each: version_of(each.name)[1]):
        name, kind = names.decode(version_of(column.name)[0]), column.dataType.simpleString()
        known.pop(name, None)
        try:
            logical = parse_logical(kind)
        except ConfigError:
            continue  # a nested type: its text is kept
        if normal(spark_type(logical)) == kind:
            known[name] = logical
    return known


def _inferred(rows: DataFrame, examples: Sequence[Example]) -> Mapping[str, Logical]:
    """Kinds over the whole first range (architecture 9.7)."""
    found: set[tuple[str, str]] = set()
    for example in examples:
        path = form(example, Declaration(""), {}).path
        texts = rows.where(F.col("form") == example.form).select("value").rdd.map(lambda row: str(row[0]))
        found.update(texts.mapPartitions(partial(infer.kinds, path=path)).distinct().collect())
    return infer.settle(found)
