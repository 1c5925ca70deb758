"""A connector that is restarted in the midst of a transaction and numbers the rest of it lower (debezium.md Q12)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.debezium import envelope, position
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.row import trace
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.tick.source_state import SourceState
from replicator.transforms import watermarks
from tests.builders import Record, bronze, record

pytestmark = pytest.mark.spark

TOPIC = "p.public.t"


def change(offset: int, op: str, key: int, value: int, tx: int, commit: int | None, lsn: int) -> Record:
    """One record of PostgreSQL; ``commit`` is what the connector last saw committed, None if it saw nothing."""
    source = {"connector": "postgresql", "name": "p", "db": "d", "schema": "public", "table": "t", "ts_ms": 1}
    source |= {
        "txId": tx,
        "lsn": lsn,
        "sequence": json.dumps([None if commit is None else str(commit), str(lsn)], separators=(",", ":")),
    }
    after = {"id": key, "v": value}
    return record(TOPIC, offset, {"id": key}, {"before": None, "after": after, "source": source, "op": op})


HISTORY = [
    change(0, "c", 1, 10, tx=1, commit=500, lsn=510),
    change(1, "c", 2, 20, tx=2, commit=900, lsn=600),
    # here the connector dies, and has forgotten 900
    change(2, "u", 2, 21, tx=2, commit=None, lsn=610),
    change(3, "c", 3, 30, tx=2, commit=None, lsn=620),
    change(4, "u", 3, 31, tx=2, commit=None, lsn=630),
    # another transaction of the past is sent again: not of the one that holds the maximum
    change(5, "u", 1, 9, tx=1, commit=400, lsn=505),
]


def taken(spark: SparkSession, folder: Path, cuts: Sequence[int]) -> Refinement:
    """Silver of the history; every batch is read by a process of its own."""
    source = SourceSpec("p", ".*", tables=(Declaration("public.t", (Column("id", "int"), Column("v", "int"))),))
    memory = MemoryFormat()
    at = Refinement(source, memory, memory, MemoryControl(), Lake(str(folder)))
    bounds = [0, *cuts, len(HISTORY)]
    for start, end in pairwise(bounds):
        at = replace(at, state=SourceState())
        memory.append(bronze(spark, HISTORY[start:end]), at.lake.bronze("p"), None)
        assert [account.error for account in silver.refine(spark, at)] == [None]
    return at


def ends(spark: SparkSession, folder: Path, cuts: Sequence[int]) -> dict[int, tuple[int, str]]:
    """v, and major and minor of `_seq`, by key."""
    at = taken(spark, folder, cuts)
    rows = at.silver.read(spark, at.lake.silver("p", "public.t")).collect()
    return {row["id"]: (row["v"], row["_seq"][4:40]) for row in rows}


def place(major: int, minor: int) -> str:
    return f"{major:020x}{minor:016x}"


@pytest.mark.parametrize("cuts", [(), (2,), (3, 5)], ids=str)
def test_the_rest_of_a_transaction_stands_behind_its_beginning(exact: Any, tmp_path: Path, cuts: Sequence[int]) -> None:
    """Q12, in one batch, across batches and processes; other transactions keep their own places (Q4)."""
    assert ends(exact, tmp_path, cuts) == {
        1: (10, place(500, 510)),
        2: (21, place(900, 610)),
        3: (31, place(900, 630)),
    }


def test_a_change_that_is_late_within_its_transaction_needs_no_other_place(exact: Any) -> None:
    """A table is looked through for places to fix only where the major part fell (Q12): to look through all takes half
    as long as to decode it.
    """
    first, late = change(0, "c", 1, 10, tx=2, commit=900, lsn=620), change(1, "u", 1, 11, tx=2, commit=900, lsn=610)
    fallen = change(2, "u", 1, 12, tx=2, commit=None, lsn=630)

    def is_split(records: Sequence[Record]) -> bool:
        rows = envelope.describe(bronze(exact, records)).withColumn("epoch", F.lit(position.FIRST_EPOCH))
        [told] = watermarks.compute(
            watermarks.order_columns(rows), F.lit(None).cast(watermarks.WATERMARK_TYPE)
        ).collect()
        return bool(told["split"])

    assert not is_split([first, late])
    assert is_split([first, late, fallen])


def test_explain_places_the_rest_of_a_transaction_as_silver_did(exact: Any, tmp_path: Path) -> None:
    """The life of a row ends with the `_seq` that the row has."""
    at = taken(exact, tmp_path, (3,))
    for key, offset in ((2, 2), (3, 4)):
        found = trace.read(exact, at, "public.t", str(key))
        assert found.stored is not None
        assert found.seqs[TOPIC, 0, offset] == found.stored["_seq"]
