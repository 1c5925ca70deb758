"""Tables that a source's file names and silver does not have: whatever the source has of them is missing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from replicator.database_snapshots import Database
from replicator.operate.verify.verdict import SOURCE, Comparison, Verdict, VerifyOptions

_CHUNK = 10_000
_CONSTANT = "'1'"


def comparison(table: str, name: str, database: Database, against: str) -> Comparison:
    """Of a ``table``, as verdicts call it, that the source knows by ``name``. It is told as of one moment, and not
    looked at again: a table that was made meanwhile is compared by the next ``verify``.
    """
    return Comparison(SOURCE, table, against, partial(_count_rows, name=name, database=database), _size)


def _size(_: SparkSession) -> int:
    """Of silver there is nothing to read, and how many rows the source has is the question."""
    return 0


def _count_rows(_: SparkSession, told: Verdict, look: VerifyOptions, *, name: str, database: Database) -> Verdict:
    with database.read_snapshot() as snapshot:
        texts = [(held.name, _CONSTANT) for held in snapshot.columns(name)[:1]]
        rows = 0
        for chunk in snapshot.rows(name, texts, None, _CHUNK):
            rows += len(chunk)
            look.advance(len(chunk))
        position = f"source at {snapshot.position}" if snapshot.position else ""
    named = ("all rows: silver does not have the table",) if rows else ()
    return replace(told, rows=rows, missing=rows, named=named, position=position)
