"""The report of a run: one line for each stage and table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError

if TYPE_CHECKING:
    from replicator.stages.account import Account
    from replicator.stages.canonical import DeliveryResult
    from replicator.stages.gold import RefreshResult
    from replicator.stages.publish import PublishResult
    from replicator.stages.twins import TwinResult

STAGES = ("bronze", "silver", "gold", "publish")
CANONICAL = "canonical"
"""The stage that only lakes with feeds have."""


@dataclass(frozen=True)
class ReportLine:
    """The result of one stage for one table: rows read, and what became of them; ``ignored`` by rule. ``seconds`` is
    wall time. ``how`` is a short text on the method that gold used and why; gold's ``rows_in`` are the rows that were
    computed.
    """

    stage: str
    table: str
    rows_in: int = 0
    applied: int = 0
    superseded: int = 0
    dead_lettered: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    error: ReplicatorError | None = field(default=None, compare=False)
    how: str = ""


Report = Callable[[ReportLine], None]


def of_silver(account: Account) -> ReportLine:
    """Return the line for a table's batch in silver."""
    return ReportLine(
        "silver",
        account.table,
        account.read,
        account.applied,
        account.superseded,
        account.dead_lettered,
        account.ignored,
        account.seconds,
        account.warnings,
        account.error,
    )


def of_twin(done: TwinResult) -> ReportLine:
    """Return the line for a silver table's copy in another format."""
    return ReportLine("silver", done.table, done.rows, done.written, seconds=done.seconds, error=done.error)


def of_gold(built: RefreshResult) -> ReportLine:
    """Return the line for the refresh of a model."""
    written = 0 if built.applied is None else built.applied.written
    how = f"{built.action}: {built.reason}" if built.action else ""
    return ReportLine(
        "gold",
        built.model,
        built.rows,
        written,
        seconds=built.seconds,
        warnings=built.warnings,
        error=built.error,
        how=how,
    )


def of_publish(done: PublishResult) -> ReportLine:
    """Return the line for publishing a model to its target."""
    written = 0 if done.applied is None else done.applied.written
    return ReportLine(
        "publish", done.model, done.rows, written, seconds=done.seconds, warnings=done.warnings, error=done.error
    )


def of_canonical(done: DeliveryResult) -> ReportLine:
    """Return the line for the events of a feed."""
    return ReportLine(
        CANONICAL, done.feed, done.events, done.events, seconds=done.seconds, warnings=done.warnings, error=done.error
    )
