"""``replicator connect check`` on a live PostgreSQL and a live MariaDB: seeded faults, each fixed by its own SQL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import yaml

from infra.sources.classicmodels.load import log_in
from replicator.connect.configuration import CLASSES
from replicator.errors import ConfigError
from tests.builders import envelope
from tests.cli import said
from tests.stand_in_connect import running

pytestmark = pytest.mark.stack

NAME, ROLE = "checked", "checked_dbz"
ALIKE = ROLE.replace("_", "x")
"""Another account, which a pattern of SQL would take for ROLE."""
FINE = f"""
CREATE SCHEMA {NAME};
CREATE ROLE {ROLE} LOGIN REPLICATION PASSWORD 'x';
GRANT USAGE ON SCHEMA {NAME} TO {ROLE};
CREATE TABLE {NAME}.fine (id int PRIMARY KEY, name text);
CREATE TABLE {NAME}.parts (id int, region text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE {NAME}.parts_eu PARTITION OF {NAME}.parts FOR VALUES IN ('eu');
GRANT SELECT ON ALL TABLES IN SCHEMA {NAME} TO {ROLE};
CREATE PUBLICATION {NAME} FOR TABLE {NAME}.fine, {NAME}.parts
"""
FAULTS = f"""
CREATE TABLE {NAME}.keyless (id int);
CREATE TABLE {NAME}.nothing (id int PRIMARY KEY); ALTER TABLE {NAME}.nothing REPLICA IDENTITY NOTHING;
CREATE TABLE {NAME}.other (id int PRIMARY KEY, code int NOT NULL UNIQUE);
ALTER TABLE {NAME}.other REPLICA IDENTITY USING INDEX other_code_key;
CREATE TABLE {NAME}.late (id int PRIMARY KEY DEFERRABLE);
CREATE TABLE {NAME}.hidden (id int PRIMARY KEY); ALTER TABLE {NAME}.hidden ENABLE ROW LEVEL SECURITY;
CREATE TABLE {NAME}.unread (id int PRIMARY KEY);
CREATE TABLE {NAME}.written (id int PRIMARY KEY, seen timestamptz[], tags text[], raw bytea);
CREATE UNLOGGED TABLE {NAME}.fleeting (id int PRIMARY KEY);
CREATE TABLE {NAME}.years (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE {NAME}.years_1 PARTITION OF {NAME}.years FOR VALUES FROM (0) TO (9);
GRANT SELECT ON ALL TABLES IN SCHEMA {NAME} TO {ROLE}; REVOKE SELECT ON {NAME}.unread FROM {ROLE};
GRANT INSERT ON {NAME}.written TO {ROLE};
ALTER ROLE {ROLE} NOREPLICATION CREATEDB;
ALTER PUBLICATION {NAME} ADD TABLE {NAME}.nothing, {NAME}.other, {NAME}.late, {NAME}.hidden, {NAME}.written;
ALTER PUBLICATION {NAME} SET (publish = 'insert, update, delete')
"""
OF_POSTGRES = {
    ("", "fix", "role"),
    ("", "advice", "role"),
    ("", "fix", "publication"),
    ("", "advice", "slot"),
    ("keyless", "fix", "key"),
    ("keyless", "fix", "publication"),
    ("nothing", "fix", "replica identity"),
    ("other", "fix", "replica identity"),
    ("late", "fix", "replica identity"),
    ("hidden", "fix", "row-level security"),
    ("unread", "fix", "grants"),
    ("unread", "fix", "publication"),
    ("written", "advice", "grants"),
    ("written", "advice", "replica identity"),
    ("fleeting", "fix", "log"),
    ("years", "fix", "publication"),
    ("years_1", "fix", "publication"),
}


def configure(conf: Path, kind: str, server: Any, database: dict[str, Any], connector: dict[str, Any]) -> None:
    """A source that can be asked."""
    (conf / "sources").mkdir(parents=True)
    (conf / "base.yaml").write_text("", encoding="utf-8")
    (conf / "dev.yaml").write_text("", encoding="utf-8")
    place = {"kind": kind, "host": server.host, "port": server.port}
    content = {
        "name": NAME,
        "database": {**place, "user": server.user, "password": server.password, "sslmode": "disable", **database},
        "connector": {**place, "user": ROLE, "tables": [f"{NAME}[.].*"], **connector},
    }
    (conf / "sources" / "s.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def found(conf: Path, code: int) -> list[dict[str, Any]]:
    """What is not ok, as JSON."""
    told = said("connect", "check", "--conf", str(conf), "--env", "dev", "--json", code=code)
    return [each for each in json.loads(told) if each["level"] != "ok"]


def drafted(conf: Path, row: dict[str, Any]) -> dict[str, str]:
    """What ``schema infer`` says of a record of the table ``typed``, whose definition it asks for."""
    told = {"topic": f"{NAME}.typed", "partition": 0, "offset": 0, "key": '{"id": 1}'}
    events = conf / "events.jsonl"
    events.write_text(json.dumps({**told, "payload": json.dumps(envelope("c", row, table=f"{NAME}.typed"))}) + "\n")
    asked = ("--source", NAME, "--conf", str(conf), "--env", "dev", "--json")
    [draft] = json.loads(said("schema", "infer", str(events), *asked))
    return {column["column"]: column["type"] for column in draft["columns"]}


@pytest.fixture
def postgres(serving: Any) -> Iterator[Any]:
    """Statements for the superuser; what they made is gone afterwards."""
    at = serving.postgres_admin
    with closing(
        psycopg2.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database)
    ) as session:
        session.autocommit = True
        cursor = session.cursor()
        try:
            yield cursor
        finally:
            cursor.execute(
                f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{NAME}'"
            )
            cursor.execute(f"DROP PUBLICATION IF EXISTS {NAME}; DROP SCHEMA IF EXISTS {NAME} CASCADE")
            cursor.execute(f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def test_seeded_faults_of_postgresql_are_found_and_fixed_by_their_own_sql(
    postgres: Any, serving: Any, tmp_path: Path
) -> None:
    """Nothing to fix at first; then each fault once, by table; then every fix is run as it is printed, and none is
    left but those that want a person.
    """
    admin = serving.postgres_admin
    captured = {"database": admin.database, "tables": [f"{NAME}[.](?!parts$).*"]}
    configure(tmp_path, "postgresql", admin, {"dbname": admin.database}, captured)
    postgres.execute(FINE)
    assert [each for each in found(tmp_path, 0) if each["what"] != "other slot"] == []
    postgres.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [NAME])
    for statement in FAULTS.split(";"):
        postgres.execute(statement)
    told = [each for each in found(tmp_path, 1) if each["what"] != "other slot"]
    assert {(each["table"].removeprefix(f"{NAME}."), each["level"], each["what"]) for each in told} == OF_POSTGRES
    [slot] = [each for each in told if each["what"] == "slot"]
    assert "retains" in slot["message"]
    for each in told:
        if each["what"] not in ("key", "slot") and each["level"] == "fix":
            postgres.execute(each["fix"].partition(" --")[0])
    left = {(each["table"], each["what"]) for each in found(tmp_path, 1) if each["level"] == "fix"}
    by_its_parts, logged = (f"{NAME}.years", "publication"), (f"{NAME}.fleeting", "publication")
    assert left == {(f"{NAME}.keyless", "key"), by_its_parts, logged}
    postgres.execute(f"DROP PUBLICATION {NAME}; DROP TABLE {NAME}.keyless")
    [missing] = [each for each in found(tmp_path, 1) if each["what"] == "publication"]
    postgres.execute(missing["fix"])
    assert [(each["table"], each["what"]) for each in found(tmp_path, 1) if each["level"] == "fix"] == [by_its_parts]


def test_a_snapshot_of_a_table_that_there_is_not_is_refused_by_its_name(
    postgres: Any, serving: Any, tmp_path: Path
) -> None:
    """With the nearest one, and no signal is sent; of one that is there it is."""
    admin = serving.postgres_admin
    configure(tmp_path, "postgresql", admin, {"dbname": admin.database}, {"database": admin.database})
    postgres.execute(FINE)
    postgres.execute(f"CREATE TABLE {NAME}.signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))")
    runs = {"table.include.list": f"{NAME}[.].*", "signal.data.collection": f"{NAME}.signals", "topic.prefix": NAME}
    with running(NAME, {"connector.class": CLASSES["postgresql"], **runs}) as url:
        (tmp_path / "dev.yaml").write_text(yaml.safe_dump({"connect": {"url": url}}), encoding="utf-8")
        verb = ("connect", "snapshot", NAME, "--no-wait", "--conf", str(tmp_path), "--env", "dev")
        with pytest.raises(ConfigError, match=f"sees no table {NAME}.fien at the source; did you mean '{NAME}.fine'"):
            said(*verb, f"{NAME}.fien", code=2)
        said(*verb, f"{NAME}.parts_eu")
    postgres.execute(f"SELECT data FROM {NAME}.signals")
    [(data,)] = postgres.fetchall()
    assert json.loads(data)["data-collections"] == [rf"{NAME}\.parts_eu"]


@pytest.fixture
def maria(endpoints: Any) -> Iterator[Any]:
    """Statements for root; what they made or set is as before afterwards."""
    with closing(log_in(endpoints.mariadb)) as session, session.cursor() as cursor:
        try:
            yield cursor
        finally:
            cursor.execute("SET GLOBAL binlog_format = 'ROW'")
            cursor.execute("SET GLOBAL binlog_row_image = 'FULL'")
            cursor.execute(f"DROP DATABASE IF EXISTS {NAME}")
            cursor.execute(f"DROP USER IF EXISTS {ROLE}@'127.0.0.1', {ALIKE}@'127.0.0.1'")


def test_a_draft_asks_postgresql_for_its_definitions(postgres: Any, serving: Any, tmp_path: Path) -> None:
    """Domains and enums are what they are made of; the record shows how the connector writes decimals, its mode how it
    writes times.
    """
    admin = serving.postgres_admin
    configure(tmp_path, "postgresql", admin, {"dbname": admin.database}, {"database": admin.database})
    postgres.execute(FINE)
    postgres.execute(
        f"CREATE TYPE {NAME}.mood AS ENUM ('ok'); CREATE DOMAIN {NAME}.count AS int;"
        f"CREATE TABLE {NAME}.typed (id {NAME}.count PRIMARY KEY, total numeric(10,2), at timestamp, mood {NAME}.mood)"
    )
    row = {"id": 1, "total": "12.50", "at": 1767225600000000, "mood": "ok", "gone": 1}
    types = {"id": "int", "total": "decimal_string(10,2)", "at": "micro_timestamp", "mood": "enum", "gone": "bigint"}
    assert drafted(tmp_path, row) == types


def test_seeded_faults_of_mariadb_are_found_and_fixed_by_their_own_sql(
    maria: Any, endpoints: Any, tmp_path: Path
) -> None:
    """Binlog, image, server id, rights both ways, tables: found, and gone once the fix is run."""
    configure(tmp_path, "mariadb", endpoints.mariadb, {}, {"databases": [NAME], "server_id": 77})
    rights = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"
    for statement in (
        f"CREATE DATABASE {NAME}",
        f"CREATE TABLE {NAME}.fine (id int PRIMARY KEY)",
        f"CREATE USER {ROLE}@'127.0.0.1' IDENTIFIED BY 'x'",
        f"GRANT {rights} ON *.* TO {ROLE}@'127.0.0.1'",
        f"CREATE USER {ALIKE}@'127.0.0.1' IDENTIFIED BY 'x'",
    ):
        maria.execute(statement)
    assert found(tmp_path, 0) == []
    for statement in (
        f"CREATE TABLE {NAME}.keyless (id int)",
        f"CREATE TABLE {NAME}.indexed (id int NOT NULL UNIQUE)",
        f"CREATE TABLE {NAME}.nullable (id int UNIQUE, n int NOT NULL UNIQUE)",
        f"CREATE TABLE {NAME}.hosts (id int PRIMARY KEY, at inet6)",
        f"CREATE TABLE {NAME}.hits (id bigint unsigned PRIMARY KEY)",
        f"CREATE VIEW {NAME}.seen AS SELECT id, CAST('::1' AS inet6) AS host FROM {NAME}.hits",
        f"CREATE TABLE {NAME}.old (id int PRIMARY KEY) ENGINE = MyISAM",
        f"CREATE TABLE {NAME}.children (id int PRIMARY KEY, fine int REFERENCES {NAME}.fine (id) ON DELETE CASCADE)",
        "SET GLOBAL binlog_format = 'MIXED'",
        "SET GLOBAL binlog_row_image = 'MINIMAL'",
        f"REVOKE REPLICATION SLAVE ON *.* FROM {ROLE}@'127.0.0.1'",
        f"GRANT DROP, FILE ON *.* TO {ROLE}@'127.0.0.1'",
    ):
        maria.execute(statement)
    told = found(tmp_path, 1)
    assert {(each["table"].removeprefix(f"{NAME}."), each["level"], each["what"]) for each in told} == {
        ("", "fix", "binlog_format"),
        ("", "fix", "binlog_row_image"),
        ("", "fix", "grants"),
        ("", "advice", "grants"),
        ("keyless", "fix", "key"),
        ("indexed", "advice", "key"),
        ("nullable", "fix", "key"),
        ("hosts", "fix", "type"),
        ("hits", "advice", "type"),
        ("old", "advice", "engine"),
        ("children", "advice", "cascade"),
    }
    for each in told:
        if each["what"] not in ("key", "cascade") and "columns:" not in each["fix"]:
            maria.execute(each["fix"].partition(" --")[0])
    assert {(each["table"], each["what"]) for each in found(tmp_path, 1)} == {
        (f"{NAME}.keyless", "key"),
        (f"{NAME}.indexed", "key"),
        (f"{NAME}.nullable", "key"),
        (f"{NAME}.hits", "type"),
        (f"{NAME}.children", "cascade"),
    }


def test_a_draft_asks_mariadb_for_its_definitions(maria: Any, endpoints: Any, tmp_path: Path) -> None:
    """A table that the database has not got is guessed at by its values."""
    configure(tmp_path, "mariadb", endpoints.mariadb, {}, {"databases": [NAME], "server_id": 77})
    row = {"id": 1, "total": "BNI=", "paid": 1, "at": "2026-01-01T00:00:00Z"}
    assert drafted(tmp_path, row) == {"id": "bigint", "total": "string", "paid": "bigint", "at": "string"}
    maria.execute(f"CREATE DATABASE {NAME}")
    columns = "id bigint unsigned PRIMARY KEY, total decimal(10,2), paid boolean, at timestamp"
    maria.execute(f"CREATE TABLE {NAME}.typed ({columns})")
    types = {"id": "bigint unsigned", "total": "decimal(10,2)", "paid": "smallint", "at": "zoned_timestamp"}
    assert drafted(tmp_path, row) == types
