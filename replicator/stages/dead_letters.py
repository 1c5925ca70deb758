"""Where records go that cannot be applied: one row per Kafka place, with the reason (debezium.md R4, R5)."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from replicator.errors import DeadLetterShare
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement

_COUNTED_FROM = 100
_MOST = 1000


def bury(spark: SparkSession, at: Refinement, letters: DataFrame) -> None:
    """Append dead letters that are not there yet, so that repeating a batch does not double them (K-S5)."""
    table = at.lake.dead_letters(at.source.name)
    if at.bronze.version(spark, table) is not None:
        letters = letters.join(at.bronze.read(spark, table).select(*table.keys), list(table.keys), how="left_anti")
    if not letters.isEmpty():
        at.bronze.append(letters, table, None)


def refuse_too_many(account: Account, share: float) -> None:
    """Raise DeadLetterShare when a batch has more rejects than the policy allows (R5)."""
    rejected = account.dead_lettered
    if rejected >= _MOST or (rejected >= _COUNTED_FROM and rejected > share * account.read):
        raise DeadLetterShare(
            f"{rejected} of {account.read} records cannot be applied",
            where=account.table,
            mend="The table is as it was. The dead letters say why: mend the declaration or the source, then "
            "run again.",
        )
