"""A connector's notifications about a requested snapshot, until it has ended."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replicator.connect.signals import Signal, unquote_literal
from replicator.errors import ConnectorFailed, Unreachable

_STARTED, _IN_PROGRESS, _SCANNED = "STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED"
_COMPLETED, _ABORTED = "COMPLETED", "ABORTED"
_DONE = ("SUCCEEDED", "EMPTY")
_FIXES = {
    "UNKNOWN_SCHEMA": "Write the name as in silver, in the same case. A table that was renamed or moved to another "
    "schema is unknown to the connector until a row of it changes: change one, then repeat the command, or repeat it "
    "with --blocking.",
    "NO_PRIMARY_KEY": "An incremental snapshot needs a primary key, or a unique index of NOT NULL columns: repeat the "
    "command with --blocking.",
    "NOT_FOUND": "An incremental snapshot does not find a table with a blank in its name, a blocking one does: repeat "
    "the command with --blocking. For any other table the log of Kafka Connect has the reason.",
}
"""What to do, by the status of a table that was not read."""
_LOOK_SECONDS = 3.0


@dataclass(frozen=True)
class Notification:
    """One notification; ``type`` is Debezium's. ``table`` is the current one, ``status`` and ``rows`` belong to a table
    that was read, ``chunk`` of ``chunks`` to one that is being read; '' and None where nothing is reported. ``queue``
    has the tables still to be read, the current one first. ``is_own``: it carries the signal's id. ``is_void``: the
    connector found no table to read, and reports nothing more.
    """

    type: str
    table: str = ""
    status: str = ""
    rows: int | None = None
    chunk: int | None = None
    chunks: int | None = None
    queue: tuple[str, ...] = ()
    is_own: bool = True
    is_void: bool = False

    @property
    def is_last(self) -> bool:
        """Whether it is the snapshot's last one."""
        return self.is_void or self.type in (_COMPLETED, _ABORTED)

    @property
    def is_scan(self) -> bool:
        """Whether it reports that a table was read, or could not be."""
        return self.type == _SCANNED

    @property
    def is_progress(self) -> bool:
        """Whether it reports that a table is being read."""
        return self.type == _IN_PROGRESS

    @property
    def failed(self) -> bool:
        """Whether it reports that a table was not read."""
        return self.is_scan and self.status not in _DONE

    @property
    def describe(self) -> str:
        """The result for a table, for display."""
        if self.failed:
            return f"{self.table} was not read: {self.status}"
        return f"{self.table} was read, {self.rows or 0:,} rows"


def parse_notification(value: bytes | None, of: Signal, prefix: str) -> Notification | None:
    """Return the notification in a record's value, with or without a schema, if it may be about the requested snapshot.

    An incremental snapshot carries the id of the newest signal that put tables into the connector's queue. A blocking
    one carries no id and looks like the connector's initial snapshot, so every such notification after the signal
    counts.
    """
    message = _object(value)
    more = message.get("additional_data") or {}
    kind = "Initial Snapshot" if of.is_blocking else "Incremental Snapshot"
    if message.get("aggregate_type") != kind or more.get("connector_name", prefix) != prefix:
        return None
    table = more.get("scanned_collection") or more.get("current_collection_in_progress") or ""
    if table in of.data.get("data-collections", ()):
        table = unquote_literal(table)  # of a table that it does not know, the connector repeats the expression
    rows, chunk, chunks = (_number(more.get(name)) for name in ("total_rows_scanned", "chunk_index", "total_chunks"))
    queue = tuple(filter(None, str(more.get("data_collections") or "").split(",")))
    own = of.is_blocking or message.get("id") == of.id
    void = own and message.get("type") == _STARTED and more.get("data_collections") == ""
    return Notification(
        str(message.get("type", "")), table, more.get("status", ""), rows, chunk, chunks, queue, own, void
    )


def follow(
    batches: Iterable[Iterable[bytes | None]],
    read: Callable[[bytes | None], Notification | None],
    look: Callable[[], None],
    *,
    patience: float,
) -> Iterator[Notification]:
    """Yield the notifications in batches of values, where an empty batch means that nothing arrived for a moment, up to
    the last one: all of them from the first with the signal's id on, since a later signal gives its own id to tables
    already waiting.

    ``look`` is called every few seconds and raises if waiting is futile. Raises Unreachable if nothing about the
    snapshot arrives within ``patience`` seconds: then the signal was probably not read.
    """
    began = looked = time.monotonic()
    is_answered = False
    for batch in batches:
        for found in filter(None, map(read, batch)):
            is_answered = is_answered or found.is_own
            if not is_answered:
                continue
            yield found
            if found.is_last:
                return
        now = time.monotonic()
        if now - looked >= _LOOK_SECONDS:
            looked = now
            look()
        if not is_answered and now - began > patience:
            fix = (
                "A connector reads signals only after its initial snapshot, and those in a table only if that table "
                "is captured (in PostgreSQL also published). A restarted PostgreSQL connector begins a blocking "
                "snapshot with the first change to a captured table: write to one, the signal was accepted. A signal "
                "row is read only after the log before it, so a connector that lags reads it later."
            )
            raise Unreachable(f"the connector did not respond to the signal within {patience:.0f} s", fix=fix)


def outcomes(notifications: Iterable[Notification], tables: Iterable[str]) -> list[Notification]:
    """Return the final result for each requested table: read, with its number of rows; not read, with the reason;
    ABORTED if the snapshot was stopped before, NOT_FOUND if nothing was reported.

    A table that was already waiting for an earlier signal is read once for each: the reading for this signal is the
    last of those in the first queue.
    """
    every = list(notifications)
    scans: dict[str, list[Notification]] = {}
    for each in every:
        if each.is_scan:
            scans.setdefault(each.table.casefold(), []).append(each)
    queued = Counter(table.casefold() for each in every[:1] for table in each.queue)
    otherwise = _ABORTED if any(each.type == _ABORTED for each in every) else "NOT_FOUND"
    found = []
    for table in tables:
        name = table.casefold()
        own = [
            scan
            for full, read in scans.items()
            if full == name or full.endswith(f".{name}")
            for scan in read[max(queued[full] - 1, 0) :][:1]
        ]
        found += own or [Notification(_SCANNED, table, otherwise)]
    return found


def require_read(source: str, found: Iterable[Notification]) -> None:
    """Raise ConnectorFailed if a table was not read."""
    unread = [each for each in found if each.failed]
    if unread:
        fix = f"The log of Kafka Connect has the reason; `replicator connect check {source}` checks keys and rights."
        fixes = dict.fromkeys(_FIXES.get(each.status, fix) for each in unread)
        raise ConnectorFailed("; ".join(each.describe for each in unread), fix=" ".join(fixes))


def _object(value: bytes | None) -> Mapping[str, Any]:
    try:
        message = json.loads(value or b"")
    except ValueError:
        return {}
    message = message.get("payload", message) if isinstance(message, dict) else {}
    return message if isinstance(message, dict) else {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
