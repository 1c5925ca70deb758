"""The schema of the changes against the schema of the table: what every row looks like, and what must change first.

Silver evolves by union: new columns are added, types widen, nothing is ever dropped (debezium.md G3, types.md
section 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium.logical import spark_type, widen
from replicator.debezium.schema import Form
from replicator.errors import SchemaRefused
from replicator.spec import Evolution
from replicator.transforms.merge import SYSTEM_COLUMNS

RESERVED = (*SYSTEM_COLUMNS, "_unavailable", "_reject", "_op")


@dataclass(frozen=True)
class Layout:
    """The columns of a batch, as stored: name and Spark type in the order of the table, and which are keys.

    ``keys_from_row``: the user declared the keys, so a record whose Kafka key lacks them has them in its row. Without
    that a missing Kafka key never acts as one (C1).
    """

    types: Mapping[str, str]
    keys: tuple[str, ...]
    keys_from_row: bool = False


def stored_name(column: str) -> str:
    """A source column's name at rest: encoded, and out of the way of our own columns (N-3)."""
    encoded = names.encode(column)
    return f"_x5f_{encoded[1:]}" if encoded in RESERVED else encoded


def plan(
    table: str, forms: Sequence[Form], stored: Mapping[str, str] | None, keys: Sequence[str]
) -> tuple[Layout, Evolution]:
    """The layout of a batch and how the table must evolve for it; ``keys`` are source names, declared or the table's.

    ``stored`` maps the table's columns to Spark types, None before it exists. Raises SchemaRefused where a type cannot
    be reached by widening or the key is not what it was.
    """
    agreed = _agreed_keys(table, forms)
    key_names = tuple(stored_name(key) for key in keys) or agreed
    if stored is not None and agreed and set(agreed) - set(key_names):
        raise SchemaRefused(
            f"the key was {','.join(key_names)} and is now {','.join(agreed)}",
            where=table,
            mend="Declare its `keys` in conf/sources, or start the table anew under another topic prefix.",
        )
    incoming: dict[str, str] = {}
    for form in forms:
        for field in (*form.fields, *form.key_fields):
            _meet(table, incoming, stored_name(field.name), spark_type(field.logical))
    names.refuse_case_twins([*incoming, *(stored or ())], f"table {table}")
    if stored is None:
        return Layout(incoming, key_names), Evolution()
    own = {column: kind for column, kind in stored.items() if column not in SYSTEM_COLUMNS}
    merged = dict(own)
    for column, kind in incoming.items():
        _meet(table, merged, column, kind)
    added = tuple((column, kind) for column, kind in merged.items() if column not in own)
    widened = tuple((column, kind) for column, kind in merged.items() if column in own and own[column] != kind)
    return Layout(merged, key_names), Evolution(added, widened)


def described(rows: DataFrame, layout: Layout) -> DataFrame:
    """Rows whose columns remember the source's spelling and their place in the key (architecture 9.1)."""

    def column(name: str) -> Column:
        metadata: dict[str, object] = {"name": names.decode(name)}
        if name in layout.keys:
            metadata["key"] = layout.keys.index(name)
        return F.col(names.spark(name)).alias(name, metadata=metadata)

    return rows.select(*[column(name) for name in layout.types], *SYSTEM_COLUMNS)


def normal(kind: str) -> str:
    """A Spark type as ``DataFrame.dtypes`` spells it."""
    return kind.lower().replace(": ", ":").replace(", ", ",")


def _meet(table: str, known: dict[str, str], column: str, kind: str) -> None:
    incoming = normal(kind)
    present = known.get(column, incoming)
    wider = incoming if present == incoming else widen(present, incoming)
    if wider is None:
        raise SchemaRefused(
            f"column {names.decode(column)} changed from {present} to {incoming}, which is no widening",
            where=table,
            mend="Give the column a wider type at the source, or start the table anew under another topic prefix.",
        )
    known[column] = normal(wider)


def _agreed_keys(table: str, forms: Sequence[Form]) -> tuple[str, ...]:
    found = {tuple(stored_name(field.name) for field in form.key_fields) for form in forms if form.key_fields}
    if len({frozenset(keys) for keys in found}) > 1:
        shown = " / ".join(sorted(",".join(keys) for keys in found))
        raise SchemaRefused(
            f"the key changed: {shown}", where=table, mend="A table has one key: declare its `keys` in conf/sources."
        )
    return min(found) if found else ()
