"""The user view of silver for any engine: columns, their names, and the condition on rows. Loads no pyspark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replicator import names

SYSTEM_COLUMNS = ("_seq", "_deleted", "_column_seq", "_source_ts_ms")
"""The columns that silver adds after the source's columns, in this order."""

START_AT, END_AT = "__START_AT", "__END_AT"
"""The first two columns of a history, which distinguish its intervals from places that begin none."""


JSON_OPTIONS = {"ignoreNullFields": "false"} | {
    # otherwise everything after the milliseconds is cut off
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""Spark's options for writing values as JSON, for people and programs."""


@dataclass(frozen=True)
class UserView:
    """Stored columns with the names to show, and the condition on rows in SQL that all engines understand; None: all
    rows.
    """

    columns: tuple[tuple[str, str], ...]
    condition: str | None


def describe_view(stored: Iterable[str]) -> UserView:
    """The user view of a table with these columns: of silver the live rows with the source's columns in its spelling,
    of a history one row per interval, of any other table everything.
    """
    columns = tuple(stored)
    if "_deleted" not in columns:
        return UserView(tuple((column, column) for column in columns), None)
    of_source = tuple((column, names.decode(column)) for column in columns if column not in SYSTEM_COLUMNS)
    is_history = START_AT in columns
    return UserView(of_source, f'"{END_AT}" IS NULL OR "{END_AT}" > "{START_AT}"' if is_history else 'NOT "_deleted"')
