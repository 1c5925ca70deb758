"""Comparisons, made one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from replicator.errors import ReplicatorError
from replicator.jvm.failures import FAILURES
from replicator.operate.verify.verdict import Comparison, Verdict, VerifyOptions
from replicator.stages import engine_errors


def _ignore_verdict(verdict: Verdict) -> None:
    """Nobody keeps it."""


def verify(
    spark: SparkSession,
    comparisons: Sequence[Comparison],
    look: VerifyOptions | None = None,
    note: Callable[[Verdict], None] = _ignore_verdict,
) -> Iterator[Verdict]:
    """A verdict for each, in turn, given to ``note`` too; one that cannot be told does not keep the others from it."""
    for each in comparisons:
        told = _run(spark, each, look or VerifyOptions())
        note(told)
        yield told


def sizes(spark: SparkSession, comparisons: Sequence[Comparison]) -> list[int]:
    """How many rows each will read; 0 where its table cannot be read."""
    return [_size(spark, each) for each in comparisons]


def _size(spark: SparkSession, comparison: Comparison) -> int:
    try:
        return comparison.size(spark)
    except (ReplicatorError, *FAILURES):
        return 0


def _run(spark: SparkSession, comparison: Comparison, look: VerifyOptions) -> Verdict:
    try:
        return comparison.take(spark, comparison.nothing, look)
    except ReplicatorError as error:
        return replace(comparison.nothing, error=error)
    except FAILURES as error:
        return replace(comparison.nothing, error=engine_errors.to_table_error(error, comparison.table))
