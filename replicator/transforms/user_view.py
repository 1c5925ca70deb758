"""What users see of silver, for any engine: which columns, by which names, of which rows. Loads no pyspark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replicator import names

SYSTEM_COLUMNS = ("_seq", "_deleted", "_column_seq", "_source_ts_ms")
"""What silver adds behind the source's columns, in this order."""

START_AT, END_AT = "__START_AT", "__END_AT"
"""The first two columns of a history, which tell its intervals from places that begin none."""


JSON_OPTIONS = {"ignoreNullFields": "false"} | {
    # else what is behind the milliseconds is cut off
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""How Spark writes values as JSON, for people and programs."""


@dataclass(frozen=True)
class UserView:
    """Stored columns with the names that they go by, and the condition on rows in SQL that every engine here reads;
    None: all rows.
    """

    columns: tuple[tuple[str, str], ...]
    condition: str | None


def describe_view(stored: Iterable[str]) -> UserView:
    """What is shown of a table with these columns: of silver the live rows with the source's columns in its spelling,
    of a history one row per interval, of anything else all there is.
    """
    columns = tuple(stored)
    if "_deleted" not in columns:
        return UserView(tuple((column, column) for column in columns), None)
    of_source = tuple((column, names.decode(column)) for column in columns if column not in SYSTEM_COLUMNS)
    is_history = START_AT in columns
    return UserView(of_source, f'"{END_AT}" IS NULL OR "{END_AT}" > "{START_AT}"' if is_history else 'NOT "_deleted"')
