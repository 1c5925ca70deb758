"""The total order (debezium.md section L): the worked examples of L4, and positions that are none."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.debezium import position
from replicator.debezium.source_block import SOURCE_FIELDS
from tests.builders import made

pytestmark = pytest.mark.spark

PG, MY = {"connector": "postgresql"}, {"connector": "mysql"}

# L4: (stream, offset, is a snapshot row, source, _seq). Rows of one stream share a partition.
WORKED: list[tuple[str, int, bool, dict[str, Any], str]] = [
    ("pg", 0, True, PG | {"sequence": '[null,"30663768"]', "lsn": 30663768, "snapshot": "first"},
     "0000 00000000000000000000 0000000000000000 0000000000000000"),
    ("pg", 5, False, PG | {"sequence": '[null,"30660000"]', "lsn": 30660000},
     "0000 00000000000001d3d5a0 0000000001d3d5a0 0000000000000005"),
    ("pg", 6, False, PG | {"sequence": '[null,"30660000"]', "lsn": 30670000},
     "0000 00000000000001d3fcb0 0000000001d3fcb0 0000000000000006"),
    ("pg", 7, False, PG | {"sequence": '["30675000","30675000"]', "lsn": 30676000},
     "0000 00000000000001d41038 0000000001d41420 0000000000000007"),
    ("pg", 12, False, PG | {"sequence": '["30675000","30675000"]', "lsn": 30676000},
     "0000 00000000000001d41038 0000000001d41420 000000000000000c"),
    # L4 has the second number of its sequence here: a transaction that was open then would lose to it
    ("pg", 13, True, PG | {"sequence": '["30675000","30676400"]', "snapshot": "incremental"},
     "0000 00000000000001d41038 0000000001d41420 000000000000000d"),
    ("pg", 20, True, PG | {"sequence": '["30675000","30690000"]', "lsn": 30690000, "snapshot": "true"},
     "0000 00000000000001d41038 0000000001d41420 0000000000000014"),
    ("pg", 21, False, PG | {"sequence": '["30680000","30680000"]', "lsn": 30681000},
     "0000 00000000000001d423c0 0000000001d427a8 0000000000000015"),
    ("my", 41, False, MY | {"file": "binlog.000003", "pos": 1819},
     "0000 0000000300000000071b 0000000000000000 0000000000000029"),
    ("my", 56, False, MY | {"file": "binlog.999999", "pos": 1073741824},
     "0000 000f423f000040000000 0000000000000000 0000000000000038"),
    ("my", 57, False, MY | {"file": "binlog.1000000", "pos": 4},
     "0000 000f4240000000000004 0000000000000000 0000000000000039"),
    ("ms", 88, False, {"connector": "sqlserver", "commit_lsn": "00000027:00000AC0:0002"},
     "0000 0000002700000ac00002 0000000000000000 0000000000000058"),
    ("ora", 9, False, {"connector": "oracle", "commit_scn": "2868546"},
     "0000 000000000000002bc542 0000000000000000 0000000000000009"),
]  # fmt: skip

# D9 and what else is no position: the record has none, and nothing is guessed.
NOWHERE = [
    {},
    {"connector": "db2", "lsn": 5},
    MY,
    MY | {"file": "", "pos": 0},
    MY | {"file": "binlog.000003"},
    MY | {"file": "binlog", "pos": 4},
    MY | {"file": "binlog.12x", "pos": 4},
    MY | {"file": "binlog.4294967296", "pos": 4},
    MY | {"file": "binlog.99999999999", "pos": 4},
    MY | {"file": "binlog.000003", "pos": -1},
    MY | {"file": "binlog.000003", "pos": 1 << 48},
    PG,
    PG | {"lsn": -9223372036854775808},
    PG | {"lsn": -9223372036854776000 + 1000},
    PG | {"lsn": -9223372036854776000},
    PG | {"lsn": -9223372036854776000, "sequence": '["5","6"]'},
    PG | {"sequence": '["5","6"]'},
    PG | {"sequence": '["5","6"]', "lsn": -1},
    {"connector": "sqlserver"},
    {"connector": "sqlserver", "commit_lsn": "00"},
    {"connector": "sqlserver", "commit_lsn": "NULL"},
    {"connector": "sqlserver", "commit_lsn": "00000027:00000ac0:002"},
    {"connector": "sqlserver", "commit_lsn": "0000002g:00000ac0:0002"},
    {"connector": "oracle"},
    {"connector": "sqlserver", "commit_lsn": ""},
    {"connector": "sqlserver", "commit_lsn": "null", "change_lsn": "00000027:00000ac0:0002"},
    {"connector": "oracle", "scn": "0"},
    {"connector": "oracle", "scn": "2868546"},
    {"connector": "oracle", "commit_scn": "0", "scn": "2868546"},
    {"connector": "oracle", "commit_scn": "NULL", "scn": "2868546"},
    {"connector": "oracle", "commit_scn": "", "scn": ""},
    {"connector": "oracle", "commit_scn": "-1"},
    {"connector": "oracle", "commit_scn": "12e3"},
    {"connector": "oracle", "commit_scn": "2868545", "scn": "2868546"},
]

# D2, D9: where a snapshot row stands, and which ones say nothing about it (None).
SNAPSHOTS = [
    ({"connector": "sqlserver", "commit_lsn": "00000027:00000AC0:0002", "change_lsn": None}, "0000002700000ac00002"),
    ({"connector": "sqlserver", "commit_lsn": "NULL", "change_lsn": "NULL"}, None),
    ({"connector": "sqlserver", "commit_lsn": "00"}, None),
    ({"connector": "oracle", "scn": "2868546"}, f"{2868546:020x}"),
    ({"connector": "oracle", "scn": "2868546", "commit_scn": "0"}, f"{2868546:020x}"),
    ({"connector": "oracle", "scn": "2868546", "commit_scn": "NULL"}, f"{2868546:020x}"),
    ({"connector": "oracle", "scn": "2868546", "commit_scn": "2868500"}, f"{2868500:020x}"),
    ({"connector": "oracle", "scn": "0"}, None),
    (MY | {"file": "", "pos": 0}, None),
    ({"connector": "mongodb", "ord": 3}, f"{0:020x}"),
]

# A sequence that says nothing about the commit leaves the record's own LSN, twice (Q4).
OWN_LSN = [None, "", "junk", "[]", "null", "[null,null]", '[null,"9"]', '["x","9"]', '["-7","9"]', '["1e3",null]']


def positions(session: Any, rows: list[tuple[str, int, bool, dict[str, Any]]]) -> Any:
    """(stream, offset, is_snapshot, source) -> those rows with their own position."""
    told = [(stream, 0, offset, snapshot, json.dumps(source)) for stream, offset, snapshot, source in rows]
    records = made(session, told, "topic STRING, partition INT, offset BIGINT, s BOOLEAN, source STRING")
    parsed = records.withColumn("source", F.from_json("source", SOURCE_FIELDS)).withColumn(
        "epoch", F.lit(position.FIRST_EPOCH)
    )
    return parsed.withColumn("own", position.build(F.col("source"), F.col("s")))


def test_the_worked_examples_of_the_order_hold(exact: SparkSession) -> None:
    """L4, digit by digit."""
    placed = positions(exact, [example[:4] for example in WORKED])
    running = position.with_running_maximum(F.col("own"), F.col("s"), F.lit(position.LOWEST))
    found = placed.select("topic", "offset", position.seq(running, F.col("offset")).alias("seq")).collect()
    expected = {(stream, offset): seq.replace(" ", "") for stream, offset, _, _, seq in WORKED}
    assert {(row["topic"], row["offset"]): row["seq"] for row in found} == expected


def test_the_worked_examples_sort_as_told() -> None:
    """Bigger is newer: each stream's examples were listed in its own order."""
    for stream in ("pg", "my"):
        listed = [seq for name, _, _, _, seq in WORKED if name == stream]
        assert listed == sorted(listed)


def test_a_record_without_a_position_gets_none(exact: SparkSession) -> None:
    """Q7, D9: never zero, never a guess; and its `_seq` is NULL too."""
    placed = positions(exact, [("t", at, False, source) for at, source in enumerate(NOWHERE)])
    rows = placed.select("offset", "own", position.seq(F.col("own"), F.col("offset")).alias("seq")).collect()
    assert [NOWHERE[row["offset"]] for row in rows if row["own"] is not None or row["seq"] is not None] == []


def test_a_snapshot_row_stands_where_its_snapshot_was_taken(exact: SparkSession) -> None:
    """D2, D9: whatever the connector writes for "none" is no position, and never zero."""
    placed = positions(exact, [("t", at, True, source) for at, (source, _) in enumerate(SNAPSHOTS)])
    found = {row["offset"]: row["own"] for row in placed.select("offset", "own").collect()}
    expected = [None if major is None else f"{major}{0:016x}" for _, major in SNAPSHOTS]
    assert [found[at] for at in range(len(SNAPSHOTS))] == expected


def test_documents_are_ordered_by_their_offset(exact: SparkSession) -> None:
    """K4: MongoDB's events have no position, so all of a topic are at none."""
    placed = positions(exact, [("t", 7, False, {"connector": "mongodb", "ord": 3, "h": None})])
    row = placed.select(position.seq(F.col("own"), F.col("offset")).alias("seq")).first()
    assert row["seq"] == f"0000{0:020x}{0:016x}{7:016x}"


def test_an_unknown_commit_lsn_is_the_own_lsn(exact: SparkSession) -> None:
    """Neither 0 nor the partition's maximum (Q4)."""
    placed = positions(exact, [("t", at, False, PG | {"sequence": s, "lsn": 255}) for at, s in enumerate(OWN_LSN)])
    own = f"{255:020x}{255:016x}"
    assert {OWN_LSN[row["offset"]]: row["own"] for row in placed.collect()} == dict.fromkeys(OWN_LSN, own)


def test_the_running_maximum_starts_from_what_was_before_the_range(exact: SparkSession) -> None:
    """A snapshot row ranks above everything before it in its partition, in this batch or an earlier one (Q5)."""
    stale = MY | {"file": "binlog.000001", "pos": 4}
    newer = MY | {"file": "binlog.000002", "pos": 4}
    before = f"{9:08x}{9:012x}{0:016x}"
    placed = positions(
        exact, [("a", 0, True, stale), ("a", 1, False, newer), ("a", 2, True, stale), ("b", 0, True, stale)]
    )
    column = position.with_running_maximum(
        F.col("own"), F.col("s"), F.when(F.col("topic") == "b", before).otherwise(position.LOWEST)
    )
    found = {(row[0], row[1]): row[2] for row in placed.select("topic", "offset", column).collect()}
    in_first, in_second = f"{1:08x}{4:012x}{0:016x}", f"{2:08x}{4:012x}{0:016x}"
    assert found == {("a", 0): in_first, ("a", 1): in_second, ("a", 2): in_second, ("b", 0): before}


def test_what_was_open_while_an_incremental_snapshot_read_beats_its_rows(exact: SparkSession) -> None:
    """Its records may have LSNs below the one that the snapshot's row tells (Q5): PostgreSQL, ``read.only``."""
    committed = PG | {"sequence": '["90","110"]', "lsn": 110}
    read = PG | {"sequence": '["112","110"]', "snapshot": "incremental"}
    was_open = PG | {"sequence": '["112","112"]', "lsn": 100}
    placed = positions(exact, [("a", 5, False, committed), ("a", 6, True, read), ("a", 7, False, was_open)])
    running = position.with_running_maximum(F.col("own"), F.col("s"), F.lit(position.LOWEST))
    told = placed.select("offset", position.seq(running, F.col("offset")).alias("seq")).orderBy("seq").collect()
    assert [row["offset"] for row in told] == [5, 6, 7]


def test_text_order_is_numeric_order(exact: SparkSession) -> None:
    """P10, over random and extreme files, positions and offsets (seed 7)."""
    dice = random.Random(7)
    edges = ([0, 1, 999_999, 1_000_000, 2**32 - 1], [0, 4, 2**31, 2**32, 2**48 - 1], [0, 1, 2**31, 2**62])
    drawn = {tuple(dice.choice([dice.choice(part), dice.randrange(part[-1])]) for part in edges) for _ in range(300)}
    rows = [(f"{at}", offset, False, MY | {"file": f"b.{file:06d}", "pos": pos})
            for at, (file, pos, offset) in enumerate(drawn)]  # fmt: skip
    placed = positions(exact, rows).select("topic", position.seq(F.col("own"), F.col("offset")).alias("seq"))
    seqs = {row["topic"]: row["seq"] for row in placed.collect()}
    by_text = sorted(zip(seqs.values(), [None] * len(seqs), strict=True))
    by_number = sorted((place, seqs[f"{at}"]) for at, place in enumerate(drawn))
    assert {len(seq) for seq in seqs.values()} == {56}
    assert [seq for seq, _ in by_text] == [seq for _, seq in by_number]


def test_the_sources_time_takes_the_place_of_a_position(exact: SparkSession) -> None:
    """Q9 and the last line of L4: the time, then the offset; without a time there is no order."""
    rows = made(exact, [(1795177529245, 9), (None, 10)], "ts BIGINT, offset BIGINT")
    found = rows.select(position.seq(position.from_timestamp(F.col("ts")), F.col("offset")).alias("seq")).collect()
    expected = "0000 0000000001a1f8eb3f9d 0000000000000000 0000000000000009".replace(" ", "")
    assert [row["seq"] for row in found] == [expected, None]


def test_a_later_epoch_beats_every_position(exact: SparkSession) -> None:
    """Q2 and its line in L4: after a new start even offset 0 is newer."""
    row = exact.range(1).select(position.seq(F.lit(position.LOWEST), F.col("id"), F.lit("0001")).alias("seq")).first()
    assert row["seq"] == "0001 00000000000000000000 0000000000000000 0000000000000000".replace(" ", "")


# Which positions rise with the offsets of a partition, and whose they are.
STREAMS = [
    (MY | {"name": "a", "db": "x"}, "mysql/a"),
    ({"connector": "SQLServer", "name": "a", "db": "x"}, "sqlserver/a/x"),
    ({"connector": "oracle", "name": "a", "db": "x"}, "oracle/a"),
    (PG | {"name": "a", "sequence": "[null,null]"}, "postgresql/a"),
    (PG | {"name": "a"}, None),
    ({"connector": "mongodb", "name": "a"}, None),
    ({}, None),
]


def test_a_stream_is_a_server_whose_positions_rise(exact: SparkSession) -> None:
    """Q4: positions of two servers, and of two databases of SQL Server, do not compare; lone LSNs interleave."""
    placed = positions(exact, [("t", at, False, source) for at, (source, _) in enumerate(STREAMS)])
    found = {row[0]: row[1] for row in placed.select("offset", position.stream(F.col("source"))).collect()}
    assert [found[at] for at in range(len(STREAMS))] == [stream for _, stream in STREAMS]


def test_offset_mode_orders_by_the_offset_alone(exact: SparkSession) -> None:
    """Q8 and its line in L4."""
    row = exact.range(9, 10).select(position.seq(F.lit(position.LOWEST), F.col("id")).alias("seq")).first()
    assert row["seq"] == "0000 00000000000000000000 0000000000000000 0000000000000009".replace(" ", "")
