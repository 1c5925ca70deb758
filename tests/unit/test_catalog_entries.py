"""What a catalog is told of a table: its names, columns, partitions, and the view of its live rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from replicator.catalog import presto_view
from replicator.catalog.entries import HUDI_COLUMNS, Entry, Kind, LakeTable, entries, unreadable_reason, url
from replicator.errors import CatalogRefused
from replicator.spec import TableDetail
from tests.catalogued import HUDI, schema, silver


def named(every: Sequence[Entry]) -> dict[str, Kind]:
    return {each.name: each.kind for each in every}


def test_silver_is_a_table_of_all_rows_and_a_view_of_the_live_ones() -> None:
    """People ask the view: the source's columns, without deleted rows; times are cast to what the view says."""
    table, view = entries(silver(id="INT", placed="TIMESTAMP_NTZ", total="DECIMAL"), "lakehouse")
    assert (table.name, table.kind, table.location) == (
        "orders__all", Kind.delta, "s3://bucket/lake/silver/shop/sales.orders",
    )  # fmt: skip
    assert [each.name for each in table.columns][-4:] == ["_seq", "_deleted", "_column_seq", "_source_ts_ms"]
    assert all(each.comment for each in table.columns[-4:])
    assert (view.name, [each.name for each in view.columns]) == ("orders", ["id", "placed", "total"])
    assert view.sql == (
        'SELECT\n  "id",\n  CAST("placed" AS timestamp(3)) AS "placed",\n  "total"\n'
        'FROM "awsdatacatalog"."lakehouse"."orders__all"\nWHERE NOT "_deleted"'
    )


def test_a_history_shows_its_intervals() -> None:
    """A place that began none is no interval."""
    times: dict[str, Any] = {
        "__START_AT": "STRING",
        "__END_AT": "STRING",
        "__START_TIME": "TIMESTAMP",
        "__END_TIME": "TIMESTAMP",
    }
    _, view = entries(silver(name="orders__history", id="INT", **times), "lakehouse")
    assert [each.name for each in view.columns][1:3] == ["__start_at", "__end_at"]
    assert view.sql.endswith('WHERE "__end_at" IS NULL OR "__end_at" > "__start_at"')


def test_gold_is_the_table_itself() -> None:
    """With the words of its model."""
    words = {"k": "A key."}
    table = LakeTable("m", "gold/m", "s3a://b/m", schema(k="STRING"), TableDetail("delta"), "One row per k.", words)
    [entry] = entries(table, "lakehouse")
    assert (entry.name, entry.kind, entry.description) == ("m", Kind.delta, "One row per k.")
    assert entry.columns[0].comment == "A key."


def test_columns_that_part_a_table_stand_last_and_hudi_s_own_first() -> None:
    """As DESCRIBE shows an outbox table: five of Hudi's, the others, two that part it."""
    folders = ("customer_id=a%2Fb/order_id=1", "customer_id=__HIVE_DEFAULT_PARTITION__/order_id=2")
    kept = replace(HUDI, partition_by=("customer_id", "order_id"), folders=folders)
    table, view = entries(silver(kept, order_id="INT", customer_id="STRING", placed="DATE"), "lakehouse")
    described = [each.name for each in (*table.columns, *table.partition_keys)]
    assert described[:6] == [*HUDI_COLUMNS, "placed"]
    assert described[-2:] == ["customer_id", "order_id"]
    assert len(described) == 5 + 7 - 2 + 2
    assert [each.values for each in table.partitions] == [("a/b", "1"), ("__HIVE_DEFAULT_PARTITION__", "2")]
    assert table.partitions[0].location == f"{table.location}/customer_id=a%2Fb/order_id=1"
    assert [each.name for each in view.columns] == ["order_id", "customer_id", "placed"]


@pytest.mark.parametrize(
    ("kind", "others"),
    [
        ("INT", ("x", "1.5", "3000000000", "2026-01-31")),
        ("DECIMAL", ("x", "2026-01-31", "true")),
        ("DATE", ("x", "1", "31.01.2026")),
        ("BOOLEAN", ("x", "1")),
        ("STRING", ()),
    ],
)
def test_folders_of_another_type_are_no_partitions(kind: str, others: tuple[str, ...]) -> None:
    """They are from before the column that parts the table became one of this type, and have no rows any more."""
    own = {"INT": "-7", "DECIMAL": "-1.50", "DATE": "-0044-03-15", "BOOLEAN": "false", "STRING": "x"}[kind]
    folders = tuple(f"part={value}" for value in (own, "__HIVE_DEFAULT_PARTITION__", *others))
    kept = replace(HUDI, partition_by=("part",), folders=folders)
    table, _ = entries(silver(kept, id="INT", part=kind), "datalake")
    assert [each.values for each in table.partitions] == [(own,), ("__HIVE_DEFAULT_PARTITION__",)]


def test_a_table_merged_on_read_is_told_twice_and_the_view_shows_it_as_it_is_now() -> None:
    """Hudi's own names: `_rt` with what is not compacted yet, `_ro` without."""
    made = entries(silver(replace(HUDI, merge_on_read=True), id="INT"), "lakehouse")
    assert named(made) == {
        "orders__all_rt": Kind.hudi_snapshot, "orders__all_ro": Kind.hudi_compacted, "orders": Kind.view,
    }  # fmt: skip
    assert '"orders__all_rt"' in made[-1].sql


def test_a_name_that_glue_does_not_hold_is_refused() -> None:
    """255 characters."""
    with pytest.raises(CatalogRefused, match="longer than 255"):
        entries(silver(name="x" * 251, id="INT"), "lakehouse")


def test_a_view_s_text_holds_its_query_and_trino_s_types() -> None:
    """The form in which Athena itself keeps views; another text is nobody's query."""
    _, view = entries(silver(id="INT", placed="TIMESTAMP"), "lakehouse")
    text = presto_view.encode(view.sql, "lakehouse", view.columns)
    assert text.startswith("/* Presto View: eyJvcmlnaW5hbFNxbCI6")
    assert text.endswith(" */")
    assert presto_view.decode(text) == view.sql
    assert presto_view.decode("SELECT 1") == "SELECT 1"


@pytest.mark.parametrize(
    ("root", "known"),
    [
        ("s3a://b/l", "s3://b/l"),
        ("/data/l", "file:///data/l"),
        ("file:///l", "file:///l"),
        ("hdfs://n/l", "hdfs://n/l"),
    ],
)
def test_places_are_urls(root: str, known: str) -> None:
    """Hadoop's own scheme for S3 is no other tool's."""
    assert url(root) == known


def test_what_athena_may_not_read_is_said() -> None:
    """It knows S3 only, Delta up to reader version 3, and Hudi's tables up to version 6."""
    table = silver(id="INT")
    assert unreadable_reason(table) is None
    assert unreadable_reason(replace(table, location="/lake")) == "it reads S3 only"
    assert unreadable_reason(replace(table, detail=HUDI)) == "it supports Hudi up to protocol 6, and this table has 9"


def test_a_table_of_another_format_is_refused() -> None:
    """Athena reads Delta and Hudi."""
    with pytest.raises(CatalogRefused, match="does not read tables in memory"):
        entries(silver(TableDetail("memory"), id="INT"), "lakehouse")
