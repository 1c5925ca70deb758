"""The program as a user meets it: what it prints where, and the number it ends with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from replicator import __version__
from replicator.jvm.sparkline import installed
from tests.cli import ended

ROOT = Path(__file__).parents[2]
CONF = str(ROOT / "conf")


def replicator(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from replicator.cli import main; main()", *arguments]
    own = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=own, cwd=ROOT)


def test_a_right_configuration_is_told_and_ends_with_0() -> None:
    """On stdout are data, stderr is silent."""
    done = replicator("validate", "--conf", CONF, "--env", "local", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["sources"] == ["dbserver1"]


def test_a_wrong_configuration_ends_with_2_and_no_trace(tmp_path: Path) -> None:
    """One clear sentence on stderr; nothing on stdout."""
    (tmp_path / "dev.yaml").write_text("lakee: {}\n", encoding="utf-8")
    done = replicator("validate", "--conf", str(tmp_path), "--env", "dev")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {tmp_path}/dev.yaml:1: unknown key 'lakee'; did you mean 'lake'?\n"


@pytest.mark.parametrize("arguments", [("--debug", "validate"), ("validate", "--debug")])
def test_debug_shows_the_trace_wherever_it_stands(arguments: tuple[str, str], tmp_path: Path) -> None:
    """Before the verb or behind it."""
    done = ended(*arguments, "--conf", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("error: ")


def test_a_wrong_command_line_ends_with_2() -> None:
    """Usage counts as configuration."""
    assert ended("nosuchverb").returncode == 2
    assert ended("validate", "--nosuchflag").returncode == 2


def test_the_version_is_told_without_a_verb() -> None:
    """As of any program."""
    done = ended("--version")
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("kind: postgre", "sink 'postgre' does not exist; did you mean 'postgres'?"),
        ("options: {lock_timeout: '10'}", "lock_timeout: '10' is not a duration. Write it as 500ms, 10s, 5min, 1h."),
    ],
)
def test_a_target_that_its_kind_refuses_is_told(tmp_path: Path, key: str, told: str) -> None:
    """A run would refuse it: each is told where it stands."""
    (tmp_path / "dev.yaml").write_text(f"targets: {{w: {{{key}, host: h, database: d, user: u}}}}\n", encoding="utf-8")
    done = ended("validate", "--conf", str(tmp_path), "--env", "dev")
    assert (done.returncode, done.stderr) == (2, f"error: {tmp_path}/dev.yaml:1: targets.w: {told}\n")


def test_an_address_of_kafka_without_a_port_is_refused(tmp_path: Path) -> None:
    """A run would refuse it; each is told once, where it stands."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "dev.yaml").write_text("kafka: {bootstrap_servers: 'a:1,b'}\n", encoding="utf-8")
    for name, own in {"s": "", "t": "bootstrap_servers: '[::1]:1, c'\n", "u": "bootstrap_servers: ''\n"}.items():
        (tmp_path / "sources" / f"{name}.yaml").write_text(f"name: {name}\n{own}", encoding="utf-8")
    done = ended("validate", "--conf", str(tmp_path), "--env", "dev")
    said = "bootstrap_servers: not a valid address for Kafka: '{}' is not host:port"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[1:] == [
        f"  {tmp_path}/dev.yaml:1: {said.format('b')}",
        f"  {tmp_path}/sources/t.yaml: {said.format('c')}",
    ]


def test_what_is_declared_of_a_table_that_is_not_read_is_told(tmp_path: Path) -> None:
    """A misspelled name would leave a mask without its table; shards and topics of one's own are not second-guessed."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "dev.yaml").write_text("kafka: {bootstrap_servers: 'k:1'}\n", encoding="utf-8")
    mask, shards = "{a.m: {drop: [x]}}", "{a.s: {shards: 'a_[0-9].s', shard_column: shard, truncate: fail}, a.c: {}}"
    files = {
        "s": f"name: s\ninclude: [a.b]\ntables: {shards}\nmask_before_bronze: {mask}\n",
        "t": "name: t\nexclude: [a.b]\ntables: {a.b: {}, a.c: {}}\n",
        "u": "name: u\ntopics: u[.]a[.]b\ntables: {a.c: {}}\n",
    }
    for name, text in files.items():
        (tmp_path / "sources" / f"{name}.yaml").write_text(text, encoding="utf-8")
    done = ended("validate", "--conf", str(tmp_path), "--env", "dev")
    told = [f"warning: {each}, which its file declares" for each in ("s does not read a.c", "s does not read a.m")]
    assert done.returncode == 0
    assert done.stderr.splitlines() == [*told, "warning: t does not read a.b, which its file declares"]


def test_config_show_tells_where_each_value_came_from_and_no_secret() -> None:
    """Values with file, line and variable; passwords masked."""
    done = ended("config", "show", "--conf", CONF, "--env", "local", "--json", POSTGRES_PASSWORD="canary")
    shown = {line["key"]: line for line in json.loads(done.stdout)}
    assert shown["targets.warehouse.password"]["value"] == "***"
    assert shown["targets.warehouse.password"]["origin"].endswith("($POSTGRES_PASSWORD)")
    assert "canary" not in done.stdout


def test_jars_that_are_missing_end_with_2_and_name_the_command(tmp_path: Path) -> None:
    """Nothing is fetched unasked."""
    done = ended("jars", REPLICATOR_CACHE=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "replicator jars --fetch" in done.stderr


def test_doctor_looks_for_the_jars_of_all_formats_that_are_configured(tmp_path: Path) -> None:
    """A run needs them: `doctor` is what tells that before."""
    fixes = {}
    for env, formats in (("plain", "delta"), ("all", ", ".join(installed().formats))):
        (tmp_path / f"{env}.yaml").write_text(f"formats: [{formats}]\nlake: {{root: {tmp_path}}}\n", encoding="utf-8")
        done = ended(
            "doctor", "--conf", str(tmp_path), "--env", env, "--json", REPLICATOR_CACHE=str(tmp_path / "cache")
        )
        fixes[env] = next(each["fix"] for each in json.loads(done.stdout) if each["what"] == "JARs")
    more = "".join(f" --format {name}" for name in installed().formats if name != "delta")
    assert fixes == {"plain": "Run `replicator jars --fetch`.", "all": f"Run `replicator jars --fetch{more}`."}


def test_doctor_puts_a_wrong_installation_before_a_service_out_of_reach(tmp_path: Path) -> None:
    """Exit 2 fixes here, exit 3 elsewhere; every finding is told at once."""
    dev = "kafka: {bootstrap_servers: '127.0.0.1:1'}\nlake: {root: %s}\n" % (tmp_path / "lake")
    (tmp_path / "dev.yaml").write_text(dev, encoding="utf-8")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "s.yaml").write_text("name: s\n", encoding="utf-8")
    done = ended("doctor", "--conf", str(tmp_path), "--env", "dev", "--json", REPLICATOR_CACHE=str(tmp_path))
    found = {line["what"]: line for line in json.loads(done.stdout)}
    assert done.returncode == 2
    assert (found["JARs"]["exit_code"], found["Kafka"]["exit_code"], found["lake"]["ok"]) == (2, 3, True)
    assert "127.0.0.1:1" in found["Kafka"]["message"]
    line, said = installed(), found["Spark"]["message"]
    assert said.startswith(f"Spark {line.spark}, Scala {line.scala}, Delta {line.delta}; tables in delta")
