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
"""The number of letters, and the first and the last time, in microseconds."""


def counts(survey: ArrowSurvey, source: str, choice: LetterFilter, *, dropped: bool = False) -> list[Count]:
    """Return the counts as ``dead_letters.counts`` does."""
    table = survey.lake.dropped_letters(source) if dropped else survey.lake.dead_letters(source)
    by_group: dict[_Group, _Found] = {}
    for part in survey.read(table, ("table", "reason", "first_seen"), _group):
        for group, found in part.items():
            by_group[group] = _merge(by_group[group], found) if group in by_group else found
    chosen = {group: found for group, found in by_group.items() if choice.matches(*group)}
    return sort_counts(
        Count(source, table, reason, letters, _time(first), _time(last))
        for (table, reason), (letters, first, last) in chosen.items()
    )


def _group(_: DataFile, rows: pa.Table) -> dict[_Group, _Found]:
    import pyarrow.compute as pc  # noqa: PLC0415 - on demand

    found: dict[_Group, _Found] = {}
    for table in pc.unique(rows["table"]).to_pylist():
        table_rows = rows.filter(pc.is_null(rows["table"]) if table is None else pc.equal(rows["table"], table))
        for reason in pc.unique(table_rows["reason"]).to_pylist():
            letters = table_rows.filter(pc.equal(table_rows["reason"], reason))
            seen = pc.min_max(letters["first_seen"]).as_py()
            found[table, reason] = letters.num_rows, seen["min"], seen["max"]
    return found


def _merge(one: _Found, other: _Found) -> _Found:
    first_times = [each for each in (one[1], other[1]) if each is not None]
    last_times = [each for each in (one[2], other[2]) if each is not None]
    return one[0] + other[0], min(first_times, default=None), max(last_times, default=None)


def _time(microseconds: int | None) -> datetime | None:
    """Return a time as Spark converts it to Python: naive, in the local time zone."""
    if microseconds is None:
        return None
    seconds, rest = divmod(microseconds, 1_000_000)
    return datetime.fromtimestamp(seconds).replace(microsecond=rest)  # noqa: DTZ006 - naive, like Spark's
