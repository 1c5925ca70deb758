"""The merge of a stored row and a change: a semilattice join (debezium.md section M), used by every table format.

A silver row is a set of registers, one per column and one for its life. Each register has a position: the row's
``_seq`` unless ``_column_seq`` has another, with a ``-`` appended in a deleted row (M2, M3). The join takes, for each
register independently, the value at the greater position; plain text comparison orders them all. Stored and incoming
rows have the same shape: the table's columns, ``_seq STRING``, ``_deleted BOOLEAN``,
``_column_seq MAP<STRING,STRING>``, ``_source_ts_ms BIGINT``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import SchemaRefused
from replicator.jvm import expressions
from replicator.transforms import user_view

SYSTEM_COLUMNS = user_view.SYSTEM_COLUMNS
"""The columns that silver adds after the source's columns, in this order."""

_POSITIONS_TYPE = "ARRAY<STRUCT<key: STRING, value: STRING>>"

SYSTEM_DDL = "_seq STRING, _deleted BOOLEAN, _column_seq MAP<STRING,STRING>, _source_ts_ms BIGINT"


@dataclass(frozen=True)
class Sides:
    """The aliases of the two sides in a join or MERGE. No column may have such a name (see ``layout.RESERVED``): Spark
    would resolve ``alias.column`` to a field of that column.
    """

    stored: str = "_before"
    change: str = "_image"

    def of_stored(self, column: str) -> Column:
        """A column of the stored row."""
        return F.col(f"{self.stored}.{names.quote_spark(column)}")

    def of_change(self, column: str) -> Column:
        """A column of the change."""
        return F.col(f"{self.change}.{names.quote_spark(column)}")

    @property
    def both(self) -> tuple[Callable[[str], Column], Callable[[str], Column]]:
        """The accessors of a column of the change and of the stored row."""
        return self.of_change, self.of_stored


def data_columns(columns: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The registers: every column that is neither key nor system."""
    return [column for column in columns if column not in keys and column not in SYSTEM_COLUMNS]


def same_key(keys: Sequence[str], sides: Sides) -> Column:
    """Whether both sides have the same key. Keys are never NULL (a record without key is a dead letter, C1), so plain
    equality is enough. Raises SchemaRefused if there are no keys: all rows would match.
    """
    if not keys:
        raise SchemaRefused(
            "the table has no key columns for merging rows",
            fix="Declare `keys` in conf/sources, then rebuild the table: `replicator rebuild TABLE`.",
        )
    return reduce(and_, (sides.of_stored(key) == sides.of_change(key) for key in keys))


def is_newer(sides: Sides) -> Column:
    """Whether the change is newer, and so decides whether the row is deleted."""
    return sides.of_change("_seq") > sides.of_stored("_seq")


def has_effect(sides: Sides) -> Column:
    """Whether the merged row differs from the stored one: the change is newer, or fills an unknown column (E7)."""
    default = default_position(sides.of_change("_seq"), sides.of_change("_deleted"))

    def filled(entry: Column) -> Column:
        incoming = F.coalesce(sides.of_change("_column_seq")[entry["key"]], default)
        return incoming > entry["value"]

    gaps = F.coalesce(F.map_entries(sides.of_stored("_column_seq")), F.array())
    return is_newer(sides) | F.exists(gaps, filled)


def merged_columns(columns: Sequence[str], keys: Sequence[str], sides: Sides) -> dict[str, Column]:
    """The merged row as expressions over both sides, for every column but the keys."""
    registers = data_columns(columns, keys)
    newer = is_newer(sides)
    whole = newer & sides.of_change("_column_seq").isNull()
    result = {
        column: F.when(whole | _wins(column, sides), sides.of_change(column)).otherwise(sides.of_stored(column))
        for column in registers
    }
    for column in ("_seq", "_deleted", "_source_ts_ms"):
        result[column] = F.when(newer, sides.of_change(column)).otherwise(sides.of_stored(column))
    entries = _merged_positions(registers, sides, result["_seq"], result["_deleted"])
    result["_column_seq"] = F.when(~whole, entries)
    return result


def merge_rows(stored: DataFrame, changes: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Merge stored rows and changes, one row per key on each side, into the new table. For formats without a MERGE."""
    sides = Sides()
    columns = stored.columns
    both = stored.alias(sides.stored).join(changes.alias(sides.change), same_key(keys, sides), how="full")
    only_stored, only_change = sides.of_change("_seq").isNull(), sides.of_stored("_seq").isNull()
    result = merged_columns(columns, keys, sides)

    def pick(column: str) -> Column:
        met = sides.of_stored(column) if column in keys else result[column]
        chosen = F.when(only_stored, sides.of_stored(column)).when(only_change, sides.of_change(column)).otherwise(met)
        return chosen.alias(column)

    return both.select(*[pick(column) for column in columns])


def default_position(seq: Column, deleted: Column) -> Column:
    """The position of every register without an entry of its own (M3)."""
    return F.concat(seq, F.when(deleted, F.lit("-")).otherwise(F.lit("")))


def is_unknown(place: Column) -> Column:
    """Whether the value at a position is unknown: it was never seen, or was deleted with its row."""
    return (place == "") | place.endswith("-")


def column_positions(positions: Mapping[str, Column], seq: Column, deleted: Column) -> Column:
    """``_column_seq``: the positions that differ from the default; NULL if none does, and for deleted rows (M3)."""
    placed = [expressions.struct({"key": F.lit(column), "value": place}) for column, place in positions.items()]
    return non_default_positions(F.array(*placed).cast(_POSITIONS_TYPE), seq, deleted)


def non_default_positions(placed: Column, seq: Column, deleted: Column) -> Column:
    """The same for columns and positions as ``ARRAY<STRUCT<key, value>>``."""
    default = default_position(seq, deleted)
    entries = F.filter(placed, lambda each: each["value"] != default)
    return F.when(~deleted & (F.size(entries) > 0), F.map_from_entries(entries))


def same_position(columns: Sequence[str], place: Column) -> Column:
    """Entries of columns that all have one position; their names are one literal, however many there are."""
    return F.transform(
        expressions.string_array(columns), lambda column: expressions.struct({"key": column, "value": place})
    )


def no_positions() -> Column:
    """An empty array of entries."""
    return F.array().cast(_POSITIONS_TYPE)


def _row_position(of: Callable[[str], Column]) -> Column:
    """The position of every column without an entry on one side."""
    return default_position(of("_seq"), of("_deleted"))


def _wins(column: str, sides: Sides) -> Column:
    change, stored = (F.coalesce(of("_column_seq")[F.lit(column)], _row_position(of)) for of in sides.both)
    return change > stored


def _merged_positions(registers: Sequence[str], sides: Sides, seq: Column, deleted: Column) -> Column:
    """``_column_seq`` of the merged row. Few columns have an entry on either side, so these are looked up by name; a
    plan for a thousand columns is then no larger than one for ten.
    """
    known = [F.coalesce(F.map_keys(of("_column_seq")), F.array().cast("array<string>")) for of in sides.both]
    rest = F.greatest(*map(_row_position, sides.both))
    every = expressions.string_array(registers)
    named = F.when(rest == default_position(seq, deleted), F.array_intersect(F.array_union(*known), every))

    def placed(column: Column) -> Column:
        place = F.greatest(*[F.coalesce(of("_column_seq")[column], _row_position(of)) for of in sides.both])
        return expressions.struct({"key": column, "value": place})

    return non_default_positions(F.transform(F.coalesce(named, every), placed), seq, deleted)
