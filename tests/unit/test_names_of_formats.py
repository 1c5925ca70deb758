"""Source columns that are called as what a table format, or a step on the way there, needs for itself."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import TableStopped
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.spec import Column, Declaration, SourceSpec, Transform
from replicator.stages import silver, tuning
from replicator.stages.account import Account
from replicator.stages.refinement import Refinement
from replicator.transforms.live import select_live
from tests.builders import Record, Sized, bronze, envelope, record, wrapped

pytestmark = pytest.mark.spark


def lake(
    folder: Path, format_: DeltaFormat | MemoryFormat, *columns: str, deletes: str | None = None, **others: str
) -> Refinement:
    kinds = {**dict.fromkeys(columns, "int"), **others}
    declared = Declaration("shop.orders", tuple(Column(*each) for each in kinds.items()), deletes=deletes)
    source = SourceSpec("s", ".*", tables=(declared,))
    return Refinement(source, format_, format_, MemoryControl(), Lake(str(folder)), 1.0)


def change(offset: int, key: dict[str, int], row: dict[str, int], *, pos: int, partition: int = 0) -> Record:
    return record("s.shop.orders", offset, key, envelope("u", row, pos=pos), partition=partition)


def taken(spark: SparkSession, at: Refinement, records: Sequence[Record]) -> Account:
    at.bronze.append(bronze(spark, records), at.lake.bronze("s"), None)
    [account] = silver.refine(spark, at)
    return account


def test_columns_called_as_those_of_a_change_feed_are_kept(exact: SparkSession, tmp_path: Path) -> None:
    """N-3: Delta makes no table with `_change_type`, and reads none again that has `_Commit_Version` by its side."""
    columns = {"_change_type": 1, "_Commit_Version": 2, "_commit_timestamp": 3}
    at = lake(tmp_path, DeltaFormat(), "id", *columns)
    for number in range(2):
        row = {"id": 7, **{name: value + number for name, value in columns.items()}}
        account = taken(exact, at, [change(number, {"id": 7}, row, pos=10 + number)])
        assert (account.error, account.applied) == (None, 1)
    [shown] = select_live(at.silver.read(exact, at.lake.silver("s", "shop.orders"))).collect()
    assert shown.asDict() == {"id": 7, **{name: value + 1 for name, value in columns.items()}}


@pytest.mark.parametrize("name", ["_metadata", "_Metadata"])
def test_a_column_called_as_that_of_sparks_files_is_merged(exact: SparkSession, tmp_path: Path, name: str) -> None:
    """N-3: Delta's MERGE finds the rows to mark by `_metadata`, and failed at every batch of a large table with it."""
    at = lake(tmp_path, DeltaFormat(MergeThresholds(rewritten_bytes=0, marked_files=0)), "id", name)
    for number in range(2):
        row = {"id": 7, name: number}
        account = taken(exact, at, [change(number, {"id": 7}, row, pos=10 + number)])
        assert (account.error, account.applied) == (None, 1)
    [shown] = select_live(at.silver.read(exact, at.lake.silver("s", "shop.orders"))).collect()
    assert shown.asDict() == {"id": 7, name: 1}


def marked(at: Refinement, **keys: Any) -> Refinement:
    """The same with these keys of its table."""
    [declared] = at.source.tables
    return replace(at, source=replace(at.source, tables=(replace(declared, **keys),)))


def test_sql_finds_a_column_that_only_another_format_could_not_have(exact: SparkSession, tmp_path: Path) -> None:
    """N-3: whoever marks rows as deleted as Hudi's writers do says so by that name, in a table of Delta."""
    told = Transform(as_deletes="_hoodie_is_deleted", except_column_list=("_hoodie_is_deleted",))
    kinds = {"id": "int", "_hoodie_is_deleted": "boolean"}
    at = marked(lake(tmp_path, DeltaFormat(), **kinds), transform=told)
    for number, gone in enumerate([False, False, True]):
        row = {"id": number % 2, "_hoodie_is_deleted": gone}
        account = taken(exact, at, [change(number, {"id": number % 2}, row, pos=10 + number)])
        assert (account.error, account.applied) == (None, 1)
    shown = select_live(at.silver.read(exact, at.lake.silver("s", "shop.orders")))
    assert [row.asDict() for row in shown.collect()] == [{"id": 1}]


def test_each_step_finds_a_column_that_its_table_has(exact: SparkSession, tmp_path: Path) -> None:
    """N-3: by the source's name, as the source's columns lie there; a table that is there is parted by such a one."""
    told = Transform(
        cast=(("_hoodie_file_name", "bigint"),),
        derive=(("_hoodie_commit_time", "_hoodie_commit_time + 1"),),
        masked=("_hoodie_record_key",),
        rename=(("_hoodie_commit_seqno", "seqno"),),
    )
    words = ("_hoodie_file_name", "_hoodie_commit_time", "_hoodie_record_key", "_hoodie_commit_seqno")
    part = "_hoodie_partition_path"
    at = marked(lake(tmp_path, DeltaFormat(), "id", *words, part), transform=told, partition_by=(part,))
    for number in range(2):
        row = {"id": 1, part: 5, **dict.fromkeys(words, 7)}
        assert taken(exact, at, [change(number, {"id": 1}, row, pos=10 + number)]).error is None
    table = at.lake.silver("s", "shop.orders")
    stored = at.silver.read(exact, table)
    [shown] = select_live(stored).collect()
    assert shown.asDict() == {
        "id": 1, "_hoodie_file_name": 7, "_hoodie_commit_time": 8, "_hoodie_record_key": "n", "seqno": 7, part: 5,
    }  # fmt: skip
    assert stored.schema["_hoodie_file_name"].dataType.simpleString() == "bigint"
    assert at.silver.detail(exact, table).partition_by == (part,)


def tidy(rows: DataFrame) -> DataFrame:
    """A function of a user's that passes a column on, and gives another."""
    return rows.withColumn("_hoodie_record_key", rows["_hoodie_file_name"] + 1)


def test_a_transform_may_give_such_a_column(exact: SparkSession, tmp_path: Path) -> None:
    """N-3: under its own name, so that a table of Delta that has it already goes on with it."""
    told = Transform(
        function=f"{__name__}:tidy",
        derive=(("_hoodie_is_deleted", "v > 1"),),
        where="NOT _hoodie_is_deleted",
        rename=(("v", "_hoodie_operation"),),
    )
    at = marked(lake(tmp_path, DeltaFormat(), "id", "v", "_hoodie_file_name"), transform=told)
    records = [change(n, {"id": n}, {"id": n, "v": n, "_hoodie_file_name": 7}, pos=10 + n) for n in (1, 2)]
    assert taken(exact, at, records).error is None
    stored = at.silver.read(exact, at.lake.silver("s", "shop.orders"))
    own = {
        "id": 1,
        "_hoodie_file_name": 7,
        "_hoodie_record_key": 8,
        "_hoodie_is_deleted": False,
        "_hoodie_operation": 1,
    }
    assert [row.asDict() for row in select_live(stored).collect()] == [own]
    assert own.keys() <= set(stored.columns)


def test_other_steps_find_such_a_column_that_is_derived(exact: SparkSession, tmp_path: Path) -> None:
    """It is there behind ``derive`` only, under the name that this gives it."""
    told = Transform(derive=(("_hoodie_is_deleted", "v > 1"),), column_list=("id", "_hoodie_is_deleted"))
    at = marked(lake(tmp_path, DeltaFormat(), "id", "v"), transform=told)
    records = [change(n, {"id": n}, {"id": n, "v": n}, pos=10 + n) for n in (1, 2)]
    assert taken(exact, at, records).error is None
    stored = at.silver.read(exact, at.lake.silver("s", "shop.orders"))
    assert sorted(map(tuple, stored.select("id", "_hoodie_is_deleted").collect())) == [(1, False), (2, True)]
    assert "v" not in stored.columns


@pytest.mark.parametrize("key", ["_part", "_said"])
def test_a_key_may_have_any_name_where_partitions_disagree(exact: SparkSession, tmp_path: Path, key: str) -> None:
    """Q11: what is asked of keys in several partitions is asked under names that no key has."""
    at = lake(tmp_path, MemoryFormat(), key, "v")
    records = [change(0, {key: 1}, {key: 1, "v": each}, pos=10, partition=each) for each in range(2)]
    account = taken(exact, at, records)
    assert account.error is None
    assert "cross_partition_tie" in account.warnings[0]


def test_a_key_may_be_any_instant_where_partitions_disagree(
    exact: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Q11: PostgreSQL's infinity, the last moment of the year 9999, is in the next year where Python runs."""
    at = lake(tmp_path, DeltaFormat(), "v", key="zoned_timestamp")
    records = [
        record("s.shop.orders", 0, {"key": "infinity"}, envelope("u", {"key": "infinity", "v": each}), partition=each)
        for each in range(2)
    ]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        account = taken(exact, at, records)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "key (9999-12-31 23:59:59.999999)" in account.warnings[0]


@pytest.mark.parametrize("size", [0, tuning.SMALL_RECORD_BYTES])
@pytest.mark.parametrize("kind", ["string", "int"])
def test_a_column_called_as_sparks_corrupt_records_has_its_values(
    exact: SparkSession, tmp_path: Path, kind: str, size: int
) -> None:
    """Y2: `from_json` gives the broken text of a record under that name, if the record itself is what is read: few
    flattened rows without a schema had NULL there, or stopped their table; many had their values.
    """
    name = "_corrupt_record"
    at = lake(tmp_path, Sized(size), "id", **{name: kind}, deletes="rewrite")
    value = {"string": "x", "int": 5}[kind]
    row = {"id": 1, name: value, "__deleted": "false"}
    account = taken(exact, at, [record("s.shop.orders", 0, {"id": 1}, row)])
    assert (account.error, account.dead_lettered) == (None, 0)
    [stored] = at.silver.read(exact, at.lake.silver("s", "shop.orders")).collect()
    assert stored[name] == value


def test_a_key_called_as_sparks_corrupt_records_is_read(exact: SparkSession, tmp_path: Path) -> None:
    """C1: so it was of keys, all of which were dead letters (`key_undecodable`)."""
    name = "_corrupt_record"
    at = lake(tmp_path, MemoryFormat(), **{name: "string"})
    account = taken(exact, at, [record("s.shop.orders", 0, {name: "k"}, envelope("u", {name: "k"}))])
    assert (account.error, account.applied, account.dead_lettered) == (None, 1, 0)


def test_a_part_of_a_column_may_have_that_name_too(exact: SparkSession, tmp_path: Path) -> None:
    """Y2: of a struct each field is read by its own name."""
    inner = {
        "type": "struct",
        "field": "part",
        "optional": True,
        "fields": [{"type": "string", "optional": False, "field": "_corrupt_record"}],
    }
    row = {"type": "struct", "field": "after", "optional": True, "fields": [{"type": "int32", "field": "id"}, inner]}
    block = {"type": "struct", "fields": [row, {"type": "string", "field": "op"}]}
    at = lake(tmp_path, MemoryFormat())
    value = envelope("u", {"id": 1, "part": {"_corrupt_record": "x"}})
    account = taken(exact, at, [record("s.shop.orders", 0, {"id": 1}, wrapped(value, block))])
    assert (account.error, account.dead_lettered) == (None, 0)
    [stored] = at.silver.read(exact, at.lake.silver("s", "shop.orders")).collect()
    assert stored["part"].asDict() == {"_corrupt_record": "x"}


STRUCTS: dict[str, list[str]] = {
    "plain": ["street", "no_1", "1st", "_"],
    "blank": ["zip code"],
    "dash": ["x-y"],
    "letter": ["é"],
    "case": ["a", "A"],
    "number": ["1e5"],
    "quoted": ["a`b.c"],
    "empty": [],
}


def told(structs: dict[str, list[str]]) -> dict[str, Any]:
    """A schema block of rows (id, structs)."""
    optional: dict[str, Any] = {"optional": True}
    members = [
        {"type": "struct", "field": name, "fields": [{"type": "string", "field": f} for f in fields]} | optional
        for name, fields in structs.items()
    ]
    row = {"type": "struct", "field": "after", "fields": [{"type": "int32", "field": "id"}, *members]} | optional
    return {"type": "struct", "fields": [row, {"type": "string", "field": "op"}]}


def test_structs_whose_fields_no_format_can_name_are_texts(exact: SparkSession, tmp_path: Path) -> None:
    """G5, N-3: Delta refuses a blank or two names that only case tells apart, and what Spark writes down of the others
    it does not read again: the second batch stopped the table.
    """
    sent = {name: {field: f"{field}!" for field in fields} for name, fields in STRUCTS.items()}
    at = lake(tmp_path, DeltaFormat())
    for number in range(2):
        value = wrapped(envelope("u", {"id": number, **sent}, pos=10 + number), told(STRUCTS))
        account = taken(exact, at, [record("s.shop.orders", number, {"id": number}, value)])
        assert (account.error, account.applied, account.dead_lettered) == (None, 1, 0)
    for stored in at.silver.read(exact, at.lake.silver("s", "shop.orders")).collect():
        assert stored["plain"].asDict() == sent["plain"]
        assert {name: json.loads(stored[name]) for name in STRUCTS if name != "plain"} == {
            name: held for name, held in sent.items() if name != "plain"
        }


def test_a_table_that_stopped_with_such_a_struct_says_how_it_goes_on(exact: SparkSession, tmp_path: Path) -> None:
    """G5: what an older version made of it nobody can read again; bronze has all of it."""
    at = lake(tmp_path, DeltaFormat())
    table = at.lake.silver("s", "shop.orders")
    assert taken(exact, at, [change(0, {"id": 1}, {"id": 1}, pos=10)]).error is None
    exact.sql(f"ALTER TABLE delta.`{table.location}` ADD COLUMNS (place STRUCT<`x-y`: STRING>)")
    value = wrapped(envelope("u", {"id": 2, "place": {"x-y": "!"}}, pos=11), told({"place": ["x-y"]}))
    account = taken(exact, at, [record("s.shop.orders", 1, {"id": 2}, value)])
    assert isinstance(account.error, TableStopped)
    assert account.error.what == "column place is a struct with a field 'x-y', which is not a valid name in a type"
    assert "`replicator rebuild s/shop.orders`" in str(account.error.fix)
    rebuild(exact, at, "shop.orders", RebuildOptions())
    rows = select_live(at.silver.read(exact, table)).sort("id").collect()
    assert [row.asDict() for row in rows] == [{"id": 1, "place": None}, {"id": 2, "place": '{"x-y":"!"}'}]
