"""The verbs of ``replicator connect`` against a real Kafka Connect: two small databases, and every plugin."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
import pytest
import yaml

from infra.sources.classicmodels.load import log_in
from replicator.config import sourcefile
from replicator.connect.configuration import configuration
from replicator.connect.rest import Connect
from replicator.errors import ConfigError
from tests.cli import said

pytestmark = pytest.mark.stack

MARIA, PG = "verbsmaria", "verbspg"
GOLDEN = sorted((Path(__file__).parents[1] / "unit" / "connectors").glob("*.yaml"))
OF_CONNECTION = {"database.hostname", "database.server.name", "database.url"}
"""The keys under which a plugin says that it cannot log in."""


def block(kind: str, server: Any, **more: Any) -> dict[str, Any]:
    """A connector's block in a source's file, with what every one of these tests has."""
    login = {"host": server.host, "port": server.port, "user": server.user}
    return {"kind": kind, **login, "heartbeat_seconds": 0, "config": {"poll.interval.ms": 50}, **more}


class World:
    """A configuration with two sources that describe connectors, and Connect."""

    def __init__(self, conf: Path, endpoints: Any) -> None:
        self.conf, self.endpoints, self.connect = conf, endpoints, Connect(endpoints.connect)
        self.files: dict[str, dict[str, Any]] = {}
        (conf / "sources").mkdir(parents=True)
        (conf / "base.yaml").write_text("", encoding="utf-8")
        dev = {"connect": {"url": endpoints.connect}, "kafka": {"bootstrap_servers": endpoints.kafka}}
        (conf / "dev.yaml").write_text(yaml.safe_dump(dev), encoding="utf-8")
        password = "${env:MARIADB_CONNECTOR_PASSWORD}"
        of_maria = block("mariadb", endpoints.mariadb_connector, password=password, databases=[MARIA], server_id=991)
        self.write(MARIA, of_maria)
        source = endpoints.postgres_source
        of_pg = block(
            "postgresql", source, password="${env:POSTGRES_SOURCE_PASSWORD}", database=source.database,
            tables=[f"{PG}.things"],
        )  # fmt: skip
        self.write(PG, of_pg)

    def write(self, source: str, connector: dict[str, Any]) -> None:
        """The file of a source."""
        self.files[source] = connector
        content = {"name": source, "connector": connector}
        (self.conf / "sources" / f"{source}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")

    def says(self, *arguments: str, code: int = 0) -> str:
        """What a verb prints."""
        return said("connect", *arguments, "--conf", str(self.conf), "--env", "dev", code=code)

    def told(self, *arguments: str, code: int = 0) -> Any:
        """What a verb prints as JSON."""
        return json.loads(self.says(*arguments, "--json", code=code))


@pytest.fixture(scope="module")
def databases(endpoints: Any) -> Iterator[None]:
    """A row in each."""
    with closing(log_in(endpoints.mariadb)) as maria, maria.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {MARIA}")
        cursor.execute(f"CREATE TABLE {MARIA}.things (id int PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {MARIA}.things VALUES (1)")
        maria.commit()
    run(
        endpoints,
        f"CREATE SCHEMA {PG}; CREATE TABLE {PG}.things (id int PRIMARY KEY); INSERT INTO {PG}.things VALUES (1); "
        f"CREATE PUBLICATION {PG} FOR TABLE {PG}.things",
    )
    yield
    with suppress(psycopg2.Error):
        run(endpoints, f"SELECT pg_drop_replication_slot('{PG}')")
    run(endpoints, f"DROP PUBLICATION {PG}; DROP SCHEMA {PG} CASCADE")
    with closing(log_in(endpoints.mariadb)) as maria, suppress(pymysql.Error):
        maria.cursor().execute(f"DROP DATABASE {MARIA}")


def run(endpoints: Any, statements: str) -> None:
    """SQL for PostgreSQL, as the owner of the sample database."""
    at = endpoints.postgres_source
    with closing(
        psycopg2.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database)
    ) as source:
        source.autocommit = True
        source.cursor().execute(statements)


@pytest.fixture
def world(databases: None, endpoints: Any, tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "conf", endpoints)
    yield made
    for name in (MARIA, PG):
        made.connect.forget(name)


def test_the_running_set_becomes_the_files_set(world: World) -> None:
    """Differences first, nothing in a dry run; created, and left alone the second time; changed by hand, and fixed;
    a secret stands in no configuration; what Connect has forgotten is registered again; what no file has is left alone
    until it is pruned.
    """
    assert {each["action"] for each in world.told("diff", MARIA, PG, code=1)} == {"create"}
    assert {each["action"] for each in world.told("apply", MARIA, PG, "--dry-run")} == {"create"}
    assert world.connect.status(MARIA) is None
    outcomes = world.told("apply", MARIA, PG)
    assert [(each["connector"], each["action"], each["state"]) for each in outcomes] == [
        (MARIA, "create", "RUNNING"),
        (PG, "create", "RUNNING"),
    ]
    assert world.told("diff", MARIA, PG) == [
        {"connector": name, "action": "unchanged", "changes": []} for name in (MARIA, PG)
    ]
    runs = dict(world.connect.known()[MARIA].config)
    assert runs["database.password"] == "${env:MARIADB_CONNECTOR_PASSWORD}"
    runs.pop("name")
    world.connect.apply(MARIA, {**runs, "poll.interval.ms": "70", "database.password": "dbz"})
    world.connect.wait_running(MARIA)
    [step] = world.told("diff", MARIA, code=1)
    assert [(each["key"], each["runs"], each["wanted"]) for each in step["changes"]] == [
        ("database.password", "***", "${env:MARIADB_CONNECTOR_PASSWORD}"),
        ("poll.interval.ms", "70", "50"),
    ]
    assert "poll.interval.ms" in world.says("apply", MARIA)
    assert world.told("diff", MARIA)[0]["action"] == "unchanged"
    world.connect.forget(MARIA)  # as after the stack was made anew
    assert world.told("apply", MARIA)[0]["state"] == "RUNNING"
    (world.conf / "sources" / f"{PG}.yaml").unlink()
    assert {each["connector"]: each["action"] for each in world.told("diff")}[PG] == "foreign"
    kept = [name for name in world.connect.list() if name not in (MARIA, PG)]
    if not kept:  # others' connectors of this stack are not ours to delete
        assert PG in world.says("apply", "--prune")
        assert world.connect.list() == (MARIA,)


def test_each_verb_of_a_connectors_life(world: World) -> None:
    """Paused, resumed, restarted, stopped, offsets shown and reset, deleted: each is seen in Connect."""
    world.says("apply", MARIA)
    assert [each["name"] for each in world.told("plugins") if "debezium" in each["name"]] == [
        f"io.debezium.connector.{name}"
        for name in (
            "mariadb.MariaDbConnector",
            "mysql.MySqlConnector",
            "oracle.OracleConnector",
            "postgresql.PostgresConnector",
            "sqlserver.SqlServerConnector",
        )
    ]
    [own] = [each for each in world.told("list") if each["name"] == MARIA]
    assert (own["class"], own["state"], own["tasks"]) == ("MariaDbConnector", "RUNNING", ["RUNNING"])
    assert [each["task"] for each in world.told("status", MARIA)] == [None, 0]
    world.says("pause", MARIA)
    wait(lambda: world.told("status", MARIA)[0]["state"] == "PAUSED")
    assert world.told("apply", MARIA)[0]["state"] == "PAUSED"
    world.says("resume", MARIA)
    world.says("restart", MARIA, "--all")
    wait(lambda: bool(world.told("offsets", "show", MARIA)))
    [offset] = world.told("offsets", "show", MARIA)
    assert offset["partition"] == {"server": MARIA}
    assert "file" in offset["offset"]
    with pytest.raises(
        ConfigError, match=f"RUNNING: offsets can be reset only while it is stopped.*replicator connect stop {MARIA}"
    ):
        world.says("offsets", "reset", MARIA, code=2)
    world.says("stop", MARIA)
    assert [each["state"] for each in world.told("status", MARIA)] == ["STOPPED"]
    world.says("offsets", "reset", MARIA)
    assert world.told("offsets", "show", MARIA) == []
    world.says("delete", MARIA)
    with pytest.raises(ConfigError, match=f"no connector '{MARIA}'"):
        world.says("pause", MARIA, code=2)


def wait(happened: Callable[[], bool], times: int = 150) -> None:
    """Until it has, at most half a minute."""
    for _ in range(times):
        if happened():
            return
        time.sleep(0.2)
    raise AssertionError("it did not happen")


def test_a_failed_task_is_told_shortened_and_by_the_exit_code(world: World) -> None:
    """``apply`` and ``status`` end with 1 and name the innermost cause; the other connector runs."""
    of_maria = world.files[MARIA]
    broken = {
        "transforms": "pick",
        "transforms.pick.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.pick.field": "nowhere",
    }
    world.write(MARIA, {**of_maria, "config": {**of_maria["config"], **broken}})
    failed, fine = world.told("apply", MARIA, PG, code=1)
    assert (failed["state"], fine["state"], fine["error"]) == ("FAILED", "RUNNING", None)
    assert "Unknown field: nowhere" in failed["error"]
    parts = world.told("status", MARIA, PG, code=1)
    [trace] = [each["trace"] for each in parts if each["state"] == "FAILED"]
    assert "Unknown field: nowhere" in trace
    assert "\n" not in trace
    assert len(trace) < 1300


def test_a_refused_configuration_is_told_key_by_key_and_creates_nothing(world: World) -> None:
    """Exit code 2: what is wrong, what there is to choose from, and which key has no effect at all."""
    of_maria = world.files[MARIA]
    wrong = {"bigint.unsigned.handling.mode": "guess", "poll.interval.ms": "soon", "snapshot.moed": "never"}
    world.write(MARIA, {**of_maria, "config": wrong})
    found = {each["key"]: each for each in world.told("validate", MARIA, code=2)}
    assert set(found) == set(wrong)
    mode = found["bigint.unsigned.handling.mode"]
    assert "precise" in mode["what"] + mode["fix"]
    assert (found["snapshot.moed"]["refused"], found["snapshot.moed"]["fix"]) == (False, "Did you mean snapshot.mode?")
    [outcome] = world.told("apply", MARIA, code=2)
    assert "poll.interval.ms" in outcome["error"]
    assert world.connect.status(MARIA) is None
    world.write(MARIA, of_maria)
    assert world.told("validate", MARIA) == []


def test_a_key_without_effect_is_told_where_it_is_applied(world: World) -> None:
    """Whoever brings a configuration of older Debezium learns which of its keys do nothing, and what took their place
    (trap 8); behind a transform, too.
    """
    now = "transforms.unwrap.delete.tombstone.handling.mode"
    gone = {"database.server.name": "old", "transforms.unwrap.delete.handling.mode": "none"}
    world.write(MARIA, {**world.files[MARIA], "form": "flattened", "config": gone})
    [outcome] = world.told("apply", MARIA)
    assert outcome["state"] == "RUNNING"
    assert {each["key"]: each["fix"] for each in outcome["no_effect"]} == {
        "database.server.name": "Newer versions of Debezium use topic.prefix instead.",
        "transforms.unwrap.delete.handling.mode": f"Newer versions of Debezium use {now} instead.",
    }
    [unchanged] = world.told("apply", MARIA)
    assert unchanged["no_effect"] == []


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_the_plugins_take_every_template(endpoints: Any, file: Path) -> None:
    """Real plugins of all five databases, none of them reached: nothing but that is wrong, and they know every key."""
    told = sourcefile.load_declare_file(file).connector
    assert told is not None
    config = configuration(replace(told, host="127.0.0.1", port=9, password="${env:POSTGRES_SOURCE_PASSWORD}"))
    config["driver.loginTimeout"] = "1"  # SQL Server's goes on trying for half a minute
    found = Connect(endpoints.connect).validate(told.name, config)
    assert {each.key for each in found} <= OF_CONNECTION
    assert found
