"""Comparison of tables that a source's file names and silver does not have: all rows that the source has of them are
missing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from replicator.database_snapshots import Database
from replicator.operate.verify.verdict import SOURCE, Comparison, Verdict, VerifyOptions

_CHUNK = 10_000
_CONSTANT = "'1'"


def comparison(table: str, name: str, database: Database, against: str) -> Comparison:
    """Return the comparison of a ``table``, named as in verdicts, that the source knows as ``name``. It is made as of
    one moment and not repeated: a table that is created meanwhile is compared by the next ``verify``.
    """
    return Comparison(SOURCE, table, against, partial(_count_rows, name=name, database=database), _size)


def _size(_: SparkSession) -> int:
    """Return 0: silver has nothing to read, and the number of rows in the source is not known in advance."""
    return 0


def _count_rows(_: SparkSession, verdict: Verdict, options: VerifyOptions, *, name: str, database: Database) -> Verdict:
    with database.read_snapshot() as snapshot:
        texts = [(column.name, _CONSTANT) for column in snapshot.columns(name)[:1]]
        rows = 0
        for chunk in snapshot.rows(name, texts, None, _CHUNK):
            rows += len(chunk)
            options.advance(len(chunk))
        position = f"source at {snapshot.position}" if snapshot.position else ""
    named = ("all rows: silver does not have the table",) if rows else ()
    return replace(verdict, rows=rows, missing=rows, named=named, position=position)
