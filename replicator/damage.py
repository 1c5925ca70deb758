"""Missing or damaged files of a table: recognized by the error texts of Spark and the formats, with a repair hint.

All layers but bronze are derived from the one before, so their tables can be deleted and rebuilt. Bronze's records
exist nowhere else but in Kafka.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable

from replicator.lake import DEPTHS

_COMMIT = re.compile(r"[0-9]{20}[.]json")
_COMMITS_CHECKED = 100
"""The number of newest commits that are checked: older ones have been read before and rarely break."""

TORN_COMMIT = "a commit of the table's log is truncated"
"""The beginning of the message about a torn commit; the file's name follows."""

_MISSING_FILE = re.compile(
    f"{TORN_COMMIT}|"
    "PATH_NOT_FOUND|FileNotFoundException|FILE_NOT_FOUND|is not a Parquet file|ChecksumException|"
    "TRUNCATED_TRANSACTION_LOG|VERSIONS_NOT_CONTIGUOUS|STATE_RECOVER|MISSING_PART_FILES"
)
_NO_ACCESS = re.compile(r"\((?:Permission denied|Read-only file system|Too many open files)\)")
"""Errors that Java reports as not found, too, although the file may exist."""
_TORN = re.compile(r"JsonEOFException|JsonParseException|DELTA_STATE_RECOVER_ERROR")
_OF_DELTA = "org.apache.spark.sql.delta."
_PLACE = re.compile(
    rf"(?P<folder>(?:[a-z0-9]+:)?/[^\n'\"]*/(?P<layer>{'|'.join(DEPTHS)})(?P<names>(?:/[^/\n=]+){{1,3}}?))"
    r"/(?:_delta_log/|_change_data/|[^/\n]+=[^/\n]*/)*[^/\s]+[.](?:parquet|json|bin)\b"
)
_REBUILT_FROM = {
    "gold": "from its inputs",
    "silver": "from bronze",
    "history": "from bronze",
    "twins": "from its table",
}
_ACCESS_HINT = (
    "Give the driver's user read and write access to the lake and Spark's files, and enough open files (`ulimit -n`); "
    "then run again."
)
_GUIDE = "docs/operate.md describes the repair (When a table lost files)."


def repair_hint(text: str) -> str | None:
    """The repair hint for a failure with that text: for tables that lost a file, and for files without access rights;
    None for any other failure.
    """
    if _NO_ACCESS.search(text) is not None:
        return _ACCESS_HINT
    place = next((each for each in _PLACE.finditer(text) if _is_table(each)), None)
    if place is not None and _MISSING_FILE.search(text) is not None:
        return _restore_hint(place["layer"], re.sub("^file:/+", "/", place["folder"]))
    if _OF_DELTA in text and (is_torn(text) or _MISSING_FILE.search(text)):
        return f"A file of a table's log is missing or damaged: `replicator status` names the table, and {_GUIDE}"
    return None


def is_torn(text: str) -> bool:
    """Whether the text of a failure is about invalid JSON or an incomplete log."""
    return _TORN.search(text) is not None


def find_torn_commit(names: Iterable[str], text: Callable[[str], str]) -> str | None:
    """The newest commit among the files of a table's log that is empty or not JSON; ``text`` returns a file's content
    and raises ValueError if that is not text.
    """
    commits = sorted(filter(_COMMIT.fullmatch, names), reverse=True)
    return next((name for name in commits[:_COMMITS_CHECKED] if not _is_whole(name, text)), None)


def _is_whole(name: str, text: Callable[[str], str]) -> bool:
    try:
        return bool([json.loads(line) for line in text(name).split("\n") if line])
    except ValueError:
        return False


def _is_table(place: re.Match[str]) -> bool:
    return place["names"].count("/") == DEPTHS[place["layer"]]


def _restore_hint(layer: str, folder: str) -> str:
    if layer == "bronze":
        return f"Restore that file from a copy of the lake; without one {_GUIDE}"
    return (
        f"Restore that file from a copy of the lake, or stop all drivers and remove the folder {folder}: "
        f"the next run rebuilds the table {_REBUILT_FROM[layer]}."
    )
