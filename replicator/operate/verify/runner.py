"""Run comparisons, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from replicator.errors import ReplicatorError
from replicator.jvm.failures import FAILURES
from replicator.operate.verify.verdict import Comparison, Verdict, VerifyOptions
from replicator.stages import engine_errors


def _ignore_verdict(verdict: Verdict) -> None:
    """Discard the verdict."""


def verify(
    spark: SparkSession,
    comparisons: Sequence[Comparison],
    options: VerifyOptions | None = None,
    note: Callable[[Verdict], None] = _ignore_verdict,
) -> Iterator[Verdict]:
    """Yield the verdict of each comparison in turn, and pass it to ``note`` too; a comparison that fails has its error
    in its verdict, and the others continue.
    """
    for comparison in comparisons:
        verdict = _run(spark, comparison, options or VerifyOptions())
        note(verdict)
        yield verdict


def sizes(spark: SparkSession, comparisons: Sequence[Comparison]) -> list[int]:
    """Return the number of rows that each comparison will read; 0 where its table cannot be read."""
    return [_size(spark, each) for each in comparisons]


def _size(spark: SparkSession, comparison: Comparison) -> int:
    try:
        return comparison.size(spark)
    except (ReplicatorError, *FAILURES):
        return 0


def _run(spark: SparkSession, comparison: Comparison, options: VerifyOptions) -> Verdict:
    try:
        return comparison.compare(spark, comparison.empty_verdict, options)
    except ReplicatorError as error:
        return replace(comparison.empty_verdict, error=error)
    except FAILURES as error:
        return replace(comparison.empty_verdict, error=engine_errors.to_table_error(error, comparison.table))
