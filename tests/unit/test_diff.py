"""``replicator diff``: rows that differ between two versions, told once per key."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.errors import ConfigError
from replicator.formats.delta import DeltaFormat
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate import diff
from replicator.operate.diff import DiffRequest
from replicator.protocols import TableFormat
from replicator.spec import Evolution, Progress, Table
from replicator.transforms.comparison import compare
from replicator.transforms.merge import SYSTEM_DDL
from tests.builders import made
from tests.cli import said

pytestmark = pytest.mark.spark

DDL = f"id INT, order_x20_key STRING, total DECIMAL(10,2), tags MAP<STRING,STRING>, {SYSTEM_DDL}"


def row(
    key: int,
    text: str | None,
    total: Decimal | None,
    seq: int,
    tags: dict[str, str | None] | None = None,
    *,
    deleted: bool = False,
) -> tuple[Any, ...]:
    """A row of silver."""
    return (key, text, total, tags, str(seq), deleted, None, seq)


def write(spark: SparkSession, format_: TableFormat, table: Table) -> None:
    """Four versions: made; one changed, one deleted, one new; a column more; its first value."""
    one = [row(1, "a", Decimal("1.50"), 1, {"x": "1", "y": None}), row(2, "b", None, 1), row(3, "c", None, 1)]
    marked = made(spark, one, DDL).withMetadata("id", {"name": "id", "key": 0})
    format_.apply(marked, table, Progress("b", 0))
    two = [row(1, "é", Decimal("19.90"), 2, {"x": "1", "y": None}), row(2, None, None, 2, deleted=True)]
    two += [row(4, "d", Decimal("12345678.90"), 2), row(3, "c", None, 2)]
    format_.apply(made(spark, two, DDL), table, Progress("b", 1))
    format_.evolve(spark, table, Evolution(added=(("note", "string"),), widened=(("total", "decimal(12,2)"),)))
    three = [(3, "c", None, None, "new", "3", False, None, 3)]
    wider = DDL.replace("(10,2)", "(12,2)").replace("tags MAP<STRING,STRING>", "tags MAP<STRING,STRING>, note STRING")
    format_.apply(made(spark, three, wider), table, Progress("b", 2))


def lines(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in said("diff", *arguments, "--json").splitlines()]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made_there = Lake(str(tmp_path_factory.mktemp("diff")))
    write(spark, DeltaFormat(), made_there.silver("s", "db.orders", ("id",)))
    gold, ddl = made_there.gold("fact", ("a", "b")), "a INT, b INT, v STRING, _op STRING"
    rows: Any = [(1, 1, "x", "upsert"), (1, 2, "y", "upsert")], [(1, 1, "z", "upsert"), (1, 2, None, "delete")]
    for version, each in enumerate(rows):
        DeltaFormat().put(made(spark, each, ddl), gold, Progress("fact", version))
    return made_there


def test_live_rows_are_compared_by_key_with_the_sources_columns(lake: Lake) -> None:
    """A row marked deleted is removed; one that a change left as it was is not told; of a changed row what differs."""
    first = lines("orders", "--from", "0", "--to", "1", "--lake", lake.root)
    assert first == [
        {"change": "changed", "key": {"id": 1}, "before": {"order key": "a", "total": Decimal("1.50")},
         "after": {"order key": "é", "total": Decimal("19.90")}},
        {"change": "removed", "key": {"id": 2}, "before": {"order key": "b", "total": None, "tags": None},
         "after": None},
        {"change": "added", "key": {"id": 4}, "before": None,
         "after": {"order key": "d", "total": Decimal("12345678.90"), "tags": None}},
    ]  # fmt: skip
    back = lines("s/db.orders", "--from", "1", "--to", "0", "--lake", lake.root)
    assert [each["change"] for each in back] == ["changed", "added", "removed"]
    assert (back[0]["before"], back[0]["after"]) == (first[0]["after"], first[0]["before"])


def test_a_new_column_is_a_change_where_it_has_a_value(lake: Lake) -> None:
    """One that came in between, and a type that grew, change nothing by themselves."""
    found = lines("db.orders", "--from", "1", "--lake", lake.root)
    assert found == [{"change": "changed", "key": {"id": 3}, "before": {}, "after": {"note": "new"}}]
    raw = lines("orders", "--from", "1", "--raw", "--lake", lake.root)
    assert raw[0]["before"] == {"_seq": "2", "_source_ts_ms": 2}
    assert raw[0]["after"] == {"note": "new", "_seq": "3", "_source_ts_ms": 3}


def test_a_condition_holds_before_or_after(lake: Lake) -> None:
    """And what is no condition is the user's mistake."""
    found = lines("orders", "--from", "0", "--where", "`order key` = 'a' OR total > 1000", "--lake", lake.root)
    assert [each["key"]["id"] for each in found] == [1, 4]
    for wrong in ("nothing = 1", "x ="):
        with pytest.raises(ConfigError, match="--where"):
            lines("orders", "--from", "0", "--where", wrong, "--lake", lake.root)


@pytest.mark.parametrize(
    "where",
    [
        "java_method('java.lang.System', 'getProperty', 'user.dir') IS NOT NULL",
        "id IN (SELECT id FROM table_changes_by_path('{place}', 0))",
        "id IN (SELECT id FROM delta.`{place}`)",
    ],
)
def test_a_condition_runs_no_java_and_opens_no_path(lake: Lake, where: str) -> None:
    """As in ``sql``."""
    place = lake.silver("s", "db.orders").location
    with pytest.raises(ConfigError, match="--where"):
        lines("orders", "--from", "0", "--where", where.format(place=place), "--lake", lake.root)


def test_gold_needs_its_key(lake: Lake) -> None:
    """From its model, or from the command line."""
    asked = ("fact", "--from", "0", "--lake", lake.root)
    assert [each["key"] for each in lines(*asked, "--key", "a, b")] == [{"a": 1, "b": 1}, {"a": 1, "b": 2}]
    with pytest.raises(ConfigError, match=r"key of fact is not known here .* Add --key"):
        lines(*asked)
    with pytest.raises(ConfigError, match="fact has no column 'c'; known: a, b, v"):
        lines(*asked, "--key", "c")
    with pytest.raises(ConfigError, match="key of fact is not known here"):
        lines(*asked, "--key", ",")
    with pytest.raises(ConfigError, match="Available: fact, orders, s__db__orders"):
        lines("nothing", "--from", "0", "--lake", lake.root)


def test_gold_has_the_key_of_its_model_whatever_its_columns_came_with(spark: SparkSession, tmp_path: Path) -> None:
    """Its SQL gives them with what tables of silver have noted of them: their names there, and their places in keys
    that are none of the model's.
    """
    lake = Lake(str(tmp_path))
    for version, value in enumerate("xy"):
        rows = made(spark, [(1, 7, value, "upsert")], "line_key INT, product INT, v STRING, _op STRING")
        rows = rows.withMetadata("line_key", {"name": "lineNo", "key": 0})
        rows = rows.withMetadata("product", {"name": "code", "key": 0})
        DeltaFormat().put(rows, lake.gold("noted", ("line_key",)), Progress("noted", version))
    asked = ("noted", "--from", "0", "--key", "line_key", "--lake", lake.root)
    assert lines(*asked) == [{"change": "changed", "key": {"line_key": 1}, "before": {"v": "x"}, "after": {"v": "y"}}]


def test_a_key_that_the_rows_do_not_have_is_refused(lake: Lake) -> None:
    """Rows of silver note their own: another one was passed over, and a misspelled one too. Exit code 2, with what to
    write.
    """
    asked = ("diff", "orders", "--from", "0", "--lake", lake.root, "--key")
    for key, what in {
        "order kee": "s/db.orders has no column 'order kee'; did you mean 'order key'?",
        "order key": "the key of s/db.orders is id, which its rows record",
        "id,total": "the key of s/db.orders is id, which its rows record",
    }.items():
        with pytest.raises(ConfigError) as caught:
            said(*asked, key, code=2)
        assert what in str(caught.value)
        assert "Omit --key" in str(caught.value)
    assert said(*asked, "id", "--json") == said(*asked[:-1], "--json")


def test_columns_stand_in_the_order_of_the_table(spark: SparkSession, lake: Lake) -> None:
    """However many there are; in a line for people, and in JSON."""
    names = ["zeta", "alpha", "m3", "b", "x", "a1", "omega"]
    ddl = f"k INT, {', '.join(f'{name} INT' for name in names)}, _op STRING"
    for version in range(2):
        rows = made(spark, [(1, *[version + at for at in range(len(names))], "upsert")], ddl)
        DeltaFormat().put(rows, lake.gold("wide", ("k",)), Progress("wide", version))
    asked = ("wide", "--from", "0", "--key", "k", "--lake", lake.root)
    [found] = lines(*asked)
    assert (list(found["before"]), list(found["after"])) == (names, names)
    told = "".join(said("diff", *asked).split())
    assert [told.index(f"{name}:") for name in names] == sorted(told.index(f"{name}:") for name in names)


def test_versions_under_another_key_are_not_compared(spark: SparkSession, tmp_path: Path) -> None:
    """A rebuild that gave the table another key: who asks across it is told so, in both directions."""
    table = Lake(str(tmp_path)).silver("s", "db.orders", ("id",))
    for version, key in enumerate(("id", "order_x20_key")):
        rows = made(spark, [row(1, "a", None, 1)], DDL).withMetadata(key, {"name": key, "key": 0})
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.save(table.location)
        assert DeltaFormat().version(spark, table) == version
    asked = ("orders", "--lake", str(tmp_path), "--from")
    with pytest.raises(ConfigError, match=r"the key of s/db.orders is order key, but version 0 has the key id"):
        lines(*asked, "0")
    with pytest.raises(
        ConfigError, match=r"is id, but version 1 has the key order key .* Compare versions with the same key"
    ):
        lines(*asked, "1", "--to", "0")


def test_people_see_old_and_new_values_and_counts(lake: Lake) -> None:
    """Exit code 0 unless it is asked for, as git has it."""
    asked = ("diff", "orders", "--from", "0", "--lake", lake.root)
    told = [line.split() for line in said(*asked, "--to", "1").splitlines()]
    assert told[1] == ["changed", "id=1", "order", "key:", "a", "→", "é,", "total:", "1.50", "→", "19.90"]
    assert told[2] == ["removed", "id=2", "order", "key=b,", "total=NULL,", "tags=NULL"]
    assert [line.split() for line in said(*asked, "--to", "1", "--limit", "1").splitlines()] == told[:2]
    summary = json.loads(said(*asked, "--to", "1", "--summary", "--json"))
    assert (summary["added"], summary["removed"], summary["changed"]) == (1, 1, 1)
    assert (summary["from"]["version"], summary["to"]["version"]) == (0, 1)
    assert "changed" in said(*asked, "--summary", "--exit-code", code=1)
    said("diff", "orders", "--from", "1", "--to", "1", "--lake", lake.root, "--exit-code")


def test_keys_of_maps_are_texts(spark: SparkSession) -> None:
    """As in answers of `sql`, also where the values' type changed: Spark would write a day's number, and an object."""
    maps = "SELECT {} AS id, map(DATE'2020-01-02', map(X'ff', {})) AS m"
    before, after = (spark.sql(f"{maps.format(1, one)} UNION ALL {maps.format(2, 9)}") for one in ("1", "2L"))
    [row] = compare.changes(before, after, ["id"]).collect()
    assert (row["at"]["id"], row["before"]["m"]) == (1, '{"2020-01-02":{"/w==":1}}')
    assert row["after"]["m"] == '{"2020-01-02":{"/w==":2}}'


def test_without_a_feed_both_versions_are_read_whole(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """The same changes, also where the images of the changed rows are gone; and a format in memory tells the same."""
    copy = tmp_path / "lake"
    shutil.copytree(lake.root, copy)
    at = Lake(str(copy)).silver("s", "db.orders", ("id",))
    shutil.rmtree(f"{at.location}/_change_data")
    assert DeltaFormat().changed_keys(spark, at, 0, 1) is None
    memory, there = MemoryFormat(), lake.silver("s", "db.orders", ("id",))
    for version in range(2):
        rows = DeltaFormat().read(spark, there, version)
        memory.apply(rows, there, Progress("b", version))
    found = []
    for format_, table in ((DeltaFormat(), there), (DeltaFormat(), at), (memory, there)):
        with diff.changes(spark, format_, DiffRequest(table, 0, 1)) as changes:
            found.append([tuple(each) for each in changes.rows.orderBy("at").collect()])
            assert changes.counts == {"added": 1, "removed": 1, "changed": 1}
    assert found[0] == found[1] == found[2]
