"""The outcome of a rebuild of one table, in rows and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import ReplicatorError
from replicator.operate.rebuilding.swap import TableComparison
from replicator.transforms.comparison import compare
from replicator.transforms.display import as_texts

EQUAL, WRITTEN, REPLACED, FINISHED, PAUSED = "equal", "written", "replaced", "finished", "paused"
SHOWN = 5
"""The number of keys that a result names at most."""


@dataclass(frozen=True)
class RebuildResult:
    """The outcome of the rebuild of one table, or with ``dry`` what it would be.

    ``rows``: rows after the rebuild, deleted ones included; ``added`` and ``changed`` of them differ from the present
    table. ``gone``: rows that the rebuild deletes. ``of_deleted``: those of all three that are deleted rows both before
    and after. ``skipped``: rows left unchanged in the rebuild of one column because their position in the source's
    order differs from that of their rebuilt row. ``named``: a few of the differing keys. ``letters``: new dead letters.
    ``columns``: differences other than rows, such as types, key and partitions.

    ``verdict``: EQUAL (nothing was written), WRITTEN (the difference was written), REPLACED (all rows were replaced),
    FINISHED (an interrupted rebuild was completed) or PAUSED (the table was left unchanged). ``seconds`` is wall time.
    ``warnings``: the model's checks of severity `warn` that its rows break. ``error``: why the table was left
    unchanged.
    """

    table: str
    rows: int = 0
    added: int = 0
    changed: int = 0
    gone: int = 0
    of_deleted: int = 0
    skipped: int = 0
    letters: int = 0
    columns: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    verdict: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    error: ReplicatorError | None = None


def summarize(comparison: TableComparison) -> RebuildResult:
    """Summarize the comparison of one table."""
    result = RebuildResult(comparison.table.name, comparison.rebuilt.count(), columns=tuple(comparison.mismatches))
    if comparison.found is None or comparison.current is None:
        key = f"key: now {', '.join(map(names.decode, comparison.table.keys))}"
        deleted = 0 if comparison.current is None else comparison.current.count()
        return replace(result, added=result.rows, gone=deleted, columns=(key, *result.columns), verdict=REPLACED)
    return replace(
        result,
        added=comparison.counts.get(compare.EXTRA, 0),
        changed=comparison.counts.get(compare.DIFFERING, 0),
        gone=comparison.counts.get(compare.MISSING, 0),
        of_deleted=_count_deleted(comparison.current, comparison.rebuilt, comparison.found, comparison.table.keys)
        if comparison.counts
        else 0,
        named=_describe_keys(comparison.found),
        verdict=EQUAL if comparison.is_equal else REPLACED if comparison.is_replaced else WRITTEN,
    )


def _count_deleted(present: DataFrame, wanted: DataFrame, found: DataFrame, keys: Sequence[str]) -> int:
    """Return the number of differing keys whose row is deleted or absent on both sides."""
    if "_deleted" not in wanted.columns:
        return 0
    shown = (rows.where(~F.col("_deleted")).select(*map(names.quote_spark, keys)) for rows in (present, wanted))
    return found.join(next(shown), list(keys), how="left_anti").join(next(shown), list(keys), how="left_anti").count()


def with_history(result: RebuildResult, history_comparison: TableComparison | None) -> RebuildResult:
    """Add a remark on the table's history if that differs."""
    if history_comparison is None or history_comparison.is_equal:
        return result
    remark = (
        "the history"
        if history_comparison.found is None
        else f"the history: {sum(history_comparison.counts.values())} rows"
    )
    verdict = WRITTEN if result.verdict == EQUAL else result.verdict
    return replace(result, columns=(*result.columns, remark, *history_comparison.mismatches), verdict=verdict)


def _describe_keys(found: DataFrame) -> tuple[str, ...]:
    """Describe a few of the differing keys, each with its change."""
    words = {compare.MISSING: "gone", compare.EXTRA: "added"}
    sentences = []
    own = [column for column in found.columns if column not in (compare.VERDICT, compare.COLUMNS)]
    for row in found.limit(SHOWN).select(*as_texts(own), compare.VERDICT, compare.COLUMNS).collect():
        verdict, columns = row[compare.VERDICT], row[compare.COLUMNS]
        key = ", ".join(f"{names.decode(column)}={row[column]}" for column in own)
        sentences.append(f"{key}: {words.get(verdict) or ', '.join(columns)}")
    return tuple(sentences)
