"""What a user meets when something is wrong: one sentence, the documented exit code, nothing lost."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app
from replicator.errors import Unreachable
from replicator.sources.kafka import KafkaSource
from tests.cli import said

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = str(Path(sys.executable).parent / "replicator")
NOWHERE = "127.0.0.1:9"


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a user calls it."""
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The error as told; no trace."""
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, done.stderr
    return errors[0]


def test_kafka_out_of_reach_is_exit_code_3_and_names_the_address(tmp_path: Path) -> None:
    """A service that does not answer can be tried again: exit code 3."""
    done = run("run", "bronze", "--env", "demo", KAFKA_BOOTSTRAP=NOWHERE, REPLICATOR_LAKE=str(tmp_path / "lake"))
    assert done.returncode == 3, done.stderr
    assert "Kafka" in one_sentence(done)
    assert NOWHERE in one_sentence(done)


def test_kafka_that_falls_silent_later_is_out_of_reach_too(spark: SparkSession) -> None:
    """The JVM's own client finds out, as patiently as its options say."""
    silent = KafkaSource(NOWHERE, ".*", {"default.api.timeout.ms": "1000", "request.timeout.ms": "1000"})
    with pytest.raises(Unreachable, match="Kafka does not answer") as raised:
        silent.topic_ids(spark)
    assert raised.value.where == NOWHERE


def test_options_that_kafkas_client_does_not_start_with_are_configuration(spark: SparkSession, tmp_path: Path) -> None:
    """Exit code 2, with the client's own reason and where to fix it: it was a trace of Java's. In the JVM of the
    tests.
    """
    assert spark
    with socket.create_server(("127.0.0.1", 0)) as door:
        servers, store = f"127.0.0.1:{door.getsockname()[1]}", tmp_path / "none.jks"
        options = f"{{security.protocol: SSL, ssl.truststore.location: {store}}}"
        (tmp_path / "base.yaml").write_text(
            f"lake: {{root: {tmp_path / 'lake'}}}\nkafka: {{bootstrap_servers: {servers}, options: {options}}}\n"
        )
        (tmp_path / "local.yaml").touch()
        (tmp_path / "sources").mkdir()
        (tmp_path / "sources" / "shop.yaml").write_text("name: shop\n")
        done = CliRunner().invoke(app, ["run", "bronze", "--conf", str(tmp_path), "--env", "local"])
    assert done.exit_code == 2, done.output
    told = " ".join(done.stderr.split())
    assert "the Kafka client does not start with these options: " in told
    assert store.name in told
    assert "Fix the `options` of Kafka" in told


def test_a_lake_out_of_reach_is_exit_code_3() -> None:
    """So is an object store that does not answer."""
    done = run("run", "silver", "--env", "local", S3_ENDPOINT=f"http://{NOWHERE}")
    assert done.returncode == 3, done.stderr
    assert "does not answer" in one_sentence(done)


def test_status_of_an_empty_lake_says_so(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is no error. In the JVM of the tests."""
    assert spark
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", NOWHERE)
    monkeypatch.setenv("REPLICATOR_LAKE", str(tmp_path / "lake"))
    assert "not built yet" in said("status", "--env", "demo")


def test_an_unknown_stage_is_exit_code_2() -> None:
    """Usage is told before anything starts."""
    done = run("run", "sliver", "--env", "demo")
    assert done.returncode == 2
    assert "unknown stage 'sliver'" in one_sentence(done)


def test_malformed_json_and_a_missing_key_are_dead_letters_and_the_rest_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Poison never blocks other keys and never vanishes (debezium.md R4). In the JVM of the tests."""
    assert spark
    source = {"connector": "mysql", "name": "shop", "db": "s", "table": "t", "file": "b.000001", "pos": 7, "row": 0}

    def event(key: str | None, offset: int, value: str) -> str:
        place = {"topic": "shop.s.t", "partition": 0, "offset": offset, "tstype": "create", "ts": 1, "headers": []}
        return json.dumps({**place, "key": key, "payload": value})

    def row(number: int) -> str:
        return json.dumps({"before": None, "after": {"id": number}, "source": source, "op": "c"})

    events = tmp_path / "events.jsonl"
    lines = [event('{"id":1}', 0, row(1)), event('{"id":2}', 1, '{"op":"c","after":{'), event(None, 2, row(3))]
    events.write_text("\n".join(lines) + "\n")
    lake = str(tmp_path / "lake")
    told = json.loads(said("run", "--json", "--recorded", str(events), "--lake", lake))
    silver = next(line for line in told if line["stage"] == "silver")
    assert (silver["rows_in"], silver["applied"], silver["dead_lettered"]) == (3, 1, 2)
    again = said("run", "--json", "--recorded", str(events), "--lake", lake)
    assert sum(line["applied"] for line in json.loads(again or "[]")) == 0


def test_a_line_that_is_no_record_is_exit_code_2_and_names_the_file(tmp_path: Path) -> None:
    """A wrong file is a mistake of usage: nothing is written."""
    events = tmp_path / "events.jsonl"
    events.write_text("this is no record\n")
    done = run("run", "--recorded", str(events), "--lake", str(tmp_path / "lake"))
    assert done.returncode == 2, done.stderr
    assert "events.jsonl" in one_sentence(done)
    assert not (tmp_path / "lake" / "bronze").exists()


def test_a_jvm_that_is_gone_is_told_in_one_sentence() -> None:
    """By what it was, where its words are and what may help: the next call from Python is refused a connection."""
    script = (
        "import pyspark\n"
        "from replicator import session, settings\n"
        "from replicator.cli import _translate\n"
        "jvm = session.jvm(settings.bare(None))\n"
        "assert _translate(ConnectionRefusedError('of somebody else')) is None\n"
        "pyspark.SparkContext._gateway.proc.kill()\n"
        "try:\n"
        "    jvm.java.lang.System.currentTimeMillis()\n"
        "except Exception as error:\n"
        "    print(_translate(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert re.fullmatch(r"Spark's JVM has exited \[.*spark\.log\] If .* give it more memory: .*\n", done.stdout), done


def test_a_jvm_that_dies_amid_a_batch_of_a_stream_leaves_no_trace_of_pythons() -> None:
    """py4j writes what a batch met once its own error has set Python's log up; it is raised as well."""
    script = (
        "import pyspark\n"
        "from replicator import session, settings\n"
        "from replicator.cli import _translate\n"
        "def die(batch, _):\n"
        "    pyspark.SparkContext._gateway.proc.kill()\n"
        "    batch.count()\n"
        "stream = session.session(settings.bare(None)).readStream.format('rate').load()\n"
        "try:\n"
        "    stream.writeStream.foreachBatch(die).start().awaitTermination()\n"
        "except Exception as error:\n"
        "    print(_translate(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Spark's JVM has exited" in done.stdout
    assert done.stderr == ""


def test_a_jvm_without_a_temporary_folder_is_told_as_one(tmp_path: Path) -> None:
    """Spark ends its own process then, and its log alone would say why: it is not memory."""
    (tmp_path / "file").touch()
    events, place = tmp_path / "events.jsonl", {"topic": "shop.s.t", "partition": 0, "offset": 0}
    events.write_text(json.dumps({**place, "ts": 1, "headers": [], "key": '{"id":1}', "payload": None}) + "\n")
    done = run(
        *("run", "--recorded", str(events), "--lake", str(tmp_path / "lake")), SPARK_LOCAL_DIRS=f"{tmp_path}/file/x"
    )
    assert done.returncode == 1, done.stderr
    assert re.search(r"Spark's JVM has exited \[.*\] It cannot write its temporary folder", one_sentence(done))


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("spark.master: 'local[two]'", "local[two]"),
        ("spark.driver.memory: 100m", "--driver-memory"),
        ("spark.sql.shuffle.partitions: many", "spark.sql.shuffle.partitions should be int, but was many"),
    ],
)
def test_settings_that_spark_does_not_start_with_are_configuration(tmp_path: Path, setting: str, named: str) -> None:
    """No table is to blame and a retry changes nothing: exit code 2, with Spark's own reason and where to fix it."""
    (tmp_path / "base.yaml").write_text(f"lake: {{root: {tmp_path / 'lake'}}}\nspark:\n  {setting}\n")
    (tmp_path / "local.yaml").touch()
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text("name: shop\n")
    done = run("run", "silver", "--conf", str(tmp_path), "--env", "local")
    assert done.returncode == 2, done.stderr
    assert named in one_sentence(done)
    assert "`spark` in base.yaml" in one_sentence(done)


def test_a_jvm_that_may_open_few_files_is_told_as_one(tmp_path: Path) -> None:
    """Its own words for that are a trace of Java's."""
    events = tmp_path / "events.jsonl"
    events.write_text(json.dumps({"topic": "a.b.c", "partition": 0, "offset": 0, "ts": 1, "headers": []}) + "\n")
    command = [COMMAND, "run", "--recorded", str(events), "--lake", str(tmp_path / "lake")]
    few = ["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", *command]
    done = subprocess.run(few, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "did not start. [" in one_sentence(done)
    assert "100 open files are allowed here" in one_sentence(done)
