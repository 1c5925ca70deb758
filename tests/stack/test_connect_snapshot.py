"""``replicator connect snapshot`` on a live PostgreSQL, told by a table, and a live MariaDB, told by a topic."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2
import pymysql
import pytest
import yaml
from pyspark.sql import SparkSession

from infra.sources.classicmodels.load import log_in
from replicator.connect.rest import Connect
from replicator.errors import ConfigError
from replicator.jvm.jvm_options import SHORT_LIVED
from replicator.lake import Lake
from tests import beside
from tests.cli import said
from tests.workload.drained import Source
from tests.workload.play import MARKS, Topics

pytestmark = [pytest.mark.stack, pytest.mark.spark]

PG, MARIA = "snappg", "snapmaria"
ROWS = 400
SIGNALS = "(id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
QUICK = {"poll.interval.ms": 50, "signal.poll.interval.ms": 200, "incremental.snapshot.chunk.size": 20}


class Side:
    """A database with a table, a signal table and a table of marks; its source's file."""

    def __init__(
        self, name: str, kind: str, session: Callable[[], Any], more: dict[str, Any], own: dict[str, Any]
    ) -> None:
        self.name, self.table, self.session = name, f"{name}.items", session
        tables = [self.table, f"{name}.{MARKS}", f"{name}.signals"]
        block = {"kind": kind, "tables": tables, "snapshot": "no_data", "heartbeat_seconds": 0, "config": QUICK}
        self.content: dict[str, Any] = {
            "name": name,
            "include": [self.table],
            "signal_data_collection": f"{name}.signals",
            "connector": {**block, "notifications": f"{name}-notifications", **own},
            **more,
        }

    def run(self, *statements: str) -> None:
        """Each in a transaction of its own."""
        with closing(self.session()) as session, session.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                session.commit()

    def rows(self) -> list[tuple[Any, ...]]:
        """What the table has."""
        with closing(self.session()) as session, session.cursor() as cursor:
            cursor.execute(f"SELECT id, n FROM {self.table} ORDER BY id")
            return [tuple(row) for row in cursor.fetchall()]

    def loses_its_place(self, endpoints: Any) -> set[int]:
        """The connector, its offsets and its slot go, then rows of the table and some change; the ids that went."""
        unseen = {row[0] for row in self.rows() if row[0] % 7 == 0}
        Connect(endpoints.connect).forget(self.name)
        wait(self._dropped)
        self.run(
            f"DELETE FROM {self.table} WHERE id % 7 = 0",
            f"UPDATE {self.table} SET n = n + 1 WHERE id % 11 = 0",
            f"INSERT INTO {self.table} VALUES (5001, 1), (5002, 2)",
        )
        return unseen

    def _dropped(self) -> bool:
        with suppress(psycopg2.errors.ObjectInUse):
            self.run(f"SELECT pg_drop_replication_slot('{self.name}')")
            return True
        return False

    @contextmanager
    def busy(self) -> Iterator[None]:
        """A writer for the time of the block: updates, deletes, inserts and changes of keys."""
        dice = random.Random(self.name)

        def write() -> None:
            row = dice.randint(1, ROWS)
            with suppress(psycopg2.IntegrityError, pymysql.err.IntegrityError):
                self.run(
                    dice.choice(
                        [
                            f"UPDATE {self.table} SET n = n + 1 WHERE id = {row}",
                            f"UPDATE {self.table} SET n = n + 1 WHERE id = {row}",
                            f"DELETE FROM {self.table} WHERE id = {row}",
                            f"INSERT INTO {self.table} VALUES ({row}, 1000)",
                            f"UPDATE {self.table} SET id = id + 1000 WHERE id = {row}",
                        ]
                    )
                )

        with beside.repeated(write, 0.005):
            yield


def of_postgres(endpoints: Any) -> Side:
    """Told by its signal table, with the login of ``database``."""
    at = endpoints.postgres_source

    def session() -> Any:
        return psycopg2.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database)

    place = {"host": at.host, "port": at.port, "user": at.user}
    database = {**place, "kind": "postgresql", "password": at.password, "dbname": at.database, "sslmode": "disable"}
    own = {**place, "password": "${env:POSTGRES_SOURCE_PASSWORD}", "database": at.database}
    return Side(PG, "postgresql", session, {"database": database}, own)


def of_maria(endpoints: Any) -> Side:
    """Told by a topic, which the verb makes; no login is needed for that."""
    at = endpoints.mariadb_connector
    own = {
        "host": at.host, "port": at.port, "user": at.user, "password": "${env:MARIADB_CONNECTOR_PASSWORD}",
        "databases": [MARIA], "server_id": 993, "signals": f"{MARIA}-signals",
    }  # fmt: skip
    return Side(MARIA, "mariadb", lambda: log_in(endpoints.mariadb), {}, own)


@pytest.fixture(scope="module")
def sides(endpoints: Any) -> Iterator[list[Side]]:
    """Both with rows that were there before their connectors."""
    numbers = ", ".join(f"({number}, 0)" for number in range(1, ROWS + 1))
    pg, maria = of_postgres(endpoints), of_maria(endpoints)
    for side in (pg, maria):
        side.run(
            f"CREATE {'SCHEMA' if side is pg else 'DATABASE'} {side.name}",
            f"CREATE TABLE {side.table} (id int PRIMARY KEY, n int NOT NULL)",
            f"CREATE TABLE {side.name}.{MARKS} (id int PRIMARY KEY)",
            f"CREATE TABLE {side.name}.signals {SIGNALS}",
            f"INSERT INTO {side.table} VALUES {numbers}",
        )
    pg.run(f"CREATE PUBLICATION {PG} FOR TABLE {PG}.items, {PG}.{MARKS}, {PG}.signals")
    maria.run(f"GRANT INSERT ON {MARIA}.signals TO '{endpoints.mariadb_connector.user}'@'127.0.0.1'")
    yield [pg, maria]
    with suppress(psycopg2.Error):
        pg.run(f"SELECT pg_drop_replication_slot('{PG}')")
    pg.run(f"DROP PUBLICATION {PG}", f"DROP SCHEMA {PG} CASCADE")
    maria.run(f"DROP DATABASE {MARIA}")


@pytest.fixture
def flags(sides: list[Side], endpoints: Any, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """A configuration with both sources, whose connectors run."""
    conf = tmp_path / "conf"
    (conf / "sources").mkdir(parents=True)
    (conf / "base.yaml").write_text("", encoding="utf-8")
    dev = {
        "lake": {"root": str(tmp_path / "lake"), "lease": "off"},
        "connect": {"url": endpoints.connect},
        "kafka": {"bootstrap_servers": endpoints.kafka},
        "spark": {"spark.master": "local[2]", "spark.driver.extraJavaOptions": SHORT_LIVED},
    }
    (conf / "dev.yaml").write_text(yaml.safe_dump(dev), encoding="utf-8")
    for side in sides:
        (conf / "sources" / f"{side.name}.yaml").write_text(yaml.safe_dump(side.content), encoding="utf-8")
    made = ("--conf", str(conf), "--env", "dev")
    said("connect", "apply", *made)
    yield made
    for side in sides:
        Connect(endpoints.connect).forget(side.name)


def test_a_snapshot_amid_changes_ends_equal(
    sides: list[Side], flags: tuple[str, ...], endpoints: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Rows from before the connector come by the snapshot, newer changes of theirs win (debezium.md D5, Q5), and what
    signals and notifications left behind is no row; so do rows go that were deleted while a connector had lost its
    offsets and its slot (D7). Conditions hold; what is not captured and a connector that rests are refused.
    """
    for side in sides:
        with side.busy():
            [told] = snapshot(side, flags)
        assert (told["table"], told["then"]) == (side.table, "SUCCEEDED")
        assert told["rows"] > ROWS / 4
    for side, way, end in zip(sides, ("--wait", "--blocking"), (20, 40), strict=True):
        [told] = snapshot(side, flags, way, "--where", f"id <= {end} AND n >= 0")
        count = sum(row[0] <= end for row in side.rows())
        assert told == {"table": side.table, "then": "SUCCEEDED", "rows": count}, way
    run(sides, flags, endpoints, 0)
    lake = Lake(str(tmp_path / "lake"))
    for side in sides:
        assert silver(spark, lake, side) == side.rows()
        assert not Path(lake.dead_letters(side.name).location).exists() or Source(lake, side.name).letters() == []
    pg = sides[0]
    unseen = pg.loses_its_place(endpoints)
    said("connect", "apply", PG, *flags)
    with pg.busy():
        [told] = snapshot(pg, flags, "--remove-missing")
    assert told["then"] == "SUCCEEDED"
    run([pg], flags, endpoints, 10)
    assert silver(spark, lake, pg) == pg.rows()
    assert unseen - {row[0] for row in pg.rows()}
    with pytest.raises(ConfigError, match=f"{PG}.others is not captured"):
        said("connect", "snapshot", PG, f"{PG}.others", *flags, code=2)
    said("connect", "snapshot", PG, "--stop", *flags)
    said("connect", "pause", PG, *flags)
    wait(lambda: Connect(endpoints.connect).status(PG).connector == "PAUSED")
    with pytest.raises(ConfigError, match=rf"PAUSED and reads no signals\. .*connect resume {PG}"):
        said("connect", "snapshot", PG, f"{PG}.items", *flags, code=2)


def snapshot(side: Side, flags: tuple[str, ...], *how: str) -> Any:
    """What the verb says of the table."""
    return json.loads(said("connect", "snapshot", side.name, side.table, *how, *flags, "--json"))


def run(sides: list[Side], flags: tuple[str, ...], endpoints: Any, first: int) -> None:
    """Bring silver to where the databases are now; marks are numbered from ``first``."""
    with ExitStack() as opened:
        for number, side in enumerate(sides, first):
            topics = opened.enter_context(closing(Topics(endpoints.kafka, f"{side.name}.{side.name}.")))
            side.run(f"INSERT INTO {side.name}.{MARKS} VALUES ({number})")
            wait(lambda topics=topics, number=number: topics.has_mark(number))
            topics.ends()
        said("run", "bronze", "silver", *flags)


def silver(spark: SparkSession, lake: Lake, side: Side) -> list[tuple[Any, ...]]:
    """What silver has of the table."""
    return sorted((row["id"], row["n"]) for row in Source(lake, side.name).rows(spark, side.table))


def wait(happened: Callable[[], Any], times: int = 150) -> None:
    """Until it has, at most half a minute or so."""
    for _ in range(times):
        if happened():
            return
        time.sleep(0.2)
    raise AssertionError("it did not happen")
