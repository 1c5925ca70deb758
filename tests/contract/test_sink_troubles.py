"""What goes wrong on a target for a while, and for good, as a real server does it (reliability.md 4.4)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from psycopg2 import sql
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.errors import ConfigError, TargetRefused, Unreachable
from replicator.sinks.postgres import Backoff, PostgresSink
from replicator.spec import Applied
from tests.contract.commit_proxy import CommitProxy
from tests.contract.serving import (
    CUSTOMERS,
    ORDERS,
    QUICK,
    Served,
    ann,
    customers,
    difference,
    execute,
    model,
    orders,
)

pytestmark = [pytest.mark.spark, pytest.mark.stack]

WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'replicator' "
    "AND pid <> pg_backend_pid()"
)


def until_somebody_waits(admin: Served, moment: float = 30) -> None:
    ends = time.monotonic() + moment
    while admin.run(sql.SQL(WAITING)) == [(0,)]:
        assert time.monotonic() < ends, "nobody waits for a lock"
        time.sleep(0.01)


@contextmanager
def role_setting(admin: Served, setting: str) -> Iterator[None]:
    """Sessions of the sink's role begin with a setting."""
    role = admin.sink._connection.user
    execute(admin, f"ALTER ROLE {role} SET {setting}")
    try:
        yield
    finally:
        execute(admin, f"ALTER ROLE {role} RESET {setting.partition(' ')[0]}")


def test_a_deadlock_with_another_writer_is_tried_again(
    spark: SparkSession, postgres: Served, admin: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Postgres chooses the publication as the victim (40P01): the batch is published once the rival is done (F-P3)."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann(key=k) for k in (1, 2)], CUSTOMERS, 1, complete=True)])
    batch = difference(spark, of, [ann("Bea", key=k) for k in (2, 1)], CUSTOMERS, 2)
    touch = sql.SQL(f'UPDATE "{postgres.schema}".dim_customers SET credit = 9 WHERE id = {{}}')
    with (
        role_setting(admin, "deadlock_timeout = '3s'"),  # time for the rival to close the circle before anybody looks
        ThreadPoolExecutor(1) as pool,
        closing(admin.connection.open()) as rival,
        rival.cursor() as cursor,
    ):
        cursor.execute("SET deadlock_timeout = '1min'")  # so that it is the publication that looks
        cursor.execute(touch.format(sql.Literal(2)))  # rows come in the order of the key: 1 is taken, 2 awaited
        publication = pool.submit(postgres.sink.publish, [batch])
        until_somebody_waits(admin)
        cursor.execute(touch.format(sql.Literal(1)))
        rival.commit()
        assert publication.result() == {of.name: Applied(0, 2, 0, 2)}
    assert "40P01" in caplog.text
    assert [row[1] for row in postgres.rows(of)] == ["Bea", "Bea"]


def test_rows_are_taken_in_the_order_of_the_key(spark: SparkSession, postgres: Served, admin: Served) -> None:
    """Upserts and deletes alike: a rival who goes the same way waits, and there is no deadlock, whatever the order in
    which rows were staged and lie in the table.
    """
    of = customers(postgres.schema)
    rows = [ann(key=k) for k in (5, 3, 4, 1, 2)]
    postgres.sink.publish([difference(spark, of, rows, CUSTOMERS, 1, complete=True)])
    taken = sql.SQL(f'SELECT id FROM "{postgres.schema}".dim_customers ORDER BY id FOR UPDATE SKIP LOCKED')
    upserts, deletes = [ann("Bea", key=k) for k in (5, 4, 2, 3, 1)], [ann(op="delete", key=k) for k in (4, 5, 2, 3)]
    for version, changed in enumerate((upserts, deletes), 2):
        execute(postgres, "UPDATE $.dim_customers SET credit = 0 WHERE id IN (2, 3)")  # they lie behind the others now
        with ThreadPoolExecutor(1) as pool, closing(postgres.connection.open()) as rival, rival.cursor() as cursor:
            cursor.execute(sql.SQL(f'SELECT FROM "{postgres.schema}".dim_customers WHERE id = 4 FOR UPDATE'))
            publication = pool.submit(postgres.sink.publish, [difference(spark, of, changed, CUSTOMERS, version)])
            until_somebody_waits(admin)
            assert postgres.run(taken)[-1] == (5,)
            assert {2, 3}.isdisjoint(key for (key,) in postgres.run(taken))
            rival.rollback()
            publication.result()
    assert [row[0] for row in postgres.rows(of)] == [1]


def test_a_serialization_failure_is_tried_again(
    spark: SparkSession, postgres: Served, admin: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Under repeatable read a row that a rival changed meanwhile ends the transaction (40001): done anew (F-P3)."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    touch = sql.SQL(f'UPDATE "{postgres.schema}".dim_customers SET credit = 9')
    with role_setting(admin, "default_transaction_isolation = 'repeatable read'"):
        batch = difference(spark, of, [ann("Bea")], CUSTOMERS, 2)
        with ThreadPoolExecutor(1) as pool, closing(postgres.connection.open()) as rival, rival.cursor() as cursor:
            cursor.execute(touch)
            publication = pool.submit(postgres.sink.publish, [batch])
            until_somebody_waits(admin)
            rival.commit()
            assert publication.result() == {of.name: Applied(0, 1, 0, 2)}
    assert "40001" in caplog.text


def test_a_full_disk_is_waited_for_and_nothing_is_visible(
    spark: SparkSession, postgres: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLSTATE 53100 from the server: out of reach for now (F-P6); once there is room the same batch is published."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    execute(
        postgres,
        """
        CREATE FUNCTION $.no_room() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN RAISE EXCEPTION ''no room for %'', NEW.name USING ERRCODE = ''53100''; END';
        CREATE TRIGGER no_room BEFORE INSERT ON $.dim_customers FOR EACH ROW WHEN (NEW.id = 3)
            EXECUTE FUNCTION $.no_room()
        """,
    )
    batch = difference(spark, of, [ann("Bea"), ann("Secret", key=3)], CUSTOMERS, 2)
    with pytest.raises(Unreachable, match="disk full, SQLSTATE 53100") as caught:
        postgres.sink.publish([batch])
    assert "Secret" not in str(caught.value) + caplog.text
    assert caplog.text.count("postgres_retry") == QUICK.retries
    assert [row[:2] for row in postgres.rows(of)] == [(1, "Ann")]
    execute(postgres, "DROP TRIGGER no_room ON $.dim_customers")
    assert postgres.sink.publish([batch]) == {of.name: Applied(1, 1, 0, 2)}


def test_a_target_that_only_reads_is_waited_for(spark: SparkSession, postgres: Served, admin: Served) -> None:
    """A standby, or a server that was set to read only (25006): out of reach for now, and read all the same."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    batch = difference(spark, of, [ann("Bea")], CUSTOMERS, 2)
    with role_setting(admin, "default_transaction_read_only = on"):
        with pytest.raises(Unreachable, match=r"read only sql transaction.*`default_transaction_read_only`"):
            postgres.sink.publish([batch])
        with pytest.raises(
            Unreachable,
            match=r"does not accept writes from role .* RESET "
            r"default_transaction_read_only",
        ):
            postgres.sink.check_connection()
        assert postgres.sink.progress(of).version == 1
    assert postgres.sink.publish([batch]) == {of.name: Applied(0, 1, 0, 2)}


def test_a_roles_limit_for_transactions_is_none_of_a_batchs(
    spark: SparkSession, postgres: Served, admin: Served
) -> None:
    """PostgreSQL 17's `transaction_timeout` ends what is at work, too: a batch, and a look at it, have limits for their
    statements and for what has nothing to do, and last as long as that allows.
    """
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    execute(
        postgres,
        "CREATE FUNCTION $.slowly() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END'; "
        "CREATE TRIGGER slowly BEFORE UPDATE ON $.dim_customers FOR EACH ROW EXECUTE FUNCTION $.slowly()",
    )
    with role_setting(admin, "transaction_timeout = '250ms'"):
        batch = difference(spark, of, [ann("Bea")], CUSTOMERS, 2)
        assert postgres.sink.publish([batch]) == {of.name: Applied(0, 1, 0, 2)}
        with postgres.sink.read_back(of) as look:
            time.sleep(0.5)
            assert list(look.snapshot.rows(look.table, [("name", "{}::text")], None, 9)) == [[("Bea",)]]


def test_how_a_role_would_have_names_written_takes_no_part(
    spark: SparkSession, postgres: Served, admin: Served
) -> None:
    """Types are compared as Postgres writes them: under `quote_all_identifiers` a `"text"` was no text."""
    of = model(postgres.schema, "texts", {"id": "integer", "name": "text"})
    with role_setting(admin, "quote_all_identifiers = on"):
        for version in (1, 2):
            rows = [(1, str(version), "upsert")]
            postgres.sink.publish(
                [difference(spark, of, rows, "id INT, name STRING, _op STRING", version, complete=True)]
            )
            assert postgres.sink.progress(of).version == version


@pytest.fixture
def western(admin: Served, postgres: Served) -> Iterator[Served]:
    """A database of its own, in LATIN1, where only its owner may make temporary tables and the sink's role schemas."""
    name, role = f"{postgres.schema}_western", postgres.connection.user
    _alone(admin, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        _alone(admin, f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
        _alone(admin, f"GRANT CREATE ON DATABASE {name} TO {role}")
        connection = replace(postgres.connection, database=name)
        yield Served(PostgresSink(connection, backoff=QUICK), postgres.schema, connection)
    finally:
        _alone(admin, f"DROP DATABASE {name} WITH (FORCE)")


def _alone(admin: Served, statement: str) -> None:
    """A statement that goes with no transaction."""
    with closing(admin.connection.open()) as session:
        session.autocommit = True
        session.cursor().execute(statement)


def test_a_right_and_a_character_that_a_database_lacks_are_said(
    spark: SparkSession, postgres: Served, admin: Served, western: Served
) -> None:
    """Without TEMPORARY (0045) asking and publishing say the GRANT that fixes it; a character that the server's
    encoding lacks is said with its column, and no value.
    """
    of, other = customers(western.schema), model(western.schema, "other", {"id": "integer", "name": "text"})
    named = "id INT, name STRING, _op STRING"
    good = difference(spark, other, [(1, "Zoë", "upsert")], named, 1, complete=True)
    with pytest.raises(ConfigError, match="may not create temporary tables") as asked:
        western.sink.check_connection()
    with pytest.raises(TargetRefused, match=r"model other: role .* may not create temporary tables") as refused:
        western.sink.publish([good])
    assert refused.value.fix == asked.value.fix
    _alone(admin, refused.value.fix.partition(": ")[2])
    assert western.sink.check_connection().startswith("PostgreSQL ")
    bad = difference(spark, of, [ann("Zoë"), ann("secret 名", key=2)], CUSTOMERS, 1, complete=True)
    with pytest.raises(TargetRefused, match=r"model dim_customers: .*22P05 - column name\.") as caught:
        western.sink.publish([bad, good])
    assert "secret" not in str(caught.value)
    assert caught.value.applied == {"other": Applied(1, 0, 0, 1)}
    assert western.rows(other) == [(1, "Zoë")]


def test_rights_that_publishing_models_takes_are_asked_for_before(
    spark: SparkSession, postgres: Served, admin: Served, western: Served
) -> None:
    """A schema that nobody may make, and in one of others' what is lacking: each is said with the statement by which a
    publication then goes through.
    """
    of = customers(western.schema)
    _alone(admin, f"GRANT TEMPORARY ON DATABASE {western.connection.database} TO PUBLIC")
    owner = replace(admin, connection=replace(admin.connection, database=western.connection.database))
    assert western.sink.check_connection([of]).startswith("PostgreSQL ")
    _alone(admin, f"REVOKE CREATE ON DATABASE {western.connection.database} FROM {western.connection.user}")
    with pytest.raises(ConfigError, match=f"may not create schema {western.schema}, which does not exist") as refused:
        western.sink.check_connection([of])
    assert f'CREATE SCHEMA "{western.schema}" AUTHORIZATION' in str(refused.value.fix)
    columns = "id integer PRIMARY KEY, name varchar(10), credit numeric(10,2)"
    execute(owner, f"CREATE SCHEMA $; CREATE TABLE $.dim_customers ({columns})")
    told = r"use schema .*, create tables in schema .*, SELECT and INSERT and UPDATE and DELETE in .*\.dim_customers"
    with pytest.raises(ConfigError, match=told) as lacking:
        western.sink.check_connection([of])
    owner.run(sql.SQL(str(lacking.value.fix).partition(": ")[2]))
    assert western.sink.check_connection([of]).startswith("PostgreSQL ")
    western.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    assert [row[0] for row in western.rows(of)] == [1]


@pytest.mark.parametrize("table", ["dim_customers", "_replicator_ledger"])
@pytest.mark.parametrize("right", ["SELECT", "INSERT", "UPDATE", "DELETE"])
def test_rows_that_a_role_may_not_write_are_not_staged(
    spark: SparkSession, postgres: Served, admin: Served, table: str, right: str
) -> None:
    """They would be, as a whole, with each try of a run that goes on. Rows that Spark cannot compute show it: the right
    is said, with the GRANT by which it goes through, and not that.
    """
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    execute(admin, f"ALTER TABLE $.{table} OWNER TO {admin.connection.user}")
    every = {"SELECT", "INSERT", "UPDATE", "DELETE"}
    execute(admin, f"GRANT {', '.join(sorted(every - {right}))} ON $.{table} TO {postgres.connection.user}")
    good = difference(spark, of, [ann(key=2)], CUSTOMERS, 2)
    broken = replace(good, rows=good.rows.withColumn("name", F.raise_error(F.lit("never computed"))))
    with pytest.raises(TargetRefused, match=rf"dim_customers: role .* may not {right} in .*\.{table}\.") as refused:
        postgres.sink.publish([broken])
    admin.run(sql.SQL(str(refused.value.fix).partition(": ")[2]))
    postgres.sink.publish([good])
    assert [row[0] for row in postgres.rows(of)] == [1, 2]


def test_a_right_that_asking_the_ledger_takes_is_said_with_its_grant(postgres: Served, admin: Served) -> None:
    """Of a ledger that somebody else has made, say."""
    of = customers(postgres.schema)
    execute(postgres, "CREATE SCHEMA $")
    execute(admin, "CREATE TABLE $._replicator_ledger (table_name text, input text, version bigint)")
    with pytest.raises(TargetRefused, match=r"refused the ledger: role .* may not SELECT and .*_ledger\.") as refused:
        postgres.sink.progress(of)
    admin.run(sql.SQL(str(refused.value.fix).partition(": ")[2]))
    assert postgres.sink.progress(of) is None


@pytest.mark.parametrize("others", [("_replicator_ledger",), ("_replicator_ledger", "dim_customers")])
def test_a_right_that_reading_a_target_back_takes_is_said_with_its_grant(
    spark: SparkSession, postgres: Served, admin: Served, others: tuple[str, ...]
) -> None:
    """Which is to read, of the ledger and of the table: a role that only verifies needs no right to write."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    for table in others:
        execute(admin, f"ALTER TABLE $.{table} OWNER TO {admin.connection.user}")
    with (
        pytest.raises(TargetRefused, match=r"model dim_customers: role .* may not SELECT in .*_ledger") as refused,
        postgres.sink.read_back(of),
    ):
        pass
    admin.run(sql.SQL(str(refused.value.fix).partition(": ")[2]))
    with postgres.sink.read_back(of) as look:
        read = [row for rows in look.snapshot.rows(look.table, [("id", "{}::text")], None, 9) for row in rows]
        assert (look.progress, read) == (postgres.sink.progress(of), [("1",)])


@pytest.mark.parametrize(
    ("body", "told", "fix"),
    [
        (
            "RAISE EXCEPTION 'secret %', NEW.name;",
            r"raise exception, SQLSTATE P0001 - in function \S+\.f\(\)\.",
            "Fix",
        ),
        ("INSERT INTO audit VALUES (1);", r'"audit" does not exist, in function \S+\.f\(\)\.', "SET search_path"),
    ],
    ids=["raises", "finds no name"],
)
def test_a_function_of_the_table_that_fails_is_named(
    spark: SparkSession, postgres: Served, body: str, told: str, fix: str
) -> None:
    """What it says itself may hold values; names without a schema it finds by a search path of its own only."""
    of, quoted = customers(postgres.schema), body.replace("'", "''")
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    execute(
        postgres,
        f"CREATE TABLE $.audit (n integer); CREATE FUNCTION $.f() RETURNS trigger LANGUAGE plpgsql AS "
        f"'BEGIN {quoted} RETURN NEW; END'; "
        "CREATE TRIGGER t AFTER UPDATE ON $.dim_customers FOR EACH ROW EXECUTE FUNCTION $.f()",
    )
    with pytest.raises(TargetRefused, match=told) as refused:
        postgres.sink.publish([difference(spark, of, [ann("Bea")], CUSTOMERS, 2)])
    assert fix in str(refused.value.fix)
    assert "secret" not in str(refused.value)


def test_what_a_publication_of_theirs_lacks_is_said_in_postgres_words(spark: SparkSession, postgres: Served) -> None:
    """Of the state that an object is in a SQLSTATE says nothing by itself: a table that is replicated on, say."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)])
    execute(
        postgres,
        "ALTER TABLE $.dim_customers REPLICA IDENTITY NOTHING; "
        f"CREATE PUBLICATION on_{postgres.schema} FOR TABLE $.dim_customers",
    )
    with pytest.raises(TargetRefused, match=r"55000 - cannot delete from table \S+ because .* replica identity"):
        postgres.sink.publish([difference(spark, of, [ann(op="delete")], CUSTOMERS, 2)])
    execute(postgres, f"DROP PUBLICATION on_{postgres.schema}")


def test_rows_of_tables_that_inherit_from_the_target_stay(spark: SparkSession, postgres: Served) -> None:
    """They are somebody else's, whatever their keys: no delete takes one along, nor does a whole model."""
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann(), ann(key=2)], CUSTOMERS, 1, complete=True)])
    execute(
        postgres,
        "CREATE TABLE $.others () INHERITS ($.dim_customers); "
        "INSERT INTO $.others (id, name) VALUES (2, 'theirs'), (9, 'theirs')",
    )
    gone = difference(spark, of, [ann(op="delete", key=2)], CUSTOMERS, 2)
    assert postgres.sink.publish([gone]) == {of.name: Applied(0, 0, 1, 2)}
    whole = difference(spark, of, [ann()], CUSTOMERS, 3, complete=True)
    assert postgres.sink.publish([whole]) == {of.name: Applied(0, 0, 0, 3)}
    assert execute(postgres, "SELECT id FROM $.others ORDER BY id") == [(2,), (9,)]


def test_rows_that_nobody_published_are_not_deleted(spark: SparkSession, postgres: Served) -> None:
    """A table that the ledger does not know may be somebody's own: with rows that gold has not it stays as it is, and
    its model is refused; without them it is taken over.
    """
    of = customers(postgres.schema)
    execute(postgres, "CREATE SCHEMA IF NOT EXISTS $")
    execute(
        postgres,
        "CREATE TABLE $.dim_customers (id integer PRIMARY KEY, name varchar(10) NOT NULL, credit numeric(10,2))",
    )
    execute(postgres, "INSERT INTO $.dim_customers VALUES (1, 'theirs'), (2, 'theirs'), (3, 'theirs')")
    whole = difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)
    with pytest.raises(
        TargetRefused, match="dim_customers has 2 rows that gold does not have, and nothing was ever"
    ) as error:
        postgres.sink.publish([whole])
    assert error.value.applied == {}
    assert execute(postgres, "SELECT id, name FROM $.dim_customers ORDER BY id") == [(n, "theirs") for n in (1, 2, 3)]
    execute(postgres, "DELETE FROM $.dim_customers WHERE id > 1")
    assert postgres.sink.publish([whole]) == {of.name: Applied(0, 1, 0, 1)}


def test_a_policy_that_hides_rows_from_the_publisher_stops_its_model(
    spark: SparkSession, postgres: Served, admin: Served
) -> None:
    """What it does not see it cannot delete, and no server says a word: refused until it may see all rows."""
    of, role = customers(postgres.schema), postgres.connection.user
    postgres.sink.publish([difference(spark, of, [ann(), ann("Bob", key=2)], CUSTOMERS, 1, complete=True)])
    execute(
        postgres,
        "ALTER TABLE $.dim_customers ENABLE ROW LEVEL SECURITY; ALTER TABLE $.dim_customers FORCE ROW LEVEL SECURITY; "
        "CREATE POLICY readers ON $.dim_customers FOR SELECT USING (true); "
        "CREATE POLICY writers ON $.dim_customers USING (name <> 'Bob') WITH CHECK (true)",
    )
    gone = difference(spark, of, [ann("Bob", op="delete", key=2)], CUSTOMERS, 2)
    with pytest.raises(TargetRefused, match=f"row-level security may hide rows .* from {role}") as refused:
        postgres.sink.publish([gone])
    execute(postgres, str(refused.value.fix).partition(": ")[2].replace(f'"{postgres.schema}"', "$"))
    assert postgres.sink.publish([gone]) == {of.name: Applied(0, 0, 1, 2)}
    execute(postgres, "CREATE POLICY strict ON $.dim_customers AS RESTRICTIVE FOR DELETE USING (id < 9)")
    with pytest.raises(TargetRefused, match="row-level security may hide rows"):
        postgres.sink.publish([difference(spark, of, [ann("Cid", key=3)], CUSTOMERS, 3)])


def test_words_about_a_table_that_a_database_cannot_write_are_said(
    spark: SparkSession, postgres: Served, admin: Served, western: Served
) -> None:
    """A description, or a name, with a character that the server's encoding lacks stops its model by name, and no
    other; what the encoding has is written.
    """
    _alone(admin, f"GRANT TEMPORARY ON DATABASE {western.connection.database} TO {western.connection.user}")
    good = model(western.schema, "plain", {"größe": "integer"}, key=("größe",), description="Größe: außen")
    bad = model(western.schema, "dashed", {"id": "integer"}, description="a table — of somebody")
    named = model(western.schema, "named", {"id": "integer", "名": "integer"})
    batch = [
        difference(spark, good, [(1, "upsert")], "`größe` INT, _op STRING", 1, complete=True),
        difference(spark, bad, [(1, "upsert")], "id INT, _op STRING", 1, complete=True),
        difference(spark, named, [(1, 2, "upsert")], "id INT, `名` INT, _op STRING", 1, complete=True),
    ]
    with pytest.raises(TargetRefused, match="22P05") as caught:
        western.sink.publish(batch)
    assert set(caught.value.refused) == {"dashed", "named"}
    assert caught.value.applied == {"plain": Applied(1, 0, 0, 1)}
    assert western.rows(good) == [(1,)]
    assert western.run(sql.SQL("SELECT obj_description('{}.plain'::regclass)").format(sql.SQL(western.schema))) == [
        ("Größe: außen",)
    ]


def test_a_target_that_comes_back_is_published_to(
    spark: SparkSession, postgres: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """Down at first, then there: the same call ends well (F-P1)."""
    of = customers(postgres.schema)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    sink = PostgresSink(
        replace(postgres.connection, host="127.0.0.1", port=port), backoff=Backoff(retries=60, first=0.1, longest=0.1)
    )
    with ThreadPoolExecutor(1) as pool:
        batch = difference(spark, of, [ann()], CUSTOMERS, 1, complete=True)
        publication = pool.submit(sink.publish, [batch])
        while "postgres_retry" not in caplog.text:
            assert not publication.done()
            time.sleep(0.01)
        with CommitProxy(postgres.connection.host, postgres.connection.port, port):
            assert publication.result() == {of.name: Applied(1, 0, 0, 1)}


@pytest.mark.parametrize("deferrable", [False, True], ids=["at once", "deferrable"])
def test_values_that_change_places_meet_a_unique_column(
    spark: SparkSession, postgres: Served, caplog: pytest.LogCaptureFixture, deferrable: bool
) -> None:
    """Two rows swap a value that is unique beside the key (F-P7): refused by name and warned of before where it is
    checked row by row, equal where it is deferrable.
    """
    of = customers(postgres.schema)
    postgres.sink.publish([difference(spark, of, [ann(), ann("Bob", key=2)], CUSTOMERS, 1, complete=True)])
    kind = "DEFERRABLE" if deferrable else ""
    execute(postgres, f"ALTER TABLE $.dim_customers ADD CONSTRAINT only_one UNIQUE (name) {kind}")
    swap = difference(spark, of, [ann("Bob"), ann("Ann", key=2)], CUSTOMERS, 2)
    sink = PostgresSink(postgres.connection, backoff=QUICK)
    if deferrable:
        assert sink.publish([swap]) == {of.name: Applied(0, 2, 0, 2)}
        assert "target_constraints" not in caplog.text
    else:
        for _ in range(2):
            with pytest.raises(TargetRefused, match="constraint only_one"):
                sink.publish([swap])
        assert caplog.text.count("target_constraints model=dim_customers checked_row_by_row=only_one") == 1
    names = ["Bob", "Ann"] if deferrable else ["Ann", "Bob"]
    assert [row[1] for row in postgres.rows(of)] == names


@pytest.mark.parametrize("kind", ["", "DEFERRABLE"])
@pytest.mark.parametrize("is_written", [False, True], ids=["of another table", "of a table in the batch"])
def test_a_row_that_others_refer_to_stops_its_model_and_no_other(
    spark: SparkSession, postgres: Served, kind: str, is_written: bool
) -> None:
    """Whose table refers to it, and when that is checked, makes no difference: what has nothing to do with it is
    published.
    """
    of, fact, other = (
        customers(postgres.schema),
        orders(postgres.schema),
        model(postgres.schema, "other", {"id": "int"}),
    )
    numbers = "id INT, _op STRING"
    postgres.sink.publish(
        [
            difference(spark, of, [ann()], CUSTOMERS, 1, complete=True),
            difference(spark, fact, [(7, 1, "upsert")], ORDERS, 1, complete=True),
            difference(spark, other, [(1, "upsert")], numbers, 1, complete=True),
        ]
    )
    table = fact.name if is_written else "visits"
    execute(postgres, "CREATE TABLE $.visits (customer integer); INSERT INTO $.visits VALUES (1)")
    execute(postgres, f"ALTER TABLE $.{table} ADD FOREIGN KEY (customer) REFERENCES $.dim_customers {kind}")
    batch = [
        difference(spark, of, [ann(op="delete")], CUSTOMERS, 2),
        difference(spark, other, [(2, "upsert")], numbers, 2),
    ]
    if is_written:
        batch.append(difference(spark, fact, [(8, None, "upsert")], ORDERS, 2))
    with pytest.raises(TargetRefused, match=f"23503 - constraint {table}_customer_fkey") as caught:
        postgres.sink.publish(batch)
    assert set(caught.value.refused) == ({of.name, fact.name} if is_written else {of.name})
    assert caught.value.applied == {"other": Applied(1, 0, 0, 2)}
    assert len(postgres.rows(of)) == 1


def test_two_runs_at_once_publish_each_batch_once(spark: SparkSession, postgres: Served) -> None:
    """Both stage into tables of one name (F-P10): one waits for the other, and no row of the one is the other's."""
    of, other = customers(postgres.schema), model(postgres.schema, "other", {"id": "integer"})
    one = [difference(spark, of, [ann(key=k) for k in range(20)], CUSTOMERS, 1, complete=True)]
    two = [difference(spark, of, [ann("Two", key=k) for k in range(30)], CUSTOMERS, 2, complete=True)]
    two.append(difference(spark, other, [(1, "upsert")], "id INT, _op STRING", 1, complete=True))
    start = threading.Barrier(2)

    def run(batch: list[Any]) -> dict[str, Applied]:
        start.wait()
        return PostgresSink(postgres.connection, backoff=Backoff(retries=4)).publish(batch)

    with ThreadPoolExecutor(2) as pool:
        done = [each.result() for each in [pool.submit(run, batch) for batch in (one, two)]]
    assert {row[1] for row in postgres.rows(of)} == {"Two"}
    assert len(postgres.rows(of)) == 30
    assert [each[of.name].version for each in done] in ([1, 2], [2, 2])
