"""``replicator connect`` without a server: what is asked of the configuration, and nobody answering."""

from __future__ import annotations

import json
import shlex
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from replicator.cli import app
from replicator.cli.connect.snapshot import status_check
from replicator.connect.configuration import CLASSES
from replicator.connect.responses import ConnectorInfo
from replicator.connect.rest import Connect
from replicator.connect.validation import Finding
from replicator.databases import connections
from replicator.errors import ConfigError, ConnectorFailed, ReplicatorError, Unreachable
from tests.cli import ended, said
from tests.stand_in_connect import running

CONNECTOR = {"kind": "mariadb", "host": "127.0.0.1", "user": "u", "password": "${env:P}", "server_id": 1}
"""Of mariadb; each further source of a configuration has another ``server_id``."""


@pytest.fixture
def closed() -> Iterator[int]:
    """An address on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def conf(tmp_path: Path) -> Callable[..., tuple[str, ...]]:
    """Writes a configuration with these sources; gives back the flags that name it."""

    def write(url: str | None = None, **sources: dict[str, Any]) -> tuple[str, ...]:
        (tmp_path / "sources").mkdir()
        (tmp_path / "base.yaml").write_text("", encoding="utf-8")
        (tmp_path / "dev.yaml").write_text(yaml.safe_dump({"connect": {"url": url}}), encoding="utf-8")
        for number, (name, content) in enumerate(sources.items(), start=1):
            own = {"connector": content["connector"] | {"server_id": number}} if "connector" in content else {}
            (tmp_path / "sources" / f"{name}.yaml").write_text(yaml.safe_dump({"name": name} | content | own))
        return ("--conf", str(tmp_path), "--env", "dev")

    return write


@pytest.mark.parametrize(
    "verb",
    ["plugins", "list", "status", "validate", "diff", "apply", "pause x", "resume x", "restart x", "stop x", "delete x",
     "offsets show x", "offsets reset x", "snapshot shop a.b"],
)  # fmt: skip
def test_every_verb_says_that_kafka_connect_is_out_of_reach(
    conf: Callable[..., tuple[str, ...]], closed: int, verb: str
) -> None:
    """Exit code 3, with the address."""
    flags = conf(f"http://127.0.0.1:{closed}", shop={"connector": CONNECTOR})
    with pytest.raises(Unreachable, match=f"Kafka Connect does not answer .*{closed}"):
        said("connect", *verb.split(), *flags, code=3)


def test_without_an_address_or_a_connector_the_way_out_is_named(conf: Callable[..., tuple[str, ...]]) -> None:
    """Exit code 2: what to write, and where."""
    flags = conf(bare={})
    with pytest.raises(ConfigError, match=r"Set connect\.url"):
        said("connect", "list", *flags, code=2)
    with pytest.raises(ConfigError, match=r"the source bare describes no connector\. .*`connector` block"):
        said("connect", "check", "bare", *flags, code=2)
    with pytest.raises(ConfigError, match="did you mean 'bare'"):
        said("connect", "check", "bear", *flags, code=2)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectorFailed("connector a failed: its slot is gone"), 1),
        (Unreachable("connector a is not running after 60 s"), 3),
        (ConfigError("Kafka Connect answers 404 to PUT /connectors/a/resume"), 2),
    ],
)
def test_a_connector_that_fails_keeps_no_other_one_from_going_on(
    conf: Callable[..., tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, error: ReplicatorError, code: int
) -> None:
    """Each that was named is told to, what fails is told, and the exit code is that of the failure."""
    told: list[str] = []

    def wait_running(self: Connect, name: str) -> None:
        if name == "a":
            raise error

    monkeypatch.setattr(Connect, "known", lambda _: {name: ConnectorInfo({}, None) for name in ("a", "b")})
    monkeypatch.setattr(Connect, "resume", lambda _, name: told.append(name))
    monkeypatch.setattr(Connect, "wait_running", wait_running)
    flags = conf("http://127.0.0.1:1", shop={"connector": CONNECTOR})
    done = CliRunner().invoke(app, ["connect", "resume", "a", "b", *flags])
    assert (done.exit_code, told) == (code, ["a", "b"])
    assert f"a: {error}\nb: runs\n" in done.stderr


def test_a_plugin_that_is_not_there_keeps_no_other_connector_from_being_validated(
    conf: Callable[..., tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Connect says of the others was lost; exit code 2 as for what it would refuse."""
    error = ConfigError("connector a: Kafka Connect has no plugin")

    def validate(self: Connect, name: str, config: Any) -> tuple[Finding, ...]:
        if name == "a":
            raise error
        return (Finding("tasks.max", "no number"),)

    monkeypatch.setattr(Connect, "validate", validate)
    flags = conf("http://127.0.0.1:1", **{name: {"connector": CONNECTOR | {"name": name}} for name in ("a", "b")})
    done = CliRunner().invoke(app, ["connect", "validate", "--json", *flags])
    assert (done.exit_code, done.stderr) == (2, f"a: {error}\n")
    assert [each["connector"] for each in json.loads(done.stdout)] == ["b"]


def test_a_connector_that_does_not_end_keeps_no_other_one_from_being_deleted(
    conf: Callable[..., tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that was named is deleted, and only of those that are their slots are told."""
    error = Unreachable("connector a was deleted but did not end in 60 s")
    told: list[str] = []

    def delete(self: Connect, name: str) -> None:
        told.append(name)
        if name == "a":
            raise error

    monkeypatch.setattr(
        Connect, "known", lambda _: {name: ConnectorInfo({"slot.name": name}, None) for name in ("a", "b")}
    )
    monkeypatch.setattr(Connect, "delete", delete)
    done = CliRunner().invoke(app, ["connect", "delete", "a", "b", *conf("http://127.0.0.1:1")])
    assert (done.exit_code, told) == (3, ["a", "b"])
    assert done.stderr.startswith(f"a: {error}\nb: deleted; its offsets are kept\nb: its slot b retains log")


@pytest.mark.parametrize("verb", ["resume", "restart"])
def test_a_task_that_fails_some_seconds_behind_its_start_is_told(
    conf: Callable[..., tuple[str, ...]], verb: str
) -> None:
    """A connector is RUNNING while its task looks for its place in the log: that it runs was no promise."""
    with running("shop", {}, seconds=3) as url:
        flags = conf(url, shop={"connector": CONNECTOR})
        done = CliRunner().invoke(app, ["connect", verb, "shop", *flags])
    assert done.exit_code == 1
    assert "shop: failed a moment later: x.DebeziumException: no log. Fix the cause, then" in done.stderr


def test_of_a_connector_that_runs_it_is_told_how_to_look_again(conf: Callable[..., tuple[str, ...]]) -> None:
    """A task may fail an hour later, too; the command is for the same environment."""
    with running("shop", {}) as url:
        flags = conf(url, shop={"connector": CONNECTOR})
        done = ended("connect", "restart", "shop", *flags)
    assert done.returncode == 0
    same = shlex.join(flags)
    assert done.stderr.startswith(f"shop: runs\n`replicator connect status shop {same}` shows whether it stays so")


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
def test_a_restart_starts_nothing_that_was_paused_and_says_what_does(
    conf: Callable[..., tuple[str, ...]], state: str
) -> None:
    """Connect keeps it as it is; waiting for it to run took a minute, and the log had no reason."""
    with running("shop", {}, connector=state) as url:
        flags = conf(url, shop={"connector": CONNECTOR})
        done = ended("connect", "restart", "shop", *flags)
    assert done.returncode == 2
    same = shlex.join(flags)
    assert f"shop: it is {state}" in done.stderr
    assert f"`replicator connect resume shop {same}`" in done.stderr


def test_a_null_in_a_running_configuration_is_a_key_that_is_not_there(conf: Callable[..., tuple[str, ...]]) -> None:
    """Older versions of Connect accepted it; the comparison ended with a stack trace."""
    with running("shop", {"connector.class": CLASSES["mariadb"], "database.hostname": None}) as url:
        flags = conf(url, shop={"connector": CONNECTOR})
        found = json.loads(said("connect", "diff", "--json", *flags, code=1))
    [change] = [each for each in found[0]["changes"] if each["key"] == "database.hostname"]
    assert change == {"key": "database.hostname", "runs": None, "wanted": "127.0.0.1"}


def test_where_no_source_describes_a_connector_that_is_told(conf: Callable[..., tuple[str, ...]]) -> None:
    """And no table without rows."""
    done = CliRunner().invoke(app, ["connect", "check", *conf(bare={})])
    told = "No source describes a connector: add a `connector` block to its file.\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", told)


def test_two_sources_cannot_have_one_connector(conf: Callable[..., tuple[str, ...]]) -> None:
    """The second would undo the first."""
    flags = conf(
        "http://127.0.0.1:9", a={"connector": CONNECTOR | {"name": "x"}}, b={"connector": CONNECTOR | {"name": "x"}}
    )
    with pytest.raises(ConfigError, match=r"b.yaml: connector.name: the connector of 'a' has x, too"):
        said("connect", "diff", *flags, code=2)


def test_pruning_looks_at_all_sources(conf: Callable[..., tuple[str, ...]]) -> None:
    """With some of them only, all others would be gone."""
    flags = conf("http://127.0.0.1:9", a={"connector": CONNECTOR})
    with pytest.raises(ConfigError, match="--prune applies to all sources"):
        said("connect", "apply", "a", "--prune", *flags, code=2)


def test_a_database_that_cannot_be_asked_keeps_no_other_one_from_being_looked_at(
    conf: Callable[..., tuple[str, ...]], closed: int
) -> None:
    """Each is told by its name; the exit code is the smallest, as what another try does not cure counts first."""
    place = {"kind": "mariadb", "host": "127.0.0.1", "port": closed, "user": "u", "sslmode": "disable"}
    away = {name: {"connector": CONNECTOR | {"name": name}, "database": place} for name in ("a", "b")}
    flags = conf(**away, silent={"connector": CONNECTOR})
    done = CliRunner().invoke(app, ["connect", "check", "a", "b", *flags])
    assert done.exit_code == 3
    assert [line.partition(":")[0] for line in done.stderr.splitlines() if "does not answer" in line] == ["a", "b"]
    every = CliRunner().invoke(app, ["connect", "check", "--json", *flags])
    assert (every.exit_code, every.stdout) == (2, "[]\n")
    assert "silent: no connection to the database of silent is configured" in every.stderr


def test_a_database_that_cannot_be_asked_is_told_by_check(conf: Callable[..., tuple[str, ...]], closed: int) -> None:
    """Nobody said how; nobody answers; its client is not there."""
    place = {"kind": "mariadb", "host": "127.0.0.1", "port": closed, "user": "u", "sslmode": "disable"}
    flags = conf(silent={"connector": CONNECTOR}, away={"connector": CONNECTOR | {"name": "y"}, "database": place})
    with pytest.raises(ConfigError, match="Add a `database` block to the source's file"):
        said("connect", "check", "silent", *flags, code=2)
    with pytest.raises(Unreachable, match="mariadb does not answer"):
        said("connect", "check", "away", *flags, code=3)
    with pytest.raises(ConfigError, match=r"Oracle is read with no-such, which is not installed.*pip install no-such"):
        connections.import_client("no_such_module", "no-such", "Oracle")


def test_what_is_missing_is_known_at_the_end_of_a_snapshot_only(
    conf: Callable[..., tuple[str, ...]], closed: int
) -> None:
    """So that nobody removes rows without having seen it."""
    flags = conf(f"http://127.0.0.1:{closed}", shop={"connector": CONNECTOR})
    with pytest.raises(ConfigError, match="--remove-missing has to wait for the end"):
        said("connect", "snapshot", "shop", "a.b", "--remove-missing", "--no-wait", *flags, code=2)


def test_a_snapshot_is_watched_while_a_worker_restarts_but_not_for_ever(closed: int) -> None:
    """The connector goes on after a restart; one that is gone, or a cluster that stays away, sends no notification."""
    away = Connect(f"http://127.0.0.1:{closed}")
    status_check(away, "shop")()
    with pytest.raises(Unreachable, match="Kafka Connect does not answer"):
        status_check(away, "shop", patience=-1)()
    with running("shop", {}) as url:
        status_check(Connect(url), "shop", patience=-1)()
        status_check(Connect(url), "gone")()
        with pytest.raises(ConnectorFailed, match="connector gone was deleted"):
            status_check(Connect(url), "gone", patience=-1)()


def test_where_nobody_can_tell_whether_a_table_is_there_that_is_told(
    conf: Callable[..., tuple[str, ...]], closed: int
) -> None:
    """On stderr, and the signal is sent; not of a table that the connector's list names by itself."""
    place = {"kind": "mariadb", "host": "127.0.0.1", "port": closed, "user": "u", "sslmode": "disable"}
    runs = {"connector.class": CLASSES["mariadb"], "topic.prefix": "shop", "signal.data.collection": "a.signals"}
    with running("shop", {**runs, "table.include.list": r"a\.b,a\.c.*"}) as url:
        flags = conf(url, shop={"connector": CONNECTOR, "database": place})

        def told(*tables: str) -> str:
            done = CliRunner().invoke(app, ["connect", "snapshot", "shop", *tables, "--no-wait", *flags])
            assert isinstance(done.exception, Unreachable)  # the signal table is where nobody listens
            assert done.stdout == ""
            return done.stderr

        said_of = told("a.b", "a.cc")
        assert said_of.startswith("warning: it is unknown whether a.cc exists: mariadb does not answer: ")
        assert "it is unknown" not in told("a.b")
        with pytest.raises(ConfigError, match=r"a.d is not captured: .*; did you mean 'a.b'\?"):
            said("connect", "snapshot", "shop", "a.d", "--no-wait", *flags, code=2)
