"""A backlog is taken piece by piece, and ends as if it had been taken at once (decision 0095)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import Arrival, Column, Declaration, SourceSpec
from replicator.stages import silver, tuning
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.stages.table import dead_letters
from replicator.stages.tick.arrivals import NewRecords
from replicator.stages.tick.routing import BEGINNING
from tests.builders import Record, bronze, envelope, record

COLUMNS = (Column("id", "int"), Column("v", "string"))
SPEC = SourceSpec("s", ".*", tables=tuple(Declaration(f"shop.{name}", COLUMNS) for name in ("orders", "lines")))

ARRIVED = tuple(Arrival((topic,), version, 10) for topic, version in (("a", 2), ("b", 2), ("a", 4), ("b", 5), ("c", 7)))
NEWS = NewRecords(8, {"a": 1, "b": 1, "c": BEGINNING}, 50, frozenset({"p"}), ARRIVED)


@pytest.mark.parametrize(
    ("most", "least", "upto", "topics", "size"),
    [
        (30, 1, 4, "ab", 30),
        (0, 1, 2, "ab", 20),  # one commit at least
        (39, 4, 5, "ab", 40),  # one above what tables have applied, or what is whole no more
        (40, 1, 5, "ab", 40),
        (50, 1, 8, "abc", 50),  # nothing is left: all of it
        (0, 7, 8, "abc", 50),
        (0, 5, 8, "abc", 50),
    ],
)
def test_a_piece_ends_with_a_commit(most: int, least: int, upto: int, topics: str, size: int) -> None:
    """Behind what some table has applied, and with what fits, or one commit; topics come from where they were left."""
    piece = NEWS.piece(most, least)
    assert (piece.upto, "".join(sorted(piece.after)), piece.size) == (upto, topics, size)
    assert piece.after.items() <= NEWS.after.items()
    assert piece.paused == NEWS.paused
    assert piece.arrived == tuple(each for each in ARRIVED if each.version <= upto)


def change(table: str, offset: int, key: int, value: Any, op: str = "u", **where: Any) -> Record:
    after = None if op == "d" else {"id": key, "v": value}
    told = envelope(op, after, {"id": key, "v": None} if op == "d" else None, 10 + offset, f"shop.{table}", **where)
    return record(f"s.shop.{table}", offset, {"id": key}, told)


BATCHES = (
    [change("orders", 0, 1, "a", "r", snapshot="true"), change("orders", 1, 2, "a", "r", snapshot="last")],
    [change("orders", 2, 1, "b"), change("lines", 0, 1, "x", "c"), change("orders", 3, 2, None, "d")],
    [change("stray", 0, 1, "s", "c"), record("s.shop.lines", 1, {"id": 2}, "{oops"), change("lines", 2, 1, "y")],
    [change("orders", 4, 2, "c"), change("orders", 2, 1, "b"), record("s.shop.orders", 5, {"id": 1}, None)],
)


def lake(spark: SparkSession, folder: Path, *, delta: bool = False) -> Refinement:
    """With the batches in bronze, a commit for each."""
    bronze_format, memory = DeltaFormat() if delta else MemoryFormat(), MemoryFormat()
    at = Refinement(SPEC, bronze_format, memory, MemoryControl(), Lake(str(folder)), 1.0)
    for batch in BATCHES:
        at.bronze.append(bronze(spark, batch), at.lake.bronze("s"), None)
    return at


def rows(spark: SparkSession, at: Refinement) -> dict[str, list[tuple[Any, ...]]]:
    """What silver has, by table."""
    tables = at.silver.tables(spark, at.lake.silver_root("s"))
    return {name: sorted(map(tuple, at.silver.read(spark, at.lake.silver("s", name)).collect())) for name in tables}


def sums(accounts: list[Account]) -> dict[str, tuple[int, int]]:
    """Records that were read, and dead letters, by table."""
    names = sorted({account.table for account in accounts})
    mine = {name: [account for account in accounts if account.table == name] for name in names}
    return {name: (sum(a.read for a in own), sum(a.dead_lettered for a in own)) for name, own in mine.items()}


@pytest.mark.spark
def test_pieces_end_as_one_tick_does(exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit of bronze by itself, also where a run ends between two: the same rows, positions and dead letters,
    and each record is counted once; what somebody put together since, and what must be whole, is one piece.
    """
    whole, parted = (lake(exact, tmp_path / each) for each in "wp")
    compacted = lake(exact, tmp_path / "c", delta=True)
    once = silver.refine(exact, whole)
    monkeypatch.setattr(tuning, "MAX_TICK_BYTES", 0)
    pieces = list(silver.refine_pieces(exact, parted, lambda: True))
    assert {each.table for each in pieces} == {"s/shop.orders"}  # the run ended behind its first piece
    pieces += silver.refine(exact, parted)
    assert len([each for each in once if each.table == "s/shop.orders"]) == 1
    assert len([each for each in pieces if each.table == "s/shop.orders"]) == 3
    assert [each.applied + each.superseded for each in pieces if each.table == "s/shop.orders"] == [2, 2, 2]
    assert sums(pieces) == sums(once)
    assert not any(account.residue or account.error for account in pieces)
    assert rows(exact, parted) == rows(exact, whole)
    assert silver.refine(exact, parted) == []
    in_one = replace(lake(exact, tmp_path / "t"), source=replace(SPEC, whole_transactions=True))
    assert len([each for each in silver.refine(exact, in_one) if each.table == "s/shop.orders"]) == 1
    compacted.bronze.maintain(exact, compacted.lake.bronze("s"), 0)
    assert len([each for each in silver.refine(exact, compacted) if each.table == "s/shop.orders"]) == 1
    assert rows(exact, compacted) == rows(exact, whole)


@pytest.mark.spark
def test_a_table_that_stopped_is_left_alone_by_later_pieces(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told of once, the others reach the end, and the next run takes it up from where it stood."""
    monkeypatch.setattr(tuning, "MAX_TICK_BYTES", 0)
    monkeypatch.setattr(dead_letters, "_COUNTED_FROM", 1)
    strict = replace(lake(exact, tmp_path / "l"), dead_letter_share=0.0)
    accounts = silver.refine(exact, strict)
    stopped = [account.table for account in accounts if account.error is not None]
    assert stopped == ["s/shop.lines"]
    whole = lake(exact, tmp_path / "w")
    silver.refine(exact, whole)
    assert {name: of for name, of in rows(exact, strict).items() if name != "shop.lines"} == {
        name: of for name, of in rows(exact, whole).items() if name != "shop.lines"
    }
    silver.refine(exact, replace(strict, dead_letter_share=1.0))
    assert rows(exact, strict) == rows(exact, whole)
