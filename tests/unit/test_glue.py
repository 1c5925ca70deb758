"""``replicator catalog sync`` against Glue as moto keeps it: what is written, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, NoCredentialsError, NoRegionError
from botocore.stub import Stubber
from moto import mock_aws

from replicator.catalog import glue
from replicator.catalog.entries import Entry, LakeTable, entries
from replicator.catalog.glue import GlueCatalog
from replicator.catalog.sync import Outcome, Plan, sync
from replicator.cli import catalog
from replicator.errors import CatalogRefused, ConfigError, Unreachable
from replicator.spec import TableDetail
from tests.catalogued import HUDI, schema, silver

LAKE = "s3://bucket/lake"
PARTED = ("customer_id", "order_id")


class Glue:
    """The catalog of a test, and Glue itself to look into."""

    def __init__(self) -> None:
        self.catalog = GlueCatalog("lakehouse", "us-east-1")
        self.client = self.catalog._client

    def sync(self, *tables: LakeTable, drop: bool = False, dry_run: bool = False) -> dict[str, Outcome]:
        """What became of each entry."""
        made = [entry for table in tables for entry in entries(table, "lakehouse")]
        plan = Plan(LAKE, tuple(made), frozenset(table.title for table in tables))
        return {each.name: each for each in sync(self.catalog, plan, drop=drop, dry_run=dry_run)}

    def table(self, name: str) -> dict[str, Any]:
        """As Glue has it."""
        found: dict[str, Any] = self.client.get_table(DatabaseName="lakehouse", Name=name)["Table"]
        return found

    def names(self) -> list[str]:
        """Of everything that is registered."""
        return sorted(each["Name"] for each in self.client.get_tables(DatabaseName="lakehouse")["TableList"])

    def change(self, name: str, **fields: Any) -> None:
        """As somebody else would, by hand."""
        present = self.catalog.tables()[name]
        self.client.update_table(DatabaseName="lakehouse", TableInput={**present, **fields})

    def versions(self, name: str) -> int:
        """How often a table was written."""
        return len(self.client.get_table_versions(DatabaseName="lakehouse", TableName=name)["TableVersions"])

    def partitions(self, name: str) -> dict[tuple[str, ...], dict[str, Any]]:
        """As Glue has them."""
        return self.catalog.partitions(name)


@pytest.fixture(scope="module")
def account() -> Iterator[Glue]:
    with mock_aws():
        yield Glue()


@pytest.fixture
def aws(account: Glue) -> Iterator[Glue]:
    """Glue without any database."""
    yield account
    for each in account.client.get_databases()["DatabaseList"]:
        account.client.delete_database(Name=each["Name"])


def actions(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {name: each.action for name, each in outcomes.items()}


def told(outcome: Outcome) -> list[tuple[str, str | None, str | None]]:
    return [(each.what, each.before, each.after) for each in outcome.changes]


def orders(*folders: str, kept: TableDetail = HUDI, **more: str) -> LakeTable:
    parted = replace(kept, partition_by=PARTED, folders=folders)
    return silver(parted, order_id="INT", customer_id="STRING", placed="DATE", **more)


def gold(location: str = "s3a://bucket/lake/gold/m", **columns: str) -> LakeTable:
    return LakeTable("m", "gold/m", location, schema(**columns), TableDetail("delta"), "One row.", {"k": "A key."})


def test_a_table_in_delta_is_what_athena_and_spark_look_for(aws: Glue) -> None:
    """`table_type` is Athena's, the provider and the path are Spark's, and the columns are all there."""
    assert actions(aws.sync(silver(id="INT"), gold(k="STRING"))) == {
        "lakehouse": "created", "orders__all": "created", "orders": "created", "m": "created",
    }  # fmt: skip
    table = aws.table("orders__all")
    place = table["StorageDescriptor"]
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Parameters"] == {
        "EXTERNAL": "TRUE",
        "table_type": "DELTA",
        "spark.sql.sources.provider": "delta",
        "replicator.lake": LAKE,
        "replicator.table": "silver/shop/sales.orders",
    }
    assert place["Location"] == place["SerdeInfo"]["Parameters"]["path"] == f"{LAKE}/silver/shop/sales.orders"
    assert [(each["Name"], each["Type"]) for each in place["Columns"]] == [
        ("id", "int"), ("_seq", "string"), ("_deleted", "boolean"), ("_column_seq", "map<string,string>"),
        ("_source_ts_ms", "bigint"),
    ]  # fmt: skip
    assert (aws.table("m")["Description"], aws.table("m")["StorageDescriptor"]["Columns"]) == (
        "One row.", [{"Name": "k", "Type": "string", "Comment": "A key."}],
    )  # fmt: skip


def test_a_view_is_one_of_athena_s(aws: Glue) -> None:
    """Without data of its own, with the flag and the texts that Trino's connector asks for."""
    aws.sync(silver(id="INT"))
    view = aws.table("orders")
    assert (view["TableType"], view["ViewExpandedText"]) == ("VIRTUAL_VIEW", "/* Presto View */")
    assert view["ViewOriginalText"].startswith("/* Presto View: ")
    assert (view["Parameters"]["presto_view"], view["Parameters"]["comment"]) == ("true", "Presto View")
    assert [each["Name"] for each in view["StorageDescriptor"]["Columns"]] == ["id"]
    assert view["StorageDescriptor"]["SerdeInfo"]["SerializationLibrary"]
    assert view["PartitionKeys"] == []


@pytest.mark.parametrize(
    ("on_read", "formats"),
    [
        (False, {"orders__all": ("HoodieParquetInputFormat", "false")}),
        (
            True,
            {
                "orders__all_rt": ("realtime.HoodieParquetRealtimeInputFormat", "false"),
                "orders__all_ro": ("HoodieParquetInputFormat", "true"),
            },
        ),
    ],
    ids=["copy on write", "merge on read"],
)
def test_a_table_in_hudi_is_what_hudi_s_own_sync_makes_of_it(
    aws: Glue, on_read: bool, formats: dict[str, tuple[str, str]]
) -> None:
    """Input format, SerDe, Spark's schema with the columns that part it, and the partitions themselves."""
    kept = replace(HUDI, merge_on_read=on_read)
    aws.sync(orders("customer_id=ALFKI/order_id=1", kept=kept))
    assert set(aws.names()) == {"orders", *formats}
    for name, (input_format, is_compacted) in formats.items():
        table = aws.table(name)
        place, parameters = table["StorageDescriptor"], table["Parameters"]
        assert place["InputFormat"] == f"org.apache.hudi.hadoop.{input_format}"
        assert place["SerdeInfo"]["SerializationLibrary"].endswith("ParquetHiveSerDe")
        assert place["SerdeInfo"]["Parameters"]["hoodie.query.as.ro.table"] == is_compacted
        assert [each["Name"] for each in place["Columns"]][:6] == [
            "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path",
            "_hoodie_file_name", "placed",
        ]  # fmt: skip
        assert [(each["Name"], each["Type"]) for each in table["PartitionKeys"]] == [
            ("customer_id", "string"), ("order_id", "int"),
        ]  # fmt: skip
        assert parameters["spark.sql.sources.provider"] == "hudi"
        assert parameters["spark.sql.sources.schema.numPartCols"] == "2"
        assert parameters["spark.sql.sources.schema.partCol.1"] == "order_id"
        schema = json.loads(parameters["spark.sql.sources.schema.part.0"])
        assert [each["name"] for each in schema["fields"]][-2:] == ["customer_id", "order_id"]
        [(values, partition)] = aws.partitions(name).items()
        assert (values, partition["Location"]) == (("ALFKI", "1"), f"{place['Location']}/customer_id=ALFKI/order_id=1")
        assert partition["InputFormat"] == place["InputFormat"]


def test_a_long_schema_is_cut_into_parts(aws: Glue) -> None:
    """Spark puts 4,000 characters into a parameter and joins them."""
    aws.sync(silver(HUDI, **{f"column_number_{at}": "BIGINT" for at in range(150)}))
    parameters = aws.table("orders__all")["Parameters"]
    count = int(parameters["spark.sql.sources.schema.numParts"])
    parts = [parameters[f"spark.sql.sources.schema.part.{at}"] for at in range(count)]
    assert count > 2
    assert {len(each) for each in parts[:-1]} == {4000}
    assert len(json.loads("".join(parts))["fields"]) == 5 + 150 + 4


def test_a_second_sync_changes_nothing(aws: Glue) -> None:
    """Nothing is written again: no new version of any table, no partition touched."""
    tables = (orders("customer_id=A/order_id=1"), gold(k="STRING"))
    aws.sync(*tables)
    before = {name: aws.versions(name) for name in aws.names()}
    again = aws.sync(*tables)
    assert set(actions(again).values()) == {"unchanged"}
    assert (again["orders__all"].added, again["orders__all"].changed, again["orders__all"].removed) == (0, 0, 0)
    assert {name: aws.versions(name) for name in aws.names()} == before


def test_a_column_that_is_new_or_wider_is_told_and_changed(aws: Glue) -> None:
    """Column by column, in the table and in its view; partitions have the columns of their table."""
    aws.sync(orders("customer_id=A/order_id=1", total="INT"))
    done = aws.sync(orders("customer_id=A/order_id=1", total="BIGINT", note="TIMESTAMP"))
    assert told(done["orders"])[:2] == [("column total", "int", "bigint"), ("column note", None, "timestamp")]
    changes = {what: (before, after) for what, before, after in told(done["orders__all"])}
    assert changes["column total"] == ("int", "bigint")
    assert changes["column note"] == (None, "timestamp")
    assert done["orders__all"].changed == 1
    [partition] = aws.partitions("orders__all").values()
    assert ("total", "bigint") in {(each["Name"], each["Type"]) for each in partition["Columns"]}
    assert set(actions(aws.sync(orders("customer_id=A/order_id=1", total="BIGINT", note="TIMESTAMP"))).values()) == {
        "unchanged"
    }


def test_what_is_not_ours_stays(aws: Glue) -> None:
    """Parameters, comments and owners of somebody else survive a change of ours, and are no difference."""
    aws.sync(gold(k="STRING", v="INT"))
    present = aws.catalog.tables()["m"]
    place = present["StorageDescriptor"]
    theirs = [{**each, "Comment": each.get("Comment", "Theirs.")} for each in place["Columns"]]
    aws.change(
        "m",
        Owner="ann",
        Parameters={**present["Parameters"], "classification": "delta"},
        StorageDescriptor={**place, "Columns": theirs, "Parameters": {"a": "b"}},
    )
    assert actions(aws.sync(gold(k="STRING", v="INT"))) == {"m": "unchanged"}
    done = aws.sync(gold(k="STRING", v="BIGINT"))["m"]
    assert told(done) == [("column v", "int", "bigint")]
    table = aws.table("m")
    assert (table["Owner"], table["Parameters"]["classification"]) == ("ann", "delta")
    assert table["StorageDescriptor"]["Columns"][1]["Comment"] == "Theirs."
    assert table["StorageDescriptor"]["Parameters"] == {"a": "b"}


def test_what_somebody_changed_of_ours_is_told_and_put_right(aws: Glue) -> None:
    """A table that was registered with other columns, at another place, as another format."""
    aws.sync(gold(k="STRING", v="INT"))
    place = aws.catalog.tables()["m"]["StorageDescriptor"]
    wrong = [{"Name": "v", "Type": "string"}, {"Name": "w", "Type": "int"}]
    aws.change("m", StorageDescriptor={**place, "Columns": wrong, "Location": "s3://elsewhere/m"})
    assert told(aws.sync(gold(k="STRING", v="INT"))["m"]) == [
        ("column k", None, "string"),
        ("column v", "string", "int"),
        ("column w", "int", None),
        ("location", "s3://elsewhere/m", "s3://bucket/lake/gold/m"),
    ]
    assert aws.table("m")["StorageDescriptor"]["Location"] == "s3://bucket/lake/gold/m"


def test_a_table_that_changes_its_format_leaves_nothing_of_the_old(aws: Glue) -> None:
    """Athena would take it for Delta as long as `table_type` says so."""
    aws.sync(silver(id="INT"))
    aws.sync(silver(HUDI, id="INT"))
    parameters = aws.table("orders__all")["Parameters"]
    assert "table_type" not in parameters
    aws.sync(silver(id="INT"))
    parameters = aws.table("orders__all")["Parameters"]
    assert parameters["table_type"] == "DELTA"
    assert not [name for name in parameters if name.startswith("spark.sql.sources.schema")]


def foreign(aws: Glue, name: str, **fields: Any) -> None:
    aws.client.create_database(DatabaseInput={"Name": "lakehouse"})
    aws.client.create_table(DatabaseName="lakehouse", TableInput={"Name": name, "PartitionKeys": [], **fields})


@pytest.mark.parametrize(
    ("name", "fields", "what"),
    [
        ("orders__all", {"StorageDescriptor": {"Location": "s3://theirs/o"}}, "as a table at s3://theirs/o"),
        ("orders", {"StorageDescriptor": {"Location": f"{LAKE}/silver/shop/sales.orders"}}, "as a table"),
        ("orders", {"ViewOriginalText": "SELECT 1", "TableType": "VIRTUAL_VIEW"}, "as a view with another query"),
        ("orders", {"Parameters": {"replicator.lake": "s3://other"}}, "belongs to another lake, s3://other"),
    ],
)
def test_a_name_that_is_somebody_else_s_is_refused_and_left_alone(
    aws: Glue, name: str, fields: dict[str, Any], what: str
) -> None:
    """Other tables go on; nothing of theirs is written, dry or not."""
    foreign(aws, name, **fields)
    before = aws.table(name)
    done = aws.sync(silver(id="INT"), gold(k="STRING"))
    assert what in str(done[name].error)
    assert sorted(actions(done).values()) == ["created", "created", "refused"]
    assert aws.table(name) == before


def test_a_table_at_our_own_place_is_taken_over(aws: Glue) -> None:
    """Registered before by Hudi's or Athena's own means, or by our statements: the same place, the same table."""
    table, view = entries(silver(id="INT"), "lakehouse")
    foreign(aws, "orders__all", StorageDescriptor={"Location": f"{table.location}/"}, Parameters={"x": "y"})
    text = aws_text(view)
    aws.client.create_table(DatabaseName="lakehouse", TableInput={"Name": "orders", "ViewOriginalText": text})
    assert actions(aws.sync(silver(id="INT"))) == {"orders__all": "changed", "orders": "changed"}
    assert aws.table("orders__all")["Parameters"]["x"] == "y"
    assert set(actions(aws.sync(silver(id="INT"))).values()) == {"unchanged"}


def aws_text(view: Entry) -> str:
    from replicator.catalog import presto_view

    return presto_view.encode(view.sql, "lakehouse", view.columns)


def test_a_dry_run_tells_the_same_and_writes_nothing(aws: Glue) -> None:
    """Of what is new, of what differs, of partitions, of what would be dropped."""
    dry = aws.sync(silver(id="INT"), dry_run=True)
    assert aws.client.get_databases()["DatabaseList"] == []
    assert dry == aws.sync(silver(id="INT"))
    aws.sync(orders("customer_id=A/order_id=1"))
    before = {name: aws.table(name) for name in aws.names()}
    changed = orders("customer_id=B/order_id=1", total="INT")
    dry = aws.sync(changed, drop=True, dry_run=True)
    assert {name: aws.table(name) for name in aws.names()} == before
    assert list(aws.partitions("orders__all")) == [("A", "1")]
    assert dry == aws.sync(changed, drop=True)


def test_330_partitions_come_change_and_go_in_portions_that_glue_takes(aws: Glue) -> None:
    """100 new ones to a call, 25 that go; NULL is Hive's word for it."""
    calls: list[tuple[str, int]] = []

    def count(params: dict[str, Any], model: Any, **_: Any) -> None:
        told = params.keys() & {"PartitionInputList", "PartitionsToDelete", "Entries"}
        calls.extend((model.name, len(params[key])) for key in told)

    aws.catalog._client.meta.events.register("before-parameter-build.glue.*", count)
    every = [f"customer_id=C{at % 89}/order_id={at}" for at in range(329)]
    nowhere = "customer_id=__HIVE_DEFAULT_PARTITION__/order_id=11075"
    done = aws.sync(orders(*every, nowhere))["orders__all"]
    assert (done.added, done.changed, done.removed) == (330, 0, 0)
    assert calls == [("BatchCreatePartition", 100)] * 3 + [("BatchCreatePartition", 30)]
    assert ("__HIVE_DEFAULT_PARTITION__", "11075") in aws.partitions("orders__all")
    assert actions(aws.sync(orders(*every, nowhere))) == {"orders__all": "unchanged", "orders": "unchanged"}
    calls.clear()
    done = aws.sync(orders(*every[60:], "customer_id=RICSU/order_id=11075", total="INT"))["orders__all"]
    assert (done.added, done.changed, done.removed) == (1, 269, 61)
    assert {name: sum(n for each, n in calls if each == name) for name, _ in calls} == {
        "BatchDeletePartition": 61, "BatchUpdatePartition": 269, "BatchCreatePartition": 1,
    }  # fmt: skip
    assert max(n for name, n in calls if name == "BatchDeletePartition") == glue.DELETE_BATCH
    assert len(aws.partitions("orders__all")) == 270
    aws.client.meta.events.unregister("before-parameter-build.glue.*", count)


def test_the_last_partition_goes_too(aws: Glue) -> None:
    """Of a table that is empty now: readers would look for its folder."""
    aws.sync(orders("customer_id=A/order_id=1"))
    done = aws.sync(orders())["orders__all"]
    assert (done.action, done.removed) == ("changed", 1)
    assert aws.partitions("orders__all") == {}
    assert aws.sync(orders())["orders__all"].action == "unchanged"


def test_every_page_is_read() -> None:
    """Glue cuts its answers; half of them would be registered again, or taken for gone."""
    catalog, at = GlueCatalog("lakehouse", "us-east-1"), {"DatabaseName": "lakehouse"}
    with Stubber(catalog._client) as stub:
        stub.add_response("get_tables", {"TableList": [{"Name": "a"}], "NextToken": "more"}, at)
        stub.add_response("get_tables", {"TableList": [{"Name": "b"}]}, {**at, "NextToken": "more"})
        assert list(catalog.tables()) == ["a", "b"]
        for values, more in (("0", {"NextToken": "more"}), ("1", {})):
            page = {"Partitions": [{"Values": [values], "StorageDescriptor": {}}], **more}
            stub.add_response("get_partitions", page)
        assert list(catalog.partitions("t")) == [("0",), ("1",)]


def test_a_table_that_the_lake_has_no_more_is_told_and_dropped_on_demand_only(aws: Glue) -> None:
    """Ours of this lake alone: somebody else's tables and those of other lakes are none of our business."""
    aws.sync(silver(id="INT"), gold(k="STRING"))
    aws.client.create_table(DatabaseName="lakehouse", TableInput={"Name": "theirs", "PartitionKeys": []})
    assert actions(aws.sync(gold(k="STRING"))) == {"m": "unchanged", "orders": "gone", "orders__all": "gone"}
    assert aws.names() == ["m", "orders", "orders__all", "theirs"]
    dropped = aws.sync(gold(k="STRING"), drop=True)
    assert {name for name, action in actions(dropped).items() if action == "dropped"} == {"orders", "orders__all"}
    assert aws.names() == ["m", "theirs"]


def test_a_table_that_was_refused_keeps_what_it_had(aws: Glue) -> None:
    """Its entries are not wanted now, and yet the lake has it; nor is gone what nobody asked about."""
    aws.sync(silver(id="INT"))
    title = "silver/shop/sales.orders"
    refused = Plan(LAKE, (), frozenset({title}))
    assert list(sync(aws.catalog, refused, drop=True)) == []
    elsewhere = Plan(LAKE, (), frozenset(), lambda title: title.startswith("gold/"))
    assert list(sync(aws.catalog, elsewhere, drop=True)) == []
    assert aws.names() == ["orders", "orders__all"]


def test_an_entry_that_does_not_say_any_more_which_table_it_shows_is_left_alone(aws: Glue) -> None:
    """Somebody took the parameter away: what the lake has gets it back, the rest may be a table that was refused."""
    aws.sync(silver(id="INT"), gold(k="STRING"))
    for name in ("orders", "m"):
        parameters = aws.catalog.tables()[name]["Parameters"]
        aws.change(name, Parameters={k: v for k, v in parameters.items() if k != "replicator.table"})
    outcomes = aws.sync(gold(k="STRING"), drop=True)
    assert actions(outcomes) == {"m": "changed", "orders__all": "dropped"}
    assert aws.names() == ["m", "orders"]


def test_what_was_done_before_glue_went_away_is_told(aws: Glue, capsys: pytest.CaptureFixture[str]) -> None:
    """A table that was registered is in Glue, whatever becomes of the next; with nothing done nothing is printed."""

    def is_there(name: str) -> bool:
        try:
            boto3.client("glue", region_name="us-east-1").get_table(DatabaseName="lakehouse", Name=name)
        except ClientError:
            return False
        return True

    def busy(**_: Any) -> None:
        if is_there("orders__all"):
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "CreateTable")

    made = tuple(each for table in (silver(id="INT"), gold(k="STRING")) for each in entries(table, "lakehouse"))
    printed = []
    for call in ("CreateTable", "GetTables"):
        aws.client.meta.events.register(f"before-call.glue.{call}", busy)
        try:
            with pytest.raises(Unreachable, match="Glue is busy"):
                catalog.print_outcomes([], sync(aws.catalog, Plan(LAKE, made, frozenset())), as_json=True)
        finally:
            aws.client.meta.events.unregister(f"before-call.glue.{call}", busy)
        printed.append(capsys.readouterr().out)
    assert [each["name"] for each in json.loads(printed[0])] == ["lakehouse", "orders__all"]
    assert printed[1] == ""


def test_what_a_batch_refuses_is_an_error_of_its_table(aws: Glue) -> None:
    """Glue answers 200 and lists what failed: a partition that came meanwhile is none, one that is not there is."""
    aws.sync(orders("customer_id=A/order_id=1"))
    there = [{"Values": ["A", "1"], "StorageDescriptor": {}}]
    aws.catalog.add_partitions("orders__all", there)
    aws.catalog.remove_partitions("orders__all", [("B", "2")])
    with pytest.raises(CatalogRefused, match=r"EntityNotFoundException \[lakehouse.orders__all\]"):
        aws.catalog.update_partitions("orders__all", [{**there[0], "Values": ["B", "2"]}])


def test_glue_that_does_not_answer_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3: try again."""
    monkeypatch.setattr(glue, "_PATIENCE", {"connect_timeout": 0.2, "retries": {"total_max_attempts": 1}})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with pytest.raises(Unreachable, match="Glue does not answer"):
        GlueCatalog("lakehouse", "us-east-1", "http://127.0.0.1:9").tables()


def test_glue_that_lets_nobody_in_is_a_matter_of_configuration() -> None:
    """Exit 2: neither credentials nor a region come by themselves; each error says what to give."""
    for code, kind in (
        ("AccessDeniedException", ConfigError),
        ("ThrottlingException", Unreachable),
        ("ResourceNumberLimitExceededException", CatalogRefused),
    ):
        with pytest.raises(kind, match=code), glue._GLUE.translated("lakehouse"):
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetTables")
    region = r"catalog\.region or the variable AWS_DEFAULT_REGION"
    with pytest.raises(ConfigError, match=region), glue._GLUE.translated("lakehouse"):
        raise NoRegionError
    with pytest.raises(ConfigError, match="No AWS credentials"), glue._GLUE.translated("lakehouse"):
        raise NoCredentialsError
