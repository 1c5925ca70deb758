"""The local stack with its real servers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import boto3
import psycopg2
import pymysql
import pytest
from confluent_kafka.admin import AdminClient
from psycopg2.extensions import connection as Connection

from infra.demo import warehouse
from infra.local import SERVICES, Stack
from infra.local.accounts import stand_in_for
from infra.local.endpoints import Database, Endpoints
from infra.local.processes import birth
from replicator.errors import ConfigError

pytestmark = pytest.mark.stack

REPOSITORY = Path(__file__).parents[2]
OWNER = """
import os, sys, time
from pathlib import Path
from infra.local import Stack
Stack(Path(sys.argv[1])).up(sys.argv[2:], owner=os.getpid())
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home of its own, and nothing of it left afterwards."""
    yield tmp_path / "home"
    Stack(tmp_path / "home").delete()


def _at_work_in(home: Path) -> list[str]:
    """The processes whose working folder is in the home or its stand-in."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            folder = (process / "cwd").readlink()
        except OSError:
            continue
        if any(folder.is_relative_to(root) for root in (home, stand_in_for(home))) and birth(int(process.name)):
            found.append((process / "cmdline").read_bytes().decode(errors="replace"))
    return found


def _ends(home: Path, seconds: float = 30) -> bool:
    patience = time.monotonic() + seconds
    while _at_work_in(home):
        if time.monotonic() > patience:
            return False
        time.sleep(0.2)
    return True


def _postgres(endpoints: Endpoints) -> closing[Connection]:
    at = endpoints.postgres
    return closing(psycopg2.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database))


def _mariadb(at: Database) -> closing[pymysql.Connection]:
    return closing(pymysql.connect(host=at.host, port=at.port, user=at.user, password=at.password))


def test_the_stack_serves_is_up_twice_without_harm_and_keeps_data_and_addresses_over_a_restart(home: Path) -> None:
    """Up, up again, down, up again: the same processes, then the same addresses with the same data."""
    stack = Stack(home)
    endpoints = stack.up()
    pids = [one.pid for one in stack.status()]
    assert None not in pids
    assert Stack(home).up() == endpoints
    assert [one.pid for one in stack.status()] == pids
    assert sum(one.memory_mb for one in stack.status()) < 2048

    with _mariadb(endpoints.mariadb_connector) as source, source.cursor() as cursor:
        cursor.execute("SELECT @@log_bin, @@binlog_format, @@binlog_row_image, @@gtid_strict_mode")
        assert cursor.fetchone() == (1, "ROW", "FULL", 1)
    with _mariadb(endpoints.mariadb) as source, source.cursor() as cursor:
        cursor.execute("CREATE DATABASE kept")
    with _postgres(endpoints) as target, target, target.cursor() as cursor:
        cursor.execute("CREATE SCHEMA kept CREATE TABLE rows (id int)")
        cursor.execute("SHOW wal_level")
        assert cursor.fetchone() == ("logical",)
    with urllib.request.urlopen(f"{endpoints.connect}/connector-plugins", timeout=5) as answer:  # noqa: S310
        plugins = answer.read().decode()
    assert "MariaDbConnector" in plugins
    assert "PostgresConnector" in plugins
    topics = AdminClient({"bootstrap.servers": endpoints.kafka}).list_topics(timeout=10).topics
    assert "_connect_offsets" in topics
    at = endpoints.s3
    keys = {"aws_access_key_id": at.access_key, "aws_secret_access_key": at.secret_key, "region_name": at.region}
    client = boto3.client("s3", endpoint_url=at.endpoint, **keys)
    client.put_object(Bucket=at.bucket, Key="a/b", Body=b"c")
    assert client.get_object(Bucket=at.bucket, Key="a/b")["Body"].read() == b"c"

    stack.down()
    assert _at_work_in(home) == []
    assert stack.up(["mariadb", "postgres"]) == endpoints
    with _mariadb(endpoints.mariadb) as source, source.cursor() as cursor:
        assert cursor.execute("SHOW DATABASES LIKE 'kept'") == 1
    with _postgres(endpoints) as target, target.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM kept.rows")
        assert cursor.fetchone() == (0,)
    assert [one.name for one in stack.status() if one.pid] == ["mariadb", "postgres"]


def test_when_the_owner_is_killed_nothing_is_left_behind(home: Path) -> None:
    """A watchdog stops what a killed process had started."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, home, "mariadb", "postgres", "s3"], cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        assert len(_at_work_in(home)) > 3
        owner.kill()
    assert _ends(home)


@pytest.mark.parametrize("after", [0.3, 1.0, 2.0])
def test_when_the_owner_is_killed_in_the_middle_of_a_start_nothing_is_left_behind(home: Path, after: float) -> None:
    """The watchdog is there before the first server is."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, home, *SERVICES], cwd=REPOSITORY, stdout=subprocess.DEVNULL
    ) as owner:
        time.sleep(after)
        owner.kill()
    assert _ends(home)
    time.sleep(1)
    assert _at_work_in(home) == []


@pytest.fixture
def listening() -> Iterator[None]:
    """Children listen to Ctrl-C, also where these tests run in a shell's background: there nothing does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_an_interrupted_start_stops_what_it_had_started_and_the_next_one_works(home: Path) -> None:
    """Ctrl-C in the middle of `up`: exit code 130, no server left, and no half-made data folder in the way."""
    command: list[str | Path]
    command = [sys.executable, "-m", "infra.local", "up", "mariadb", "postgres", "kafka", "--home", home]
    with subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True, stderr=subprocess.PIPE) as starter:
        until = time.monotonic() + 60
        while not _at_work_in(home) and time.monotonic() < until:
            time.sleep(0.1)
        os.killpg(starter.pid, signal.SIGINT)
        told = starter.communicate(timeout=180)[1].decode()  # data folders are made to their end first
    assert starter.returncode == 130, told
    assert "Interrupted" in told
    assert _ends(home)
    Stack(home).up(["mariadb", "postgres"])


def test_a_dead_owner_takes_nothing_along_that_was_started_for_somebody_else(home: Path) -> None:
    """What was stopped and started again without an owner stays up when the first owner ends."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, home, "postgres", "s3"], cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        stack = Stack(home)
        stack.down(["postgres"])
        stack.up(["postgres"])
        owner.kill()
    patience = time.monotonic() + 30
    while "s3" in [one.name for one in stack.status() if one.pid] and time.monotonic() < patience:
        time.sleep(0.2)
    assert [one.name for one in stack.status() if one.pid] == ["postgres"]


def test_an_aws_profile_that_does_not_exist_is_named_with_its_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of AWS's own tools count for the client that makes the bucket; it ended with a stack trace."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers what it has read
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigError, match=r"profile \(nobody\) could not be found.* Correct or unset AWS_PROFILE"):
        Stack(home).up(["s3"])
    assert _ends(home)


def test_postgres_is_ready_whatever_libpqs_variables_ask_of_other_servers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With PGSSLMODE, as for a database in a cloud, nobody could log in: it was "not ready after 90 s"."""
    monkeypatch.setenv("PGSSLMODE", "require")
    with closing(warehouse.connect(Stack(home).up(["postgres"]).postgres)) as connection:
        assert warehouse.last_commit(connection) == 0
