"""Rows of a large table that are marked and added are what Delta's MERGE would have made of them, and files that hold
no key of a batch are not read.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.errors import StaleWriter
from replicator.formats import delta_data_skipping, delta_deletion_vectors
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_data_skipping import BatchKeys, comparable_columns
from replicator.formats.delta_merge import SIDES, MergeSpec
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.memory import MemoryFormat
from replicator.spec import Applied, Progress, Table
from replicator.transforms import fold, merge
from tests.builders import SILVER, UNSENT, changes, delete, exact_session, in_files_of, made, states, upsert

pytestmark = pytest.mark.spark

WAYS = {"marked": (256, 16), "with small files": (256, 2), "merged": (0, 16)}
"""Up to how many files rows are marked, and from how many on small ones are taken into a batch's own."""
START = range(0, 400, 10)
BATCHES = [
    [(30, "20", False), (170, "20", False), (250, "20", True), (999, "20", False)],
    [(50, "30", False), (170, "30", True), *[(key, "30", False) for key in range(300, 400, 10)]],
    [(30, "20", False), (999, "20", False), (35, "40", False)],
]
"""Rows of several files; of files with vectors, and all of one; once more, beside one between the others."""


def rows(spark: SparkSession, told: Sequence[tuple[int, str, bool]]) -> DataFrame:
    """Rows of silver, or changes of them."""
    whole = [(key, None if gone else key, f"b{seq}", seq, gone, None, int(seq)) for key, seq, gone in told]
    return made(spark, whole, SILVER)


def loaded(spark: SparkSession, format_: DeltaFormat, folder: Path) -> Table:
    """A table of forty keys in four files, in their order."""
    session, table = exact_session(spark), Table("t", str(folder), ("k",))
    in_files_of(session, 10)
    format_.apply(rows(session, [(key, "10", False) for key in START]), table, Progress("bronze", 0))
    return table


def actions(table: Table, version: int) -> list[dict[str, Any]]:
    """What the log says of one commit."""
    log = Path(table.location, "_delta_log", f"{version:020}.json")
    return [json.loads(line) for line in log.read_text().splitlines()]


def of_kind(kind: str, told: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [action[kind] for action in told if kind in action]


def data_files(table: Table) -> dict[str, Path]:
    """The first four files, by the range of their keys."""
    added = of_kind("add", actions(table, 0))
    return {f"{json.loads(a['stats'])['minValues']['k']}": Path(table.location, a["path"]) for a in added}


def feed(spark: SparkSession, table: Table, version: int) -> list[tuple[str, ...]]:
    """What changed in one version, as Delta tells it."""
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    told = reader.option("startingVersion", version).option("endingVersion", version).load(table.location)
    return sorted(tuple(map(str, row)) for row in told.drop("_commit_timestamp").collect())


def test_marked_rows_are_those_of_a_merge(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, feed, counts, progress and history, also over files with vectors, a file that goes, and changes that come
    twice.
    """
    session = exact_session(spark)
    told: dict[str, list[Any]] = {way: [] for way in WAYS}
    files = {}
    for way, (marked, small) in WAYS.items():
        monkeypatch.setattr(delta_data_skipping, "_SMALL_FILES", small)
        format_ = DeltaFormat(MergeThresholds(rewritten_bytes=0, marked_files=marked))
        table = loaded(spark, format_, tmp_path / way)
        for number, batch in enumerate(BATCHES, 1):
            applied = format_.apply(rows(session, batch), table, Progress("bronze", number))
            assert format_.progress(session, table, "bronze") == Progress("bronze", number)
            told[way].append((applied, feed(session, table, applied.version)))
        before = int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
        held = sorted(map(str, format_.read(session, table).collect()))
        assert int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs()) == before + 1  # Delta looks for no files
        assert len(held) == format_.count(session, table)
        history = session.sql(f"DESCRIBE HISTORY delta.`{table.location}`").select("operation").collect()
        told[way] += [held, [row["operation"] for row in history]]
        files[way] = len(format_.read(session, table).inputFiles())
    assert told["marked"] == told["merged"] == told["with small files"]
    assert files["marked"] > files["with small files"] == 1
    assert [each[0] for each in told["marked"][:3]] == [Applied(1, 3, 0, 1), Applied(0, 12, 0, 2), Applied(1, 0, 0, 3)]


def test_random_batches_end_as_they_do_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """P1, P2: changes of many keys, partial and deleted ones, late ones and twice, over files with vectors."""
    session, dice = exact_session(spark), random.Random(3)
    session.conf.set("spark.sql.files.maxRecordsPerFile", "7")
    kinds = (lambda seq: upsert(seq, int(seq), f"b{seq}"), lambda seq: upsert(seq, int(seq), UNSENT), delete)
    sent = [(key, dice.choice(kinds)(f"{10 + at}")) for key in range(40) for at in range(5) if dice.random() < 0.6]
    dice.shuffle(sent)
    held = []
    for format_ in (DeltaFormat(MergeThresholds(rewritten_bytes=0)), MemoryFormat()):
        table = Table("t", str(tmp_path / type(format_).__name__), ("k",))
        for number in range(4):
            batch = list(dict.fromkeys([*sent[number::4], *sent[: 5 * number]]))
            format_.apply(fold.fold(changes(session, batch), ["k"], ["a", "b"]), table, Progress("bronze", number))
        held.append(states(format_.read(session, table).collect()))
    assert held[0] == held[1]
    assert len(held[0]) > 30
    assert list(tmp_path.rglob("deletion_vector_*.bin"))


@pytest.mark.parametrize("compared", [100, 0], ids=["each key", "where keys are"])
def test_only_files_that_may_hold_a_key_are_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    """A2, A3: recent keys need no other file, new ones behind all keys need none; one that is needed is missed."""
    monkeypatch.setattr(delta_data_skipping, "_MAX_COMPARED_KEYS", compared)
    session, format_ = exact_session(spark), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table = loaded(spark, format_, tmp_path / "t")
    files = data_files(table)
    assert sorted(files) == ["0", "100", "200", "300"]
    for least in ("0", "100", "200"):
        files[least].unlink()
    recent = format_.apply(rows(session, [(350, "20", False), (360, "20", True)]), table, Progress("bronze", 1))
    assert recent == Applied(0, 2, 0, 1)
    marked = of_kind("add", actions(table, 1))
    assert sorted("deletionVector" in each for each in marked) == [False, True]
    files["300"].unlink()
    new = format_.apply(rows(session, [(1000, "20", False), (1001, "20", False)]), table, Progress("bronze", 2))
    assert new == Applied(2, 0, 0, 2)
    keys = format_.changed_keys(session, table, 0, 2)
    assert keys is not None
    assert sorted(row["k"] for row in keys.collect()) == [350, 360, 1000, 1001]
    [_] = of_kind("add", actions(table, 2))
    assert of_kind("remove", actions(table, 2)) == of_kind("cdc", actions(table, 2)) == []
    with pytest.raises(Exception, match=files["200"].name):
        format_.apply(rows(session, [(210, "20", False)]), table, Progress("bronze", 3))
    assert format_.version(session, table) == 2


def test_a_table_of_many_files_is_merged_and_one_without_vectors_is_not_marked(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What Delta's own MERGE commits says how its clauses read; ours has none, and no vectors unasked."""
    session = exact_session(spark)
    for number, (most, vectors) in enumerate([(4, "true"), (3, "true"), (4, "false")]):
        format_ = DeltaFormat(MergeThresholds(rewritten_bytes=0, marked_files=most))
        table = loaded(spark, format_, tmp_path / str(number))
        session.sql(
            f"ALTER TABLE delta.`{table.location}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
        )
        applied = format_.apply(rows(session, [(30, "20", False)]), table, Progress("bronze", 1))
        [told] = of_kind("commitInfo", actions(table, applied.version))
        assert (told["operationParameters"]["matchedPredicates"] == "[]") is (number != 1)
        assert bool(list((tmp_path / str(number)).glob("deletion_vector_*.bin"))) is (vectors == "true")


@pytest.mark.parametrize(
    ("vectors", "most", "is_marked"), [("true", 39, True), ("true", 40, False), ("false", 39, False)]
)
def test_a_table_of_few_bytes_is_marked_where_it_has_many_rows(
    spark: SparkSession, tmp_path: Path, vectors: str, most: int, is_marked: bool
) -> None:
    """Narrow rows are many in a few bytes; a table that is to have no vectors is written anew all the same."""
    session, format_ = exact_session(spark), DeltaFormat(MergeThresholds(rewritten_rows=most))
    table = loaded(spark, format_, tmp_path / "t")
    session.sql(f"ALTER TABLE delta.`{table.location}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')")
    assert format_.apply(rows(session, [(30, "20", False)]), table, Progress("bronze", 1)) == Applied(0, 1, 0, 2)
    assert bool(list((tmp_path / "t").glob("deletion_vector_*.bin"))) is is_marked
    assert format_.read(session, table).where("_seq = '20'").count() == 1


def test_a_writer_that_came_between_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """F-W2: whatever it changed, rows are not marked over it."""
    session, format_ = exact_session(spark), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    table = loaded(spark, format_, tmp_path / "t")
    snapshot = format_._snapshot(session, table)
    target = delta_deletion_vectors.Target(snapshot, format_._log(table).live_files(session, snapshot) or ())
    format_.apply(rows(session, [(30, "20", False)]), table, Progress("bronze", 1))
    change = {column: SIDES.of_change(column) for column in rows(session, []).columns}
    late = MergeSpec(rows(session, [(30, "30", False)]), table.keys, change, change, merge.is_newer(SIDES))
    with pytest.raises(StaleWriter, match="another writer has changed the table"):
        delta_deletion_vectors.execute(target, late, Progress("other", 1))
    assert format_.read(session, table).where("k = 30").first()["_seq"] == "20"


def test_bounds_of_a_file_with_marked_rows_stay_exact(spark: SparkSession, tmp_path: Path) -> None:
    """Of decimals with more digits than a double has: the greatest key is found by the next batch, and by readers."""
    session = exact_session(spark)
    ddl = SILVER.replace("k INT", "k DECIMAL(38,10)")
    keys = [Decimal(f"1234567890123456{each}.0000000001") for each in range(781, 790)]

    def batch(seq: str, *of: Decimal) -> DataFrame:
        return made(session, [(key, int(seq), "b", seq, False, None, 1) for key in of], ddl)

    format_, table = DeltaFormat(MergeThresholds(rewritten_bytes=0)), Table("t", str(tmp_path / "t"), ("k",))
    format_.apply(batch("10", *keys).coalesce(1), table, Progress("bronze", 0))
    assert format_.apply(batch("20", keys[4]), table, Progress("bronze", 1)).updated == 1
    [marked] = [each for each in of_kind("add", actions(table, 1)) if "deletionVector" in each]
    assert marked["stats"].endswith(',"tightBounds":false}')
    for number, key in enumerate((keys[-1], keys[0]), 2):
        assert format_.apply(batch("30", key), table, Progress("bronze", number)) == Applied(0, 1, 0, number)
    for key in keys:
        assert session.read.format("delta").load(table.location).where(F.col("k") == F.lit(key)).count() == 1
    assert format_.read(session, table).count() == len(keys)


def test_a_file_whose_rows_nobody_has_counted_is_merged_into(spark: SparkSession, tmp_path: Path) -> None:
    """A user of Spark may have switched statistics off: Delta marks no row of such a file."""
    session, format_ = exact_session(spark), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    session.conf.set("spark.databricks.delta.stats.collect", "false")
    table = loaded(session, format_, tmp_path / "t")
    assert format_.apply(rows(session, [(30, "20", False)]), table, Progress("bronze", 1)).updated == 1
    assert format_.read(session, table).where("_seq = '20'").count() == 1


def test_what_delta_tells_of_its_files_never_hides_a_key(spark: SparkSession, tmp_path: Path) -> None:
    """Long texts beyond the first plane, decimals and whole numbers, each file asked for each of its own keys."""
    texts = ["", "a" * 40, "a" * 40 + "\U0001f600", "\U0001f600" * 33, "\uffff" * 40, "é", "Z", "\U0010ffff" * 40]
    session = exact_session(spark)
    told = made(session, [(1 << 62, each) for each in texts], "n BIGINT, t STRING").selectExpr(
        "n - length(t) n", "CAST(-1234567890123456789012345.0001 + length(t) AS DECIMAL(30,4)) d", "t"
    )
    format_, table = DeltaFormat(), Table("t", str(tmp_path / "t"), ("n", "d", "t"))
    for most in ("1", "0"):
        session.conf.set("spark.sql.files.maxRecordsPerFile", most)
        format_.append(told.coalesce(1), table, None)
    assert comparable_columns(table.keys, told.schema, told.schema) == table.keys
    files = format_._log(table).live_files(session, format_._snapshot(session, table)) or ()
    assert len(files) == len(texts) + 1
    for file in files:
        for row in session.read.parquet(file.path).collect():
            for at, column in enumerate(table.keys):
                assert BatchKeys((column,), [(row[at],)]).may_be_in(file.stats), (column, row, file.stats)
            assert BatchKeys(table.keys, [tuple(row)]).may_be_in(file.stats)
