"""The table of records that cannot be applied: one row per Kafka place, with the reason (debezium.md R4, R5)."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import DeadLetterShare
from replicator.spec import Evolution
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.transforms.dead_letters import COLUMNS, COORDINATES

KEYLESS = (
    "none of these records has a key: declare the columns that identify a row as `keys`, or `append_only: true` if "
    "none do"
)
"""The warning for a batch in which a missing key is the only problem. Other records of the table may have one."""

_COUNTED_FROM = 100
_MOST = 1000
_FIX = (
    "The table was not changed. The dead letters give the reasons: fix the declaration or the source, run again, "
    "then `replicator dead-letters retry`, which removes letters whose records can be applied. If nothing can be "
    "fixed, `dead_letter: {max_share: 1}` lets the table continue without them."
)


def write(spark: SparkSession, at: Refinement, letters: DataFrame) -> None:
    """Append dead letters that are not stored yet, so that repeating a batch does not duplicate them (K-S5).

    Letters that a user dropped are not written again unless the reason is another one now. Tables of a source write
    theirs one after the other.
    """
    with at.turn:
        _append_new(spark, at, letters)


def _append_new(spark: SparkSession, at: Refinement, letters: DataFrame) -> None:
    table, dropped = at.lake.dead_letters(at.source.name), at.lake.dropped_letters(at.source.name)
    if at.bronze.version(spark, table) is not None:
        add_missing_columns(spark, at)
        letters = letters.join(at.bronze.read(spark, table).select(*COORDINATES), list(COORDINATES), how="left_anti")
    if at.bronze.version(spark, dropped) is not None:
        given_up = [*COORDINATES, "reason"]
        letters = letters.join(at.bronze.read(spark, dropped).select(*given_up), given_up, how="left_anti")
    if not letters.isEmpty():
        at.bronze.append(letters.withColumn("first_seen", F.current_timestamp()), table, None)
        failpoints.hit("silver.letters_buried")


def add_missing_columns(spark: SparkSession, at: Refinement) -> None:
    """Add the columns that a table of an earlier release lacks; they are NULL in its letters."""
    table = at.lake.dead_letters(at.source.name)
    present = at.bronze.read(spark, table).columns
    added = tuple((name, kind) for name, kind in COLUMNS.items() if name not in present)
    if added:
        at.bronze.evolve(spark, table, Evolution(added))


def refuse_too_many(account: Account, share: float) -> None:
    """Raise DeadLetterShare if a batch has more rejects than the policy allows (R5); a share of 1 allows all."""
    rejected = account.dead_lettered
    if share >= 1:
        return
    if rejected >= _MOST or (rejected >= _COUNTED_FROM and rejected > share * account.read):
        because = f": {KEYLESS}" if KEYLESS in account.warnings else ""
        raise DeadLetterShare(
            f"{rejected} of {account.read} records cannot be applied{because}",
            where=account.table,
            fix=_FIX,
        )
