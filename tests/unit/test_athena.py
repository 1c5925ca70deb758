"""``sql --engine athena``: what is asked of AWS, how its texts become values, and what its refusals become of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
import requests
from botocore.config import Config
from botocore.stub import Stubber
from moto import mock_aws

from replicator.catalog import athena
from replicator.catalog.athena_rows import arrow_type, batches
from replicator.errors import ConfigError, ReplicatorError, Unreachable
from tests.cli import said

PLACE = athena.AthenaSettings(region="us-east-1")
RESULTS = "http://motoapi.amazonaws.com/moto-api/static/athena/query-results"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of nobody, whatever this machine has."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)


def info(name: str, kind: str, **more: int) -> dict[str, Any]:
    return {"Name": name, "Type": kind, **more}


def row(*texts: str | None) -> dict[str, Any]:
    return {"Data": [{} if text is None else {"VarCharValue": text} for text in texts]}


def page(columns: list[dict[str, Any]], *rows: dict[str, Any]) -> dict[str, Any]:
    return {"Rows": list(rows), "ResultSetMetadata": {"ColumnInfo": columns}}


COLUMNS = [info("customer_id", "varchar"), info("revenue", "decimal", Precision=12, Scale=2)]
ROWS = [row("customer_id", "revenue"), row("QUICK", "110277.31"), row("ALFKI", None)]


@mock_aws
def test_a_query_is_asked_where_the_configuration_says(tmp_path: Path) -> None:
    """The whole way from the command line: workgroup, database, output; its rows, and what it cost on stderr."""
    boto3.client("athena", region_name="eu-west-1").create_work_group(Name="analysts", Configuration={})
    result = {"rows": ROWS, "column_info": COLUMNS}
    requests.post(RESULTS, json={"region": "eu-west-1", "results": [result]}, timeout=5)
    (tmp_path / "aws.yaml").write_text(
        "athena: {region: eu-west-1, workgroup: analysts, database: datalake, output: 's3://results/sql/'}\n"
    )
    told = said("sql", "SELECT 1", "--engine", "athena", "--format", "csv", "--conf", str(tmp_path), "--env", "aws")
    assert told == "customer_id,revenue\nQUICK,110277.31\nALFKI,\n"
    client = boto3.client("athena", region_name="eu-west-1")
    [execution] = client.list_query_executions(WorkGroup="analysts")["QueryExecutionIds"]
    asked = client.get_query_execution(QueryExecutionId=execution)["QueryExecution"]
    assert asked["QueryExecutionContext"] == {"Database": "datalake", "Catalog": "AwsDataCatalog"}
    assert asked["ResultConfiguration"]["OutputLocation"].startswith("s3://results/sql/")


@mock_aws
def test_a_workgroup_that_there_is_not_is_a_mistake_of_configuration() -> None:
    """Exit 2: a retry changes nothing."""
    place = athena.AthenaSettings(region="us-east-1", workgroup="no")
    with pytest.raises(ConfigError, match="WorkGroup does not exist"):
        athena.AthenaEngine(athena.client(place), place).ask("SELECT 1", None)


class Played:
    """Athena by a script of its answers, in the order in which they must be asked for."""

    def __init__(self) -> None:
        self.client = boto3.client("athena", region_name="us-east-1", config=Config(retries={"max_attempts": 0}))
        self.stub = Stubber(self.client)
        self.waited: list[float] = []
        place = {"QueryExecutionContext": {"Database": "default", "Catalog": "AwsDataCatalog"}, "WorkGroup": "primary"}
        self.stub.add_response(
            "start_query_execution", {"QueryExecutionId": "q1"}, {"QueryString": "SELECT 1", **place}
        )

    def state(self, state: str, statistics: dict[str, Any] | None = None, **status: Any) -> None:
        found = {"Status": {"State": state, **status}, "StatementType": "DML", "Statistics": statistics or {}}
        self.stub.add_response("get_query_execution", {"QueryExecution": found}, {"QueryExecutionId": "q1"})

    def result(self, result: dict[str, Any], size: int, token: str | None = None, following: str | None = None) -> None:
        wanted = {"QueryExecutionId": "q1", "MaxResults": size} | ({"NextToken": token} if token else {})
        self.stub.add_response(
            "get_query_results", {"ResultSet": result, **({"NextToken": following} if following else {})}, wanted
        )

    def engine(self) -> athena.AthenaEngine:
        self.stub.activate()
        return athena.AthenaEngine(self.client, PLACE, self.waited.append)


def test_pages_are_fetched_as_far_as_somebody_reads() -> None:
    """Only the first one has the header; the last is not asked for when nobody wants it."""
    played = Played()
    played.state("SUCCEEDED")
    columns = [info("n", "bigint")]
    played.result(page(columns, row("n"), row("1"), row("2")), 1000, following="two")
    played.result(page(columns, row("3")), 1000, "two", "three")
    texts = played.engine().ask("SELECT 1", None).texts()
    assert [next(texts)[0] for _ in range(3)] == ["1", "2", "3"]
    played.stub.assert_no_pending_responses()


def test_any_number_of_pages_is_read() -> None:
    """And no more rows at once than are wanted."""
    played = Played()
    played.state("SUCCEEDED")
    columns = [info("n", "bigint")]
    for number in range(5):
        token, following = (f"t{number}" if number else None), (f"t{number + 1}" if number < 4 else None)
        header = [row("n")] if number == 0 else []
        played.result(page(columns, *header, row(str(number))), 8, token, following)
    assert played.engine().ask("SELECT 1", 7).batches().read_all().column("n").to_pylist() == list(range(5))


def test_it_is_asked_less_and_less_often_and_tells_what_it_took() -> None:
    """From a quarter of a second up to five."""
    played = Played()
    for state in ("QUEUED", *["RUNNING"] * 12):
        played.state(state)
    played.state("SUCCEEDED", {"TotalExecutionTimeInMillis": 1234, "DataScannedInBytes": 5678901})
    played.result(page(COLUMNS, *ROWS), 1000)
    engine = played.engine()
    engine.ask("SELECT 1", None)
    assert (played.waited[0], played.waited[-1]) == (0.25, 5.0)
    assert played.waited == sorted(played.waited)
    assert engine.summary() == "Athena: 1.2 s, 5,678,901 bytes scanned"


def test_whoever_interrupts_stops_the_query_too() -> None:
    """It would go on scanning, and costing."""
    played = Played()
    played.state("RUNNING")
    played.stub.add_response("stop_query_execution", {}, {"QueryExecutionId": "q1"})
    engine = played.engine()

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    engine._wait = interrupted
    with pytest.raises(KeyboardInterrupt):
        engine.ask("SELECT 1", None)
    played.stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ({"StateChangeReason": "SYNTAX_ERROR: line 1", "AthenaError": {"ErrorCategory": 2}}, ConfigError),
        ({"StateChangeReason": "throttled", "AthenaError": {"ErrorCategory": 3, "Retryable": True}}, Unreachable),
        ({"StateChangeReason": "internal", "AthenaError": {"ErrorCategory": 1}}, Unreachable),
        ({"StateChangeReason": "out of memory", "AthenaError": {"ErrorCategory": 3}}, ReplicatorError),
        ({"AthenaError": {"ErrorCategory": 3, "ErrorMessage": "out of memory"}}, ReplicatorError),
        ({}, ReplicatorError),
    ],
)
def test_a_query_that_failed_says_athenas_reason(status: dict[str, Any], kind: type[ReplicatorError]) -> None:
    """By its category: the query's own mistake, a failure of the moment, or neither."""
    played = Played()
    played.state("FAILED", **status)
    reason = status.get("StateChangeReason") or status.get("AthenaError", {}).get("ErrorMessage", "no reason")
    with pytest.raises(ReplicatorError, match=reason) as raised:
        played.engine().ask("SELECT 1", None)
    assert type(raised.value) is kind


def test_a_query_that_somebody_cancelled_is_no_answer() -> None:
    """Exit 1, by name."""
    played = Played()
    played.state("CANCELLED", StateChangeReason="by an administrator")
    with pytest.raises(ReplicatorError, match="cancelled: by an administrator"):
        played.engine().ask("SELECT 1", None)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UnrecognizedClientException", ConfigError),
        ("AccessDeniedException", ConfigError),
        ("InvalidRequestException", ConfigError),
        ("TooManyRequestsException", Unreachable),
        ("InternalServerException", Unreachable),
    ],
)
def test_what_aws_refuses_is_told_by_its_code(code: str, kind: type[ReplicatorError]) -> None:
    """Who may not ask is told apart from who should ask later."""
    client = boto3.client("athena", region_name="us-east-1", config=Config(retries={"max_attempts": 0}))
    with Stubber(client) as stub:
        stub.add_client_error("start_query_execution", code, "because")
        with pytest.raises(kind, match="because"):
            athena.AthenaEngine(client, PLACE).ask("SELECT 1", None)


def test_nobody_at_the_address_is_out_of_reach() -> None:
    """Exit 3; the address is named."""
    place = athena.AthenaSettings(region="us-east-1", endpoint="http://127.0.0.1:9")
    with pytest.raises(Unreachable, match="does not answer") as raised:
        athena.AthenaEngine(athena.client(place), place).ask("SELECT 1", None)
    assert raised.value.where == "http://127.0.0.1:9"


def test_a_region_is_needed() -> None:
    """Neither the configuration nor AWS's own chain has one."""
    with pytest.raises(ConfigError, match="region"):
        athena.client(athena.AthenaSettings())


def test_a_profile_that_nobody_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose keys stand in variables is not told to give some."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers what it has read
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigError, match=r"the request to Athena failed: The config profile \(nobody\)"):
        athena.client(PLACE)


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        (info("c", "boolean"), "true", True),
        (info("c", "tinyint"), "-1", -1),
        (info("c", "bigint"), "9223372036854775807", 2**63 - 1),
        (info("c", "double"), "Infinity", float("inf")),
        (info("c", "real"), "-Infinity", float("-inf")),
        (info("c", "double"), "1.5E10", 1.5e10),
        (info("c", "decimal", Precision=38, Scale=2), "12345678901234567890123456789012345.67", None),
        (info("c", "varbinary"), "61 ff", b"a\xff"),
        (info("c", "varchar"), "", ""),
        (info("c", "map"), "{a=1}", "{a=1}"),
        (info("c", "timestamp with time zone"), "2024-05-06 07:08:09.123 UTC", "2024-05-06 07:08:09.123 UTC"),
    ],
)
def test_a_text_of_athenas_is_a_value_of_its_type(
    column: dict[str, Any], text: str, value: bool | bytes | float | str | None
) -> None:
    """By the result's metadata; NULL is the text that is not there."""
    read = batches([page([column], row(text), row(None))], has_header=False).read_all()
    assert read.schema.field("c").type == arrow_type(column)
    found = read.column("c").to_pylist()
    assert (str(found[0]) if value is None else found[0], found[1]) == (text if value is None else value, None)


def test_times_and_dates_are_times_and_dates() -> None:
    """To the microsecond."""
    columns = [info("d", "date"), info("t", "timestamp")]
    read = batches([page(columns, row("2024-05-06", "2024-05-06 07:08:09.123"))], has_header=False).read_all()
    assert read.schema.types == [pa.date32(), pa.timestamp("us")]
    assert str(read.column("t")[0]) == "2024-05-06 07:08:09.123000"


def test_a_first_row_that_is_no_header_is_a_row() -> None:
    """EXPLAIN has none, and a SELECT of names may look like one."""
    columns = [info("plan", "varchar")]
    assert batches([page(columns, row("Query Plan"))], has_header=True).read_all().num_rows == 1
    assert batches([page(columns, row("plan"))], has_header=False).read_all().num_rows == 1


@pytest.mark.parametrize(
    ("kind", "text"), [("date", "-0043-03-15"), ("date", "10000-01-01"), ("timestamp", "+10000-01-01 00:00:00.000")]
)
def test_a_time_that_arrow_does_not_read_is_told_with_a_way_out(kind: str, text: str) -> None:
    """Also of a later page: Athena has years before 1 and after 9999."""
    columns = [info("at", kind)]
    pages = [page(columns, row(None)), page(columns, row(text))]
    with pytest.raises(ReplicatorError, match=r"cannot be read: .*CAST\(... AS varchar\)"):
        batches(pages, has_header=False).read_all()
