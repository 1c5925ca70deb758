"""Files of a table without deletion vectors that are written anew hold what Delta's MERGE would have left, and no other
file is touched.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import StaleWriter
from replicator.formats import delta_reach, delta_rewrite
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge import Merging
from replicator.spec import Applied, Progress, Table
from replicator.transforms import merge
from tests.builders import in_files_of, made

pytestmark = pytest.mark.spark

DDL = "k INT, `v.1` STRING, `_op` STRING"
WAYS = {"in files": (256, 16), "with small files": (256, 2), "merged": (0, 16)}
"""Of up to how many files some are replaced, and from how many on small ones are taken into a batch's own."""
BATCHES: list[list[tuple[int, str | None, str]]] = [
    [(30, "b", "upsert"), (170, None, "delete"), (255, "new", "upsert"), (999, None, "delete")],
    [(key, None, "delete") for key in range(100, 200, 10)],
    [(255, None, "delete"), (1000, "new", "upsert"), (1001, "new", "upsert")],
    [(1002, "new", "upsert")],
    [(5000, None, "delete")],
]
"""Rows of several files, and of none; all that is left of a file; a row of the newest file; new rows alone; nothing."""


def rows(spark: SparkSession, told: Sequence[tuple[int, str | None, str]]) -> DataFrame:
    """A difference."""
    return made(spark, told, DDL)


def filled(spark: SparkSession, format_: DeltaFormat, folder: Path) -> Table:
    """Forty keys in four files, in their order although they come in another."""
    table = Table("t", str(folder), ("k",))
    keys = [*range(390, -1, -20), *range(0, 400, 20)]
    format_.put(rows(spark, [(key, "a", "upsert") for key in keys]), table, Progress("model", 0))
    return table


def actions(table: Table, version: int) -> dict[str, list[dict[str, Any]]]:
    """What the log says of one commit, by kind."""
    found: dict[str, list[dict[str, Any]]] = {"add": [], "remove": [], "cdc": []}
    for line in Path(table.location, "_delta_log", f"{version:020}.json").read_text().splitlines():
        for kind, action in json.loads(line).items():
            found.setdefault(kind, []).append(action)
    return found


def feed(spark: SparkSession, table: Table, version: int) -> list[tuple[str, ...]]:
    """What changed in one version, as Delta tells it."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    told = reader.option("startingVersion", version).option("endingVersion", version).load(table.location)
    return sorted(tuple(map(str, row)) for row in told.drop("_commit_timestamp").collect())


def test_replaced_files_hold_what_a_merge_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows, feed, counts, progress and history, whatever becomes of the files; and no reader needs deletion vectors."""
    session, told = in_files_of(spark.newSession(), 10), dict[str, list[Any]]()
    for way, (files, small) in WAYS.items():
        monkeypatch.setattr(delta_reach, "_SMALL_FILES", small)
        format_ = DeltaFormat(rewritten_bytes=0, marked_files=files)
        table, told[way] = filled(session, format_, tmp_path / way), []
        for number, batch in enumerate(BATCHES, 1):
            applied = format_.put(rows(session, batch), table, Progress("model", number))
            assert format_.progress(session, table, "model") == Progress("model", number)
            told[way].append((applied, feed(session, table, applied.version)))
        told[way].append(sorted(map(str, format_.read(session, table).collect())))
        assert not list((tmp_path / way).glob("deletion_vector_*.bin"))
    assert told["in files"] == told["merged"] == told["with small files"]
    assert [each[0] for each in told["in files"][:3]] == [Applied(1, 1, 1, 1), Applied(0, 0, 9, 2), Applied(2, 0, 1, 3)]


@pytest.mark.parametrize("compared", [100, 0], ids=["each key", "where keys are"])
def test_only_files_that_hold_a_changed_row_are_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    """A2, A3: a file goes on to hold a range of keys; what may hold none is not read, and new rows replace nothing."""
    monkeypatch.setattr(delta_reach, "_COMPARED_KEYS", compared)
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(rewritten_bytes=0)
    table = filled(session, format_, tmp_path / "t")
    ranges = {json.loads(each["stats"])["minValues"]["k"]: each["path"] for each in actions(table, 0)["add"]}
    assert sorted(ranges) == [0, 100, 200, 300]
    Path(table.location, ranges[200]).rename(tmp_path / "away")
    format_.put(rows(session, [(30, "b", "upsert"), (105, None, "delete")]), table, Progress("model", 1))
    done = actions(table, 1)
    assert [each["path"] for each in done["remove"]] == [ranges[0]]
    [kept] = [json.loads(each["stats"]) for each in done["add"]]
    assert (kept["numRecords"], kept["minValues"]["k"], kept["maxValues"]["k"]) == (10, 0, 90)
    format_.put(rows(session, [(1000, "new", "upsert")]), table, Progress("model", 2))
    assert [len(actions(table, 2)[kind]) for kind in ("add", "remove", "cdc")] == [1, 0, 0]
    (tmp_path / "away").rename(Path(table.location, ranges[200]))
    assert format_.read(session, table).count() == 41


def test_many_changes_are_not_sent_to_every_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what they leave nor what they are counted as hangs on their number."""
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(rewritten_bytes=0)
    monkeypatch.setattr(delta_reach, "NEAR_KEYS", 1)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    table = filled(session, format_, tmp_path / "t")
    assert format_.put(rows(session, BATCHES[0]), table, Progress("model", 1)) == Applied(1, 1, 1, 1)
    held = {row["k"]: row["v.1"] for row in format_.read(session, table).collect()}
    assert (len(held), held[30], held[255], held.get(170)) == (40, "b", "new", None)


def test_a_writer_that_came_between_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """F-W2: whatever it changed, files are not replaced over it."""
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(rewritten_bytes=0)
    table = filled(session, format_, tmp_path / "t")
    log = format_._log(table)
    snapshot = log.snapshot(session)
    files = log.live_files(session, snapshot) or ()
    format_.put(rows(session, [(1000, "new", "upsert")]), table, Progress("model", 1))
    sides = merge.Sides()
    values = {column: sides.of_change(column) for column in ("k", "v.1")}
    late = rows(session, [(30, "late", "upsert")])
    with pytest.raises(StaleWriter):
        delta_rewrite.merged(
            delta_rewrite.Target(table.location, snapshot, files),
            Merging(late, ("k",), values, values, sides.of_change("_op") == "upsert"),
            Progress("other", 1),
        )
    assert format_.read(session, table).where("`v.1` = 'late'").isEmpty()
