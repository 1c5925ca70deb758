"""What a connector says of a snapshot that it was asked for, until it is over."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replicator.connect.signals import Signal
from replicator.errors import ConnectorFailed, Unreachable

_STARTED, _IN_PROGRESS, _SCANNED = "STARTED", "IN_PROGRESS", "TABLE_SCAN_COMPLETED"
_COMPLETED, _ABORTED = "COMPLETED", "ABORTED"
_DONE = ("SUCCEEDED", "EMPTY")
_LOOK_SECONDS = 3.0


@dataclass(frozen=True)
class Notification:
    """One notification: ``type`` is Debezium's. ``table`` is the one at hand, ``status`` and ``rows`` belong to a table
    that was read, ``chunk`` of ``chunks`` to one that is being read; '' and None where nothing is said. ``queue`` has
    the tables that are to be read, the one at hand first. It ``is_own`` where it carries the signal's id.
    """

    type: str
    table: str = ""
    status: str = ""
    rows: int | None = None
    chunk: int | None = None
    chunks: int | None = None
    queue: tuple[str, ...] = ()
    is_own: bool = True

    @property
    def is_last(self) -> bool:
        """Nothing comes after it."""
        return self.type in (_COMPLETED, _ABORTED)

    @property
    def is_scan(self) -> bool:
        """A table was read, or could not be."""
        return self.type == _SCANNED

    @property
    def is_progress(self) -> bool:
        """A table is being read."""
        return self.type == _IN_PROGRESS

    @property
    def failed(self) -> bool:
        """A table was not read."""
        return self.is_scan and self.status not in _DONE

    @property
    def said(self) -> str:
        """What became of a table, for people."""
        if self.failed:
            return f"{self.table} was not read: {self.status}"
        return f"{self.table} is read, {self.rows or 0:,} rows"


def parse_notification(value: bytes | None, of: Signal, prefix: str) -> Notification | None:
    """The notification in a record's value, with or without a schema, if it may be about what the signal asked for.

    An incremental snapshot carries the id of the newest signal that put tables into the connector's queue. A blocking
    one carries none: it looks as the connector's initial one, so that whatever such a snapshot says after the signal
    counts.
    """
    told = _object(value)
    more = told.get("additional_data") or {}
    kind = "Initial Snapshot" if of.is_blocking else "Incremental Snapshot"
    if told.get("aggregate_type") != kind or more.get("connector_name", prefix) != prefix:
        return None
    table = more.get("scanned_collection") or more.get("current_collection_in_progress") or ""
    rows, chunk, chunks = (_number(more.get(name)) for name in ("total_rows_scanned", "chunk_index", "total_chunks"))
    queue = tuple(filter(None, str(more.get("data_collections") or "").split(",")))
    own = of.is_blocking or told.get("id") == of.id
    return Notification(str(told.get("type", "")), table, more.get("status", ""), rows, chunk, chunks, queue, own)


def follow(
    batches: Iterable[Iterable[bytes | None]],
    read: Callable[[bytes | None], Notification | None],
    look: Callable[[], None],
    *,
    patience: float,
) -> Iterator[Notification]:
    """The notices among batches of values, an empty batch where nothing came for a moment, up to the last one: from the
    first with the signal's id on all, since a later signal gives its own id to the tables that wait already.

    ``look`` is called every few seconds and raises what makes waiting vain. Raises Unreachable when nothing is said of
    the snapshot in ``patience`` seconds: no sign that the signal was read.
    """
    began = looked = time.monotonic()
    heard = False
    for batch in batches:
        for found in filter(None, map(read, batch)):
            heard = heard or found.is_own
            if not heard:
                continue
            yield found
            if found.is_last:
                return
        now = time.monotonic()
        if now - looked >= _LOOK_SECONDS:
            looked = now
            look()
        if not heard and now - began > patience:
            mend = (
                "A connector reads signals only once its first snapshot is over, those of a table only where that is "
                "captured, in PostgreSQL published as well. One of PostgreSQL that was started again begins a blocking "
                "snapshot with the first change of a captured table: write to one, the signal was taken. A signal that "
                "is a row waits for the log before it where the connector is behind."
            )
            raise Unreachable(f"the connector does not answer the signal after {patience:.0f} s", mend=mend)


def outcomes(told: Iterable[Notification], tables: Iterable[str]) -> list[Notification]:
    """What became of each table that was asked for, in the end: read with so many rows; not read, with the reason;
    ABORTED where the snapshot was stopped before, NOT_FOUND where nothing was said of it.

    A table that waited already, for an earlier signal, is read once for each: the reading for this one is the last of
    those in the first queue.
    """
    every = list(told)
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
    """Raises ConnectorFailed where a table was not read."""
    if failed := [each.said for each in found if each.failed]:
        mend = f"The log of Kafka Connect says why; `replicator connect check {source}` looks at keys and rights."
        raise ConnectorFailed("; ".join(failed), mend=mend)


def _object(value: bytes | None) -> Mapping[str, Any]:
    try:
        told = json.loads(value or b"")
    except ValueError:
        return {}
    told = told.get("payload", told) if isinstance(told, dict) else {}
    return told if isinstance(told, dict) else {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
