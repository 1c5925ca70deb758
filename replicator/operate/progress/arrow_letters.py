"""Counts of dead letters without Spark."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from replicator.operate.dead_letters import Count, LetterFilter, sort_counts

if TYPE_CHECKING:
    import pyarrow as pa

    from replicator.catalog.delta_table import DataFile
    from replicator.operate.progress.arrow_survey import ArrowSurvey

_Group = tuple[str | None, str]
_Found = tuple[int, int | None, int | None]
"""How many, and the first and the last time, in microseconds."""


def counts(of: ArrowSurvey, source: str, choice: LetterFilter, *, dropped: bool = False) -> list[Count]:
    """As ``dead_letters.counts``."""
    table = of.lake.dropped_letters(source) if dropped else of.lake.dead_letters(source)
    every: dict[_Group, _Found] = {}
    for part in of.read(table, ("table", "reason", "first_seen"), _group):
        for group, found in part.items():
            every[group] = _merge(every[group], found) if group in every else found
    chosen = {group: found for group, found in every.items() if choice.takes(*group)}
    return sort_counts(
        Count(source, table, reason, letters, _time(first), _time(last))
        for (table, reason), (letters, first, last) in chosen.items()
    )


def _group(_: DataFile, rows: pa.Table) -> dict[_Group, _Found]:
    import pyarrow.compute as pc  # noqa: PLC0415 - on demand

    found: dict[_Group, _Found] = {}
    for table in pc.unique(rows["table"]).to_pylist():
        of_table = rows.filter(pc.is_null(rows["table"]) if table is None else pc.equal(rows["table"], table))
        for reason in pc.unique(of_table["reason"]).to_pylist():
            some = of_table.filter(pc.equal(of_table["reason"], reason))
            seen = pc.min_max(some["first_seen"]).as_py()
            found[table, reason] = some.num_rows, seen["min"], seen["max"]
    return found


def _merge(one: _Found, other: _Found) -> _Found:
    first = [each for each in (one[1], other[1]) if each is not None]
    last = [each for each in (one[2], other[2]) if each is not None]
    return one[0] + other[0], min(first, default=None), max(last, default=None)


def _time(microseconds: int | None) -> datetime | None:
    """As Spark hands times to Python: of this machine's zone, which they do not say."""
    if microseconds is None:
        return None
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds).replace(microsecond=rest)  # noqa: DTZ006 - as said
