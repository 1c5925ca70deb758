"""``Survey``: a lake stands where it stands, whoever looks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from replicator import assemble_without_spark, settings
from replicator.catalog.store import Store
from replicator.cli import options
from replicator.errors import StoreRefused
from replicator.formats.control import JsonControl
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.operate import dead_letters, pause, status
from replicator.operate.dead_letters import LetterFilter
from replicator.operate.progress import arrow_letters
from replicator.operate.progress.arrow_survey import ArrowSurvey, list_statuses
from replicator.operate.progress.table_status import TableStatus
from replicator.operate.status import StatusInputs
from replicator.spec import Column, Declaration, Model, ModelColumn, SourceSpec
from replicator.stages import gold, silver
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement
from replicator.stages.tick import pauses
from tests.builders import Record, bronze, envelope, record
from tests.contract.s3_server import BUCKET
from tests.objects import known_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.settings import Settings
    from tests.contract.s3_server import S3Server

pytestmark = pytest.mark.spark

UNSENT = "__debezium_unavailable_value"
ORDERS, PARTS = "s.shop.orders", "s.shop.parts ö"
DECLARED = (
    Declaration("shop.orders", (Column("id", "int"), Column("v", "int")), stored_as_scd_type=2),
    Declaration("shop.parts ö", (Column("id", "int"), Column("v", "int"))),
)
COLUMNS = (ModelColumn("id", "integer"), ModelColumn("updated_at", "timestamp"))
SQL = "SELECT id, TIMESTAMP'2026-11-22 10:00:00.123456Z' AS updated_at FROM {o}"
MODEL = Model("m", SQL, {"o": "s/shop.orders"}, ("id",), COLUMNS)
UNBUILT = replace(MODEL, name="unbuilt")


def change(topic: str, offset: int, op: str, key: int, partition: int = 0) -> Record:
    image = {"before": {"id": key, "v": 0}} if op == "d" else {"after": {"id": key, "v": offset}}
    table = topic.removeprefix("s.")
    return record(
        topic, offset, {"id": key}, envelope(op, pos=10 * offset + 4, table=table, **image), partition=partition
    )


def append(at: Refinement, spark: SparkSession, records: Iterable[Record]) -> None:
    """One commit, with times of Kafka's; the last record of a topic has none."""
    rows = bronze(spark, records)
    time = F.when(F.col("offset") < 90, F.timestamp_millis(F.lit(1700000000123) + F.col("offset")))
    at.bronze.append(rows.withColumn("timestamp", time), at.lake.bronze("s"), None)


@pytest.fixture(scope="module")
def at(exact: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Refinement:
    """A lake in which each layer is behind the one before it: rows that were deleted at the source, rows hidden by a
    vector, a history, two partitions in one file, a table that is paused, a model that is not built.
    """
    delta, root = DeltaFormat(), tmp_path_factory.mktemp("survey") / "la ke"
    made = Refinement(SourceSpec("s", ".*", tables=DECLARED), delta, delta, JsonControl(exact), Lake(str(root)), 1.0)
    both = [change(topic, n, "c", n % 5, n % 2) for topic in (ORDERS, PARTS) for n in range(8)]
    keyless = record(ORDERS, 20, None, envelope("c", after={"id": 9, "v": 9}, pos=204))
    append(made, exact, [*both, change(ORDERS, 8, "d", 3), keyless])
    silver.refine(exact, made)
    warehouse = Warehouse(delta, delta, made.control, made.lake)
    assert [built.error for built in gold.refresh(exact, [MODEL], warehouse)] == [None]
    append(made, exact, [change(ORDERS, 9, "u", 1)])
    silver.refine(exact, made)
    parts = made.lake.silver("s", "shop.parts ö").location
    exact.sql(f"DELETE FROM delta.`{parts}` WHERE id = 4")
    assert list(Path(parts).glob("deletion_vector*.bin"))
    append(made, exact, [change(ORDERS, n, "u", n) for n in (90, 91, 92)] + [change("s.shop.new", 0, "c", 0)])
    pauses.save(made.control, made.lake, "s", {"shop.parts ö": "2026-11-23T00:00:00+00:00"})
    return made


def same(found: list[TableStatus], others: list[TableStatus]) -> bool:
    """But for the minutes between the two looks."""
    lags, other_lags = (
        [-1 if each.lag_seconds is None else each.lag_seconds for each in some] for some in (found, others)
    )
    rest, other_rest = ([replace(each, lag_seconds=None) for each in some] for some in (found, others))
    return rest == other_rest and lags == pytest.approx(other_lags, abs=300)


def at_s3(root: str, s3: S3Server) -> Settings:
    return settings.bare(root).model_copy(update={"s3": s3.keys})


def direct(root: str, store: Store) -> ArrowSurvey:
    return ArrowSurvey(Lake(root), store, ("delta",), {}, (MODEL, UNBUILT), {})


def test_a_lake_is_told_of_in_the_same_words_without_spark(at: Refinement, exact: SparkSession, s3: S3Server) -> None:
    """Rows, positions, lags and states, of the lake on a disk and of a copy in an object store."""
    around = StatusInputs(at.lake, at.silver, at.control, {}, {}, (MODEL, UNBUILT), {}, {"s": at})
    by_spark = status.list_statuses(exact, around)
    assert [(each.layer, each.table, each.rows, each.lag_events) for each in by_spark] == [
        ("bronze", "s", 23, None),
        ("dead_letters", "s", 1, None),
        ("silver", "s/shop.orders", 4, 3),
        ("history", "s/shop.orders__history", 9, 3),
        ("silver", "s/shop.parts ö", 4, 0),
        ("gold", "m", 4, 1),
        ("gold", "unbuilt", None, None),
    ]
    assert same(list_statuses(direct(at.lake.root, Store(at.lake.root))), by_spark)
    for path in (each for each in Path(at.lake.root).rglob("*") if each.is_file()):
        key = f"lake/{path.relative_to(at.lake.root)}"
        s3.client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
    root = f"s3a://{BUCKET}/lake"
    assert same(list_statuses(direct(root, options.store(at_s3(root, s3)))), by_spark)


def test_a_bucket_that_is_not_there_is_no_lake_without_tables(exact: SparkSession, s3: S3Server) -> None:
    """One that nobody has written to yet has no tables; of one that was deleted, or mistyped, it is said so."""
    for bucket, refused in (
        (BUCKET, nullcontext()),
        ("mistyped", pytest.raises(StoreRefused, match="bucket mistyped does not exist")),
    ):
        root = f"s3a://{bucket}/new"
        bare = at_s3(root, s3)
        known_store(exact, bare, bucket)
        around = StatusInputs(Lake(root), DeltaFormat(), JsonControl(exact), {}, {}, (), {}, {})
        of = assemble_without_spark.arrow_survey(bare, options.store(bare))
        looks = (
            partial(list_statuses, of),
            partial(status.list_statuses, exact, around),
            partial(assemble_without_spark.sources, bare, of),
        )
        for look in looks:
            with refused:
                assert look() == []


def test_rows_that_lack_a_value_are_told_until_a_record_has_it(exact: SparkSession, tmp_path: Path) -> None:
    """A large value that was not sent, and one that went with a row that came back, are not known; a known NULL is, and
    so is a value that is older than its row (debezium.md M4 examples 1, 3 and 6).
    """
    delta, declared = DeltaFormat(), Declaration("shop.orders", (Column("id", "int"), Column("v", "string")))
    made = Refinement(
        SourceSpec("s", ".*", tables=(declared,)), delta, delta, JsonControl(exact), Lake(str(tmp_path)), 1.0
    )

    def take(*rows: tuple[int, str, int, str | None]) -> list[int | None]:
        """What both looks tell behind these changes: offset, operation, key and value of each."""
        images = [
            {"before": {"id": key, "v": None}} if op == "d" else {"after": {"id": key, "v": v}}
            for _, op, key, v in rows
        ]
        made.bronze.append(
            bronze(
                exact,
                [
                    record(ORDERS, offset, {"id": key}, envelope(op, pos=10 * offset + 4, table="shop.orders", **image))
                    for (offset, op, key, _), image in zip(rows, images, strict=True)
                ],
            ),
            made.lake.bronze("s"),
            None,
        )
        silver.refine(exact, made)
        by_spark = status.list_statuses(
            exact, StatusInputs(made.lake, made.silver, made.control, {}, {}, (), {}, {"s": made})
        )
        assert same(list_statuses(replace(direct(made.lake.root, Store(made.lake.root)), models=())), by_spark)
        return [each.unknown for each in by_spark]

    known = [(1, "c", 1, "a"), (2, "u", 1, UNSENT), (3, "c", 2, None)]
    lacking = [(4, "u", 3, UNSENT), (5, "c", 4, "b"), (6, "d", 4, None), (7, "u", 4, UNSENT)]
    assert take(*known, *lacking) == [None, 2]
    assert take((8, "u", 3, "c")) == [None, 1]


def test_bronze_ends_where_spark_says(at: Refinement, exact: SparkSession) -> None:
    """Behind the last record of each partition, whether the log tells it or the rows do."""
    rows = at.bronze.read(exact, at.lake.bronze("s")).groupBy("topic", "partition").agg(F.max("offset") + 1)
    ends = {(topic, partition): end for topic, partition, end in rows.collect()}
    assert direct(at.lake.root, Store(at.lake.root)).reached(at.lake.bronze("s")) == ends


def test_dead_letters_are_counted_as_spark_counts_them(at: Refinement, exact: SparkSession) -> None:
    """By table and reason, with their times; those that were dropped are none here."""
    of = direct(at.lake.root, Store(at.lake.root))
    [count] = arrow_letters.counts(of, "s", LetterFilter())
    assert [count] == dead_letters.counts(exact, at, LetterFilter())
    assert (count.table, count.reason, count.letters) == ("shop.orders", "key_missing", 1)
    for choice, found in (
        (LetterFilter("orders", "key_missing"), [count]),
        (LetterFilter("orders", "x"), []),
        (LetterFilter("ers"), []),
    ):
        assert arrow_letters.counts(of, "s", choice) == dead_letters.counts(exact, at, choice) == found
    assert arrow_letters.counts(of, "s", LetterFilter(), dropped=True) == []


def test_paused_tables_are_told_as_spark_tells_them(at: Refinement, exact: SparkSession) -> None:
    """Those of silver, those that a topic has carried and those that are declared."""
    of = direct(at.lake.root, Store(at.lake.root))
    found = pause.list_source_tables(of, at.source)
    assert found == pause.list_tables(exact, [at])
    assert [(each.table, each.paused) for each in found] == [
        ("s/shop.orders", None),
        ("s/shop.parts ö", "2026-11-23T00:00:00+00:00"),
    ]
