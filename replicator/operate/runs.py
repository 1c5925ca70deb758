"""The record counts of each run, stored with the lake (debezium.md R1): one control object per run.

A run is one call of ``replicator run`` or of a job. Its object holds the sums over all passes, so a run that lasts for
weeks is still one small object. It is written during the run, at most every few seconds, and at its end: counts of the
last seconds of a killed run may be missing here, but never in the tables.
"""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from replicator import controlrow
from replicator.lake import Lake
from replicator.protocols import Control, ControlReader

if TYPE_CHECKING:
    from replicator.stages.run_report import ReportLine

KEPT_RUNS = 1_000
"""How many runs a lake keeps: those of 17 hours if one starts each minute, of three years if one starts each night."""

_SECONDS_BETWEEN = 5.0
_REMOVED_AT_ONCE = 100


@dataclass(frozen=True)
class Entry:
    """The counts of one stage and one table in one run: sums over ``passes``.

    For silver ``read`` = ``applied`` + ``superseded`` + ``dead_lettered`` + the sum of ``ignored`` (rule -> records),
    except in passes that stopped; gold counts the rows that it computed, publish those of the difference. ``seconds``
    is wall time; ``error`` is that of the last pass, None if it succeeded.
    """

    stage: str
    table: str
    passes: int = 0
    read: int = 0
    applied: int = 0
    superseded: int = 0
    dead_lettered: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None

    def with_line(self, line: ReportLine) -> Entry:
        """Return the entry after one more pass."""
        return replace(
            self,
            passes=self.passes + 1,
            read=self.read + line.rows_in,
            applied=self.applied + line.applied,
            superseded=self.superseded + line.superseded,
            dead_lettered=self.dead_lettered + line.dead_lettered,
            ignored=dict(Counter(self.ignored) + Counter(line.ignored)),
            seconds=round(self.seconds + line.seconds, 3),
            error=None if line.error is None else str(line.error),
        )


@dataclass(frozen=True)
class Run:
    """One run. ``started`` and ``ended`` are UTC, ISO 8601; ``ended`` is None during the run, or if it was killed."""

    id: str
    command: str
    started: str
    ended: str | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Runs:
    """The recorded runs of a lake."""

    facts: ControlReader
    lake: Lake

    def last(self, count: int) -> list[Run]:
        """Return the newest runs, newest first."""
        ids = sorted(self.facts.under(self.lake.runs_root()), reverse=True)[:count]
        return [run for id_ in ids if (run := self.read(id_)) is not None]

    def read(self, run: str) -> Run | None:
        """Return one run; None if there is none with this id."""
        row: Any = self.facts.get(self.lake.run(run))
        if row is None:
            return None
        entries = tuple(Entry(**controlrow.select_fields(Entry, entry)) for entry in row["entries"])
        return Run(**{**controlrow.select_fields(Run, row), "entries": entries})


class RunLog:
    """Record the current run. Nothing is written for a run that did nothing."""

    def __init__(self, control: Control, lake: Lake, command: str) -> None:
        started = dt.datetime.now(dt.timezone.utc)
        self._control = control
        self._lake = lake
        self._run = Run(f"{started:%Y%m%dT%H%M%S}-{secrets.token_hex(2)}", command, _text(started))
        self._entries: dict[tuple[str, str], Entry] = {}
        self._written = time.monotonic()

    def add(self, line: ReportLine) -> None:
        """Add the counts of one line, and write the object if the last write was long enough ago."""
        place = (line.stage, line.table)
        self._entries[place] = self._entries.get(place, Entry(*place)).with_line(line)
        if time.monotonic() - self._written >= _SECONDS_BETWEEN:
            self._write(self._run)

    def close(self) -> None:
        """Write the final object, with the time of the end, and remove the oldest runs beyond :data:`KEPT_RUNS`."""
        if self._entries:
            self._write(replace(self._run, ended=_text(dt.datetime.now(dt.timezone.utc))))
            self._remove_old()

    def _remove_old(self) -> None:
        """Each removal is a request to the store, so one run removes a hundred at most. A continuous run that is that
        old writes its object again with its next pass.
        """
        old = self._control.under(self._lake.runs_root())[:-KEPT_RUNS]
        for id_ in old[:_REMOVED_AT_ONCE]:
            self._control.remove(self._lake.run(id_))

    def _write(self, run: Run) -> None:
        entries = tuple(self._entries[place] for place in sorted(self._entries))
        self._control.put(self._lake.run(run.id), asdict(replace(run, entries=entries)))
        self._written = time.monotonic()


def _text(moment: dt.datetime) -> str:
    return moment.isoformat(timespec="seconds")
