"""``replicator status`` without Spark: when it answers so, and when it says that Spark must. Tables here are written by
delta-rs; ``tests/contract/test_survey.py`` has those of Spark.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from replicator import cli
from replicator.catalog.control_reader import StoredControlReader
from replicator.catalog.store import Store
from replicator.errors import BronzeReplaced, LoginRefused, ReplicatorError, TargetRefused, Unreachable
from replicator.lake import Lake
from replicator.operate.progress.arrow_survey import ArrowSurvey, list_statuses
from replicator.operate.progress.table_status import TableStatus
from replicator.spec import Model, Progress, SourceSpec, Target

ROOT = Path(__file__).parents[2]
AT = datetime(2026, 11, 23, tzinfo=timezone.utc)
BRONZE = pa.table(
    {
        "topic": ["s.d.t", "s.d.t", "s.d.u"],
        "partition": pa.array([0, 1, 0], pa.int32()),
        "offset": pa.array([4, 9, 7], pa.int64()),
        "timestamp": pa.array([AT, None, AT], pa.timestamp("us", "UTC")),
    }
)
SILVER = pa.table(
    {
        "id": [1, 2, 3],
        "_seq": ["10", "12", "11"],
        "_deleted": [False, False, True],
        "_column_seq": pa.array([[("v", ""), ("w", "09")], [("v", "05")], None], pa.map_(pa.string(), pa.string())),
        "_source_ts_ms": pa.array([5, 6, 7], pa.int64()),
    }
)


def written(root: Path) -> ArrowSurvey:
    """A lake that is read to its end."""
    lake = Lake(str(root))
    place = lake.bronze("s").location
    deltalake.write_deltalake(place, BRONZE, partition_by=["topic"])
    table = deltalake.DeltaTable(place)
    read = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(str(table.metadata().id), 0)])
    deltalake.write_deltalake(lake.silver("s", "d.t").location, SILVER, commit_properties=read)
    routes = {"bronze": str(table.metadata().id), "tables": {"s.d.t": ["d.t"], "s.d.u": ["d.u"]}}
    put(lake.routes("s"), routes)
    return ArrowSurvey(lake, Store(str(root)), ("delta",), {}, (), {})


def put(path: str, value: Any) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(value), encoding="utf-8")


def test_rows_positions_and_lags_are_told(tmp_path: Path) -> None:
    """Records of other topics are not what a table lacks, and a file of several partitions is looked into. A value that
    is older than its row is known, one without a position is not.
    """
    at = written(tmp_path)
    milliseconds = int(AT.timestamp() * 1000)
    bronze = TableStatus("bronze", "s", 3, "version 0", newest_ms=milliseconds)
    silver = TableStatus("silver", "s/d.t", 2, "12", 0, 0.0, 1, 7, unknown=1)
    assert list_statuses(at) == [bronze, silver]
    assert at.reached(at.lake.bronze("s")) == {("s.d.t", 0): 5, ("s.d.t", 1): 10, ("s.d.u", 0): 8}
    for _ in range(2):
        deltalake.write_deltalake(at.lake.bronze("s").location, BRONZE, mode="append")
    [late] = [each for each in list_statuses(replace(at, opened={})) if each.layer == "silver"]
    assert (late.lag_events, (late.lag_seconds or 0) > 0) == (4, True)


def test_a_row_dated_in_the_future_is_no_lead(tmp_path: Path) -> None:
    """No lag is below zero: the clock of the source, or a row of it, may be ahead of ours."""
    at, ahead = written(tmp_path), int((time.time() + 86_400) * 1000)
    deltalake.write_deltalake(at.lake.bronze("s").location, BRONZE, mode="append")
    rows = SILVER.slice(0, 1).set_column(4, "_source_ts_ms", pa.array([ahead], pa.int64()))
    deltalake.write_deltalake(at.lake.silver("s", "d.t").location, rows, mode="append")
    [silver] = [each for each in list_statuses(at) if each.layer == "silver"]
    assert (silver.lag_events, silver.lag_seconds) == (2, 0.0)


def test_a_log_that_was_cleaned_says_nothing_of_the_lag(tmp_path: Path) -> None:
    """Not known is not zero."""
    at = written(tmp_path)
    place = at.lake.bronze("s").location
    deltalake.write_deltalake(place, BRONZE, mode="append")
    deltalake.DeltaTable(place).create_checkpoint()
    for version in (0, 1):
        (Path(place) / "_delta_log" / f"{version:020d}.json").unlink()
    [silver] = [each for each in list_statuses(at) if each.layer == "silver"]
    assert (silver.lag_events, silver.lag_seconds) == (None, None)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (SourceSpec("s", "", objects="s3a://b/p"), "are stored in objects"),
        (
            SourceSpec("s", "s.*", bootstrap_servers="h:1", options={"sasl.jaas.config": "x"}),
            "only by Java's Kafka client",
        ),
    ],
)
def test_what_only_a_jvm_can_say_of_a_source_is_refused(tmp_path: Path, spec: SourceSpec, why: str) -> None:
    """Whoever asks goes on with Spark; nothing is left out."""
    with pytest.raises(ReplicatorError, match=why):
        list_statuses(replace(written(tmp_path), sources={"s": spec}))


def test_a_kafka_that_is_silent_is_no_reason_for_spark(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody can say how far bronze is behind, then, and why is told."""
    spec = SourceSpec("s", "s.*", bootstrap_servers="127.0.0.1:1", options={"security.protocol": "PLAINTEXT"})
    assert list_statuses(replace(written(tmp_path), sources={"s": spec}))[0].lag_events is None
    told = "source_silent source=s reason=Kafka does not answer"
    assert [message.partition(":")[0] for message in caplog.messages] == [told]


@pytest.mark.parametrize(
    ("error", "position"), [(Unreachable, "unreachable"), (LoginRefused, "access denied")], ids=["silent", "shut"]
)
def test_a_target_that_is_silent_or_shut_is_asked_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: type[ReplicatorError], position: str
) -> None:
    """Not for each of its models, though these are looked at side by side; and why is told, once."""
    asked = []

    class Silent:
        def progress(self, model: Model) -> None:
            asked.append(model.name)
            time.sleep(0.3)
            raise error("Postgres has its reason")

    models = [Model(n, "", {}, ("id",), (), target=Target("warehouse", "star", n)) for n in ("one", "two", "three")]
    sinks: Any = {"warehouse": Silent()}
    at = replace(written(tmp_path), models=models, sinks=sinks)
    for model in models:
        deltalake.write_deltalake(at.lake.gold(model.name).location, SILVER)
    found = [each for each in list_statuses(at) if each.layer == "publish"]
    assert [each.position for each in found] == [position] * 3
    assert len(asked) == 1
    assert caplog.messages == ["target_silent target=warehouse reason=Postgres has its reason"]


def test_a_target_that_is_not_behind_its_gold_table_has_no_lag(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A gold table that was made anew, or copied back, has other versions than the ledger tells of: nobody can say. Nor
    how far it is behind an input that was. Where the ledger does not count, all is to be sent, published before or not.
    One that state cannot be read hides nothing of gold.
    """

    class Recorded:
        def progress(self, model: Model) -> Progress | None:
            version = {"behind": 0, "ahead": 5, "anew": 5, "grown": None, "mute": -1}[model.name]
            if version == -1:
                raise TargetRefused("permission denied for table _replicator_ledger")
            if version is None:
                return None
            return Progress("another" if model.name == "anew" else str(at.identity(at.lake.gold(model.name))), version)

    inputs, names = {"t": "s/d.t"}, ("behind", "ahead", "anew", "grown", "mute")
    models = [Model(n, "", inputs, ("id",), (), target=Target("warehouse", "star", n)) for n in names]
    sinks: Any = {"warehouse": Recorded()}
    at = replace(written(tmp_path), models=models, sinks=sinks)
    for model in [*models, models[0]]:
        told = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(model.name, 0)])
        deltalake.write_deltalake(at.lake.gold(model.name).location, SILVER, mode="append", commit_properties=told)
        put(at.lake.inputs(model.name, 0), {"inputs": {"t": [at.identity(at.lake.silver("s", "d.t")), 7]}})
    assert {each.lag_events for each in list_statuses(at) if each.layer == "gold"} == {None}
    found = {each.table: (each.position, each.lag_events) for each in list_statuses(at) if each.layer == "publish"}
    assert found == {
        "star.behind": ("gold version 0", 1),
        "star.ahead": ("gold version 5", None),
        "star.anew": ("version 5 of another gold table", None),
        "star.grown": ("to be sent in full", None),
        "star.mute": ("state cannot be read", None),
    }
    assert "target_refused table=star.mute reason=TARGET_REFUSED: permission denied" in caplog.text


def test_a_bronze_that_is_older_than_silver_is_told(tmp_path: Path) -> None:
    """As a run says it (F-C6): by Spark, since the rest is told as well, then."""
    at = written(tmp_path)
    place, bronze = at.lake.silver("s", "d.t").location, at.identity(at.lake.bronze("s"))
    later = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(str(bronze), 2)])
    deltalake.write_deltalake(place, SILVER, mode="append", commit_properties=later)
    with pytest.raises(BronzeReplaced, match="silver has read bronze up to version 2, but bronze is at version 0"):
        list_statuses(replace(at, opened={}))


def test_how_far_a_restored_table_is_is_left_to_spark(tmp_path: Path) -> None:
    """Its log has the progress that it had before, until a commit tells another."""
    at = written(tmp_path)
    place, bronze = at.lake.silver("s", "d.t").location, at.identity(at.lake.bronze("s"))
    deltalake.write_deltalake(place, SILVER, mode="append")
    deltalake.DeltaTable(place).restore(0)
    for _ in range(2):
        with pytest.raises(ReplicatorError, match="restored to an older version"):
            list_statuses(replace(at, opened={}))
        deltalake.write_deltalake(place, SILVER, mode="append")
    told = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(str(bronze), 0)])
    deltalake.write_deltalake(place, SILVER, mode="append", commit_properties=told)
    [silver] = [each for each in list_statuses(replace(at, opened={})) if each.layer == "silver"]
    assert silver.lag_events == 0


def test_how_far_a_table_is_whose_last_commit_is_empty_is_left_to_spark(tmp_path: Path) -> None:
    """A power cut may empty it on a local disk. Delta's checksum beside it still has the progress that was lost with
    it, and delta-rs believes that; a commit behind it tells anew.
    """
    at = written(tmp_path)
    log, bronze = Path(at.lake.silver("s", "d.t").location, "_delta_log"), str(at.identity(at.lake.bronze("s")))
    deltalake.write_deltalake(at.lake.bronze("s").location, BRONZE, mode="append")
    checksum(log, 1, {bronze: 1})
    (log / f"{1:020d}.json").touch()
    with pytest.raises(ReplicatorError, match=rf"last commit of the table is empty: .*{1:020d}.json"):
        list_statuses(replace(at, opened={}))
    told = deltalake.CommitProperties(app_transactions=[deltalake.Transaction(bronze, 0)])
    deltalake.write_deltalake(str(log.parent), SILVER, mode="append", commit_properties=told)
    [silver] = [each for each in list_statuses(replace(at, opened={})) if each.layer == "silver"]
    assert silver.lag_events == 2


def checksum(log: Path, version: int, done: Mapping[str, int]) -> None:
    """What Delta's writers in Spark leave beside each commit."""
    actions = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    told = {kind: action[kind] for action in actions for kind in ("metaData", "protocol") if kind in action}
    ledger = [{"appId": app, "version": number} for app, number in done.items()]
    counts = {"tableSizeBytes": 1, "numFiles": 1, "numMetadata": 1, "numProtocol": 1}
    found = {**counts, "setTransactions": ledger, "metadata": told["metaData"], "protocol": told["protocol"]}
    put(str(log / f"{version:020d}.crc"), found)


def test_a_gold_table_that_no_file_describes_is_named_with_how_it_goes(tmp_path: Path) -> None:
    """As behind a model that was removed: nothing else says that nobody brings it up to date. Where no configuration is
    read, nobody knows.
    """
    conf, lake = tmp_path / "conf", Lake(f"{tmp_path}/lake")
    (conf / "models").mkdir(parents=True)
    (conf / "base.yaml").write_text(f"lake: {{root: {lake.root}}}\n")
    (conf / "local.yaml").touch()
    (conf / "models/kept.sql").write_text("SELECT 1 AS id")
    (conf / "models/kept.yaml").write_text("inputs: {}\nkey: [id]\ncolumns: {id: integer}\n")
    for model in ("kept", "left"):
        deltalake.write_deltalake(lake.gold(model).location, SILVER)
    for command, told in ((("--conf", str(conf)), ["left"]), (("--lake", lake.root), [])):
        done = CliRunner().invoke(cli.app, ["status", "--json", *command], catch_exceptions=False)
        assert {each["table"] for each in json.loads(done.stdout)} == {"kept", "left"}
        lines = [line for line in done.stderr.splitlines() if "no file describes" in line]
        assert [line.partition(":")[0] for line in lines] == [f"gold {model}" for model in told]
        assert all(f"remove the folder {lake.gold('left').location}." in line for line in lines)


def test_waiting_transactions_and_hudi_are_left_to_spark(tmp_path: Path) -> None:
    """A cut of another bronze, or one behind which nothing waits, is none."""
    at = replace(written(tmp_path), sources={"s": SourceSpec("s", "s.*")})
    identity, behind = at.identity(at.lake.bronze("s")), {"s.d.t": {"0": 4}}
    for bronze, offsets in (("another", behind), (identity, {})):
        put(at.lake.cut("s"), {"bronze": bronze, "offsets": offsets})
        assert at.waiting("s") is None
    put(at.lake.cut("s"), {"bronze": identity, "offsets": behind})
    with pytest.raises(ReplicatorError, match="wait until they are complete"):
        list_statuses(at)
    hudi = Path(at.lake.silver("s", "d.v").location) / ".hoodie"
    hudi.mkdir(parents=True)
    (hudi / "hoodie.properties").touch()
    Path(at.lake.cut("s")).unlink()
    assert len(list_statuses(at)) == 2
    with pytest.raises(ReplicatorError, match="there is a Hudi table"):
        list_statuses(replace(at, formats=("delta", "hudi")))


def test_control_rows_are_read_as_their_writer_left_them(tmp_path: Path) -> None:
    """A whole one beside its empty place counts; one that was cut off does not."""
    put(f"{tmp_path}/rows/a.json", {"a": 1})
    put(f"{tmp_path}/rows/a.json.new", {"a": 2})
    put(f"{tmp_path}/rows/b.json.new", {"b": 1})
    Path(f"{tmp_path}/rows/c.json.new").write_text('{"c": ')
    put(f"{tmp_path}/rows/below/d.json", {})
    store = Store(str(tmp_path))
    facts = StoredControlReader(store, store.files())
    assert [facts.get(f"{tmp_path}/rows/{name}.json") for name in "abcd"] == [{"a": 1}, {"b": 1}, None, None]
    assert facts.under(f"{tmp_path}/rows") == ("a", "b")
    assert facts.under(f"{tmp_path}/nothing") == ()


def test_a_row_that_is_moved_to_its_place_between_two_looks_is_read(tmp_path: Path) -> None:
    """A writer may have moved it there behind the look for its place and before that beside it."""
    path = f"{tmp_path}/row.json"

    class Late(Store):
        """Nothing lies there until both places were looked at."""

        looks = 0

        def path(self, uri: str) -> str:
            self.looks += 1
            if self.looks == 3:
                put(path, {"version": 1})
            return super().path(uri)

    store = Late(str(tmp_path))
    assert StoredControlReader(store, store.files()).get(path) == {"version": 1}


def test_the_command_line_starts_no_jvm(tmp_path: Path) -> None:
    """Neither pyspark nor what else takes its time to load is there when it is over. Rows that lack a value are told of
    beside the data, with what may find it: by the whole name, which holds where two sources have the table.
    """
    written(tmp_path)
    code = (
        f"import sys\nsys.argv = ['replicator', 'status', '--lake', {str(tmp_path)!r}, '--json']\n"
        "from replicator.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "slow = {'pyspark', 'py4j', 'boto3', 'pandas', 'pyarrow.dataset', 'duckdb'}\n"
        "print(sorted(slow & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert [each["rows"] for each in json.loads(done.stdout)] == [3, 2]
    told, slow = done.stderr.splitlines()
    assert told.startswith("s/d.t: 1 row lacks a value that no record has supplied")
    assert told.endswith(f"`replicator rebuild s/d.t --lake {tmp_path}` looks for it in all of bronze.")
    assert slow == "[]"
