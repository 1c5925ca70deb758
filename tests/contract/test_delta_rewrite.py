"""Files of a table without deletion vectors that are written anew hold what Delta's MERGE would have left, and no other
file is touched; of a model's table with them, rows are marked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import StaleWriter
from replicator.formats import delta_data_skipping, delta_rewrite
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge import MergeSpec
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.spec import Applied, Progress, Table
from replicator.transforms import merge
from tests.builders import in_files_of, made

pytestmark = pytest.mark.spark

DDL = "k INT, `v.1` STRING, `_op` STRING"
WAYS = {
    "in files": (256, 16, None), "with small files": (256, 2, None), "merged": (0, 16, None), "marked": (256, 16, True)
}  # fmt: skip
"""Of up to how many files some are replaced, and from how many on small ones are taken into a batch's own; and whether
the table is to have deletion vectors.
"""
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


def filled(spark: SparkSession, format_: DeltaFormat, folder: Path, *, vectors: bool | None = None) -> Table:
    """Forty keys in four files, in their order although they come in another."""
    table = Table("t", str(folder), ("k",), deletion_vectors=vectors)
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
    """Rows, feed, counts and progress, whatever becomes of the files; only a table that is to have deletion vectors has
    some.
    """
    session, told = in_files_of(spark.newSession(), 10), dict[str, list[Any]]()
    for way, (files, small, vectors) in WAYS.items():
        monkeypatch.setattr(delta_data_skipping, "_SMALL_FILES", small)
        format_ = DeltaFormat(MergeThresholds(rewritten_bytes=0, marked_files=files))
        table, told[way] = filled(session, format_, tmp_path / way, vectors=vectors), []
        for number, batch in enumerate(BATCHES, 1):
            applied = format_.put(rows(session, batch), table, Progress("model", number))
            assert format_.progress(session, table, "model") == Progress("model", number)
            told[way].append((applied, feed(session, table, applied.version)))
        held = [(30, "b", "upsert"), (1000, "new", "upsert"), (40, "b", "upsert"), (5000, None, "delete")]
        applied = format_.put(rows(session, held), table, Progress("model", 6), repeats=True)
        told[way].append((applied, feed(session, table, applied.version)))
        told[way].append(sorted(map(str, format_.read(session, table).collect())))
        assert bool(list((tmp_path / way).glob("deletion_vector_*.bin"))) is bool(vectors)
    assert told["in files"] == told["merged"] == told["with small files"] == told["marked"]
    assert [each[0] for each in told["in files"][:3]] == [Applied(1, 1, 1, 1), Applied(0, 0, 9, 2), Applied(2, 0, 1, 3)]
    assert told["in files"][5][0] == Applied(0, 1, 0, 6)  # what the table has as it is was passed over


def test_changed_rows_are_those_that_one_commit_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """From the files of its feed, or new ones; of several commits, or under other columns, they are not told."""
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table = filled(session, format_, tmp_path / "t")

    def told(after: int, upto: int) -> dict[int, str] | None:
        found = format_.changed_rows(session, table, after, upto)
        return None if found is None else {row["k"]: row["v.1"] for row in found.collect()}

    format_.put(
        rows(session, [(30, "b", "upsert"), (170, None, "delete"), (255, "n", "upsert")]), table, Progress("m", 1)
    )
    assert told(0, 1) == {30: "b", 255: "n"}
    format_.maintain(session, table, 1000)
    first = format_.version(session, table) or 0
    assert (told(0, first), told(1, first)) == ({30: "b", 255: "n"}, {})
    format_.put(rows(session, [(1000, "n", "upsert"), (1001, "n", "upsert")]), table, Progress("m", 2))
    assert told(first, first + 1) == {1000: "n", 1001: "n"}
    assert told(0, first + 1) is told(0, first) is None  # two commits; no newest version
    format_.replace(rows(session, [(1, "r", "upsert")]).drop("_op"), table, Progress("m", 3))
    assert told(first + 1, first + 2) is None


def test_deletion_vectors_are_asked_for_and_given_up(spark: SparkSession, tmp_path: Path) -> None:
    """A table gets them with its next difference, makes no more once they are refused, and stays as it is where nothing
    is said; its keys that changed are those of the differences alone.
    """
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table = filled(session, format_, tmp_path / "t")
    marks: list[int] = []
    for number, wanted in enumerate((True, None, False, None), 1):
        batch = [(10 * number, "b", "upsert"), (100 + 10 * number, None, "delete")]
        asked = replace(table, deletion_vectors=wanted)
        applied = format_.put(rows(session, batch), asked, Progress("model", number))
        assert (applied.inserted, applied.updated, applied.deleted) == (0, 1, 1)
        marks.append(len(list(Path(table.location).glob("deletion_vector_*.bin"))))
    assert 0 < marks[0] < marks[1] == marks[2] == marks[3]
    held = {row["k"]: row["v.1"] for row in format_.read(session, table).collect()}
    left = [key for key in range(0, 400, 10) if key not in (110, 120, 130, 140)]
    assert held == {key: "b" if key in (10, 20, 30, 40) else "a" for key in left}
    version = format_.version(session, table)
    assert version == 6  # two of them set the table's properties
    keys = format_.changed_keys(session, table, 0, version)
    assert keys is not None
    assert sorted(row["k"] for row in keys.collect()) == [10, 20, 30, 40, 110, 120, 130, 140]


@pytest.mark.parametrize("compared", [100, 0], ids=["each key", "where keys are"])
def test_only_files_that_hold_a_changed_row_are_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    """A2, A3: a file goes on to hold a range of keys; what may hold none is not read, and new rows replace nothing."""
    monkeypatch.setattr(delta_data_skipping, "_MAX_COMPARED_KEYS", compared)
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(MergeThresholds(rewritten_bytes=0))
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
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    monkeypatch.setattr(delta_data_skipping, "MAX_BROADCAST_KEYS", 1)
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    table = filled(session, format_, tmp_path / "t")
    assert format_.put(rows(session, BATCHES[0]), table, Progress("model", 1)) == Applied(1, 1, 1, 1)
    held = {row["k"]: row["v.1"] for row in format_.read(session, table).collect()}
    assert (len(held), held[30], held[255], held.get(170)) == (40, "b", "new", None)


def test_a_writer_that_came_between_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """F-W2: whatever it changed, files are not replaced over it."""
    session, format_ = in_files_of(spark.newSession(), 10), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table = filled(session, format_, tmp_path / "t")
    log = format_._log(table)
    snapshot = log.snapshot(session)
    files = log.live_files(session, snapshot) or ()
    format_.put(rows(session, [(1000, "new", "upsert")]), table, Progress("model", 1))
    sides = merge.Sides()
    values = {column: sides.of_change(column) for column in ("k", "v.1")}
    late = rows(session, [(30, "late", "upsert")])
    with pytest.raises(StaleWriter):
        delta_rewrite.execute(
            delta_rewrite.Target(table.location, snapshot, files),
            MergeSpec(late, ("k",), values, values, sides.of_change("_op") == "upsert"),
            Progress("other", 1),
        )
    assert format_.read(session, table).where("`v.1` = 'late'").isEmpty()
