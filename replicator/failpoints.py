"""Named places in the code where a run can be made to crash, to test what a crash leaves behind (reliability.md P3).

A point is between two effects; its sentence in :data:`POINTS` says which of them has happened. Names are stable. A new
step with an effect gets a point: one line in :data:`POINTS`, one ``failpoints.hit(...)`` after the effect, and a case
that reaches it in ``tests/torture``; a point that the sweep never hits is a failed test.

This module does not read the environment, and a run in which nothing is armed pays one comparison per point.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

from replicator.errors import ConfigError
from replicator.spelling import suggest

POINTS: Mapping[str, str] = MappingProxyType(
    {
        "bronze.batch_checked": "A micro-batch from Kafka was checked; bronze has nothing of it (K-B1).",
        "bronze.batch_appended": "Bronze has the micro-batch; Spark's commit log does not (K-B3).",
        "landing.objects_read": "New objects were read and judged; bronze has nothing of them.",
        "landing.objects_appended": "Bronze has a batch of objects; the next batch was not begun.",
        "silver.range_read": "A range of bronze was surveyed; nothing of it is written anywhere (K-S1).",
        "silver.routes_saved": "The control row of routes knows the range's topics; no table has the range.",
        "silver.letters_buried": "Dead letters of the range are written; its table has not moved (K-S5).",
        "silver.ledger_saved": "The ledger has the table's new columns; the table does not (K-S6).",
        "silver.evolved": "The table has its new columns; none of the rows that brought them (K-S6).",
        "silver.truncate_marked": "The truncate watermark is in the control row; the rows are still live.",
        "silver.history_kept": "The history has the range; its table does not.",
        "silver.changes_folded": "All is ready for the merge, and every effect before it has happened (K-S2).",
        "silver.merged": "The table has rows and progress; this has not been reported (K-S7).",
        "silver.tables_done": "Every table has the range; the progress of the partitions is not recorded.",
        "cut.announced": "The cut's row has its new place and all that waits or waited; no table has taken anything.",
        "cut.tables_taken": "Every table has what was let through; the cut's row does not say so.",
        "cut.settled": "The cut's row says what waits now; this has not been reported.",
        "twins.compared": "What a twin lacks is known; the twin is as before.",
        "twins.followed": "The twin has rows and progress; this has not been reported.",
        "gold.inputs_noted": "The control row of a refresh is written; the merge that makes it count is not (K-G3).",
        "gold.merged": "The model has rows and progress; the control row of the refresh before is still there.",
        "gold.model_done": "One model is finished; those after it are not (K-G1, K-G2).",
        "publish.ledger_made": "Schema and ledger of a model are there; nothing is staged (K-T1).",
        "publish.model_staged": "A model is staged, perhaps not the next one (K-T2).",
        "publish.all_staged": "Every model is staged; the transaction has not begun (K-T3).",
        "publish.before_commit": "Rows and ledger are written in a transaction that is open (K-T4).",
        "publish.committed": "The transaction is committed; this has not been reported (K-T6).",
        "canonical.begun": "What a feed sends first is in its control row; Kafka has nothing of it.",
        "canonical.sent": "Kafka has the events of a commit; the feed's control row does not say so.",
        "delta.append_written": "Data files of an append exist; no commit references them (K-B2).",
        "delta.rewrite_written": "New files and marks of a merge exist; the log has the old ones (K-S3).",
        "delta.optimized": "Small files were written together; the old ones are still there (K-M1).",
        "purge.horizon_saved": "The control row records how far deleted rows are removed; the rows still exist (K-M4).",
        "checkpoint.set_aside": "The old checkpoint is set aside; there is no new one, and no gap is recorded.",
        "checkpoint.gaps_noted": "The control row of gaps is written; there is no checkpoint.",
        "checkpoint.written": "A new checkpoint is in place, except for its stream's id.",
        "rebuild.begun": "The control row of a rebuild is written; there is no shadow (K-M3).",
        "rebuild.schema_given": "The shadow has the columns that were approved; none of the rows.",
        "rebuild.made": "The shadow is complete; the table has nothing of it.",
        "rebuild.announced": "Schema and truncates hold for the old rows and the new; the rows are the old ones.",
        "rebuild.history_swapped": "The history, where there is one, has the shadow's rows; its table does not.",
        "rebuild.table_swapped": "The table has the shadow's rows; schema and truncates hold for the old ones too.",
        "rebuild.schema_settled": "Schema and truncates are those of the rows; order and progress may not be.",
        "rebuild.settled": "All is swapped; the control row and the shadow are still there.",
        "rebuild.forgotten": "The control row of a rebuild is deleted; its shadow may still exist.",
        "hudi.commit_noted": "A commit's metadata is known; Hudi has not begun it (K-H1).",
        "hudi.committed": "Hudi has completed a commit; this has not been reported (K-H3).",
        "hudi.serviced": "Compaction or clustering is done; cleaning is not (K-H4).",
        "control.row_begun": "The file of a new control row is open; nothing is in it.",
        "control.row_beside": "A new control row is beside its place; the old one is deleted.",
        "lease.taken": "The store records who holds a stage; no other stage is held and nothing is written.",
        "lease.token_drawn": "Every stage is held and a token drawn; no lease records it.",
        "lease.renewed": "The store has a renewal; its holder does not know it yet.",
        "lease.released": "One stage is free; the others of the run are not yet.",
    }
)
"""Every point, with what has happened there and what has not."""

_FORM = re.compile(r"([a-z_.]+):(kill|raise|hang|sleep)(?:=(\d+(?:\.\d+)?))?:([1-9]\d{0,8})")
_SLEEP_SECONDS = 5.0

Watcher = Callable[[str], None]


class Killed(BaseException):
    """Simulates the death of the process: no ``except Exception`` continues after it."""


@dataclass
class Failpoint:
    """An armed point: at its ``nth`` hit, ``action`` happens, once. ``seconds`` applies to ``sleep``."""

    name: str
    action: str
    nth: int
    seconds: float = _SLEEP_SECONDS
    hits: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __call__(self, name: str) -> None:
        """Record a hit of any point."""
        if name != self.name:
            return
        with self._turn:
            self.hits += 1
            fires = self.hits == self.nth
        if fires:
            _ACTIONS[self.action](self)


def parse(text: str) -> Failpoint:
    """Parse ``name:action:nth``, such as ``silver.merged:kill:2``; ``sleep=0.5`` sets the seconds. Raises
    ConfigError.
    """
    match = _FORM.fullmatch(text)
    if match is None or (match[3] and match[2] != "sleep"):
        raise ConfigError(
            f"a failpoint is name:action:nth, not {text!r}",
            fix="Actions are kill, raise, hang and sleep; nth counts from 1.",
        )
    if match[1] not in POINTS:
        raise ConfigError(f"failpoint {match[1]!r} does not exist{suggest(match[1], POINTS)}")
    return Failpoint(match[1], match[2], int(match[4]), float(match[3] or _SLEEP_SECONDS))


def hit(name: str) -> None:
    """Report that the code has reached a point of :data:`POINTS`."""
    watcher = _Armed.watcher
    if watcher is not None:
        watcher(name)


def arm(watcher: Watcher | None) -> None:
    """Report every hit to ``watcher``; with None, stop reporting."""
    _Armed.watcher = watcher


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Report every hit to ``watcher`` inside of the block."""
    arm(watcher)
    try:
        yield
    finally:
        arm(None)


class _Armed:
    watcher: Watcher | None = None


def _kill(_: Failpoint) -> None:
    """Send SIGKILL to the process group, which contains a driver's JVM and its Python workers."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _raise(failpoint: Failpoint) -> None:
    raise Killed(f"killed at hit {failpoint.nth} of {failpoint.name}")


def _hang(_: Failpoint) -> None:
    threading.Event().wait()


def _sleep(failpoint: Failpoint) -> None:
    time.sleep(failpoint.seconds)


_ACTIONS: Mapping[str, Callable[[Failpoint], None]] = MappingProxyType(
    {"kill": _kill, "raise": _raise, "hang": _hang, "sleep": _sleep}
)
