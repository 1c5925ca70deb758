"""What a system must do to be measured, and what it is given."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cdc_ch.tables import KNOWN, Kept

COLLAPSE, APPLY, REFINE, GOLD, PUBLISH, SOAK = "T1", "T2", "T3", "T4", "T5", "T7"
"""Tracks: events -> one change per key; prepared changes -> a table; events -> tables; changed inputs -> a model;
prepared changes -> a table of PostgreSQL; T3 in many small batches.
"""

CORES = 2
"""What every system may use."""


@dataclass(frozen=True)
class Case:
    """One measurement. ``input`` is the folder of a dataset, or in T2 of a sweep, whose table is in ``target``; the
    rest is what figures are drawn over: rows of the table, events or changes, which keys, and bytes of the events or of
    the changed rows.
    """

    track: str
    name: str
    input: str
    target: str = ""
    rows: int = 0
    changes: int = 0
    keys: str = ""
    bytes: int = 0
    batches: int = 1

    @property
    def start(self) -> str:
        """What the tables are that a run starts from: cases that share them have the same."""
        return hashlib.sha256(f"{self.track} {self.target or self.input}".encode()).hexdigest()[:12]

    def value(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def tables(case: Case) -> list[Kept]:
    """The tables that a dataset's events are of, or could be."""
    return [KNOWN[file.stem] for file in sorted((Path(case.input) / "start").glob("*.parquet"))]


def events(case: Case, table: Kept, batch: int | None = None) -> list[str]:
    """Files of the table's events, of a batch or of all; none where it has none."""
    folder = "batch-*" if batch is None else f"batch-{batch:04}"
    return sorted(map(str, Path(case.input).glob(f"{folder}/{table.name}.parquet")))


class Contender(ABC):
    """One system in one track, in a process of its own. Only :meth:`run` is on the clock."""

    @abstractmethod
    def about(self) -> Mapping[str, Any]:
        """Versions and settings, for the report."""

    @abstractmethod
    def start(self, case: Case, home: Path) -> None:
        """Make below ``home`` the tables that every run starts from, whole and closed: it is copied for each run, data
        files that end with ``.parquet`` as links.
        """

    def ready(self, case: Case) -> None:  # noqa: B027 - most take what is given as it is
        """Prepare what ``case`` gives, in the shape in which the system takes it."""

    def arrive(self, case: Case, home: Path, batch: int) -> None:  # noqa: B027 - most find files
        """The events of a batch are there to be read."""

    @abstractmethod
    def run(self, case: Case, home: Path, batch: int) -> Mapping[str, float]:
        """The work, until its result is committed. Returns seconds by phase, if it knows."""

    def upkeep(self, case: Case, home: Path) -> None:  # noqa: B027 - some need none
        """Write small files together, as often as the runner says."""

    def ask(self, case: Case, home: Path, query: str) -> Iterable[Sequence[Any]]:
        """The rows that answer one of ``reads.QUERIES`` from the result, by the system's own engine. Raises
        NotImplementedError where nobody can ask.
        """
        raise NotImplementedError

    @abstractmethod
    def export(self, case: Case, home: Path, out: Path) -> None:
        """Read the result back: all live rows of each table, with the source's columns, as Parquet files in
        ``<out>/<table>/``; in T1 the collapsed changes, with ``deleted`` behind the columns.
        """

    def counted(self) -> Mapping[str, int]:
        """What the engine has done so far: ``jobs`` and ``tasks`` where it has such."""
        return {}

    def servers(self) -> Sequence[int]:
        """Ids of processes that work for it and are not its children."""
        return ()

    def close(self) -> None:  # noqa: B027 - some have started nothing
        """Stop what was started."""
