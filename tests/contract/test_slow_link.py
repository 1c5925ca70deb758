"""A link to the serving database that is slow, breaks half-way, or dies without a word (reliability.md F-P2, F-P4)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from threading import Event, Timer

import pytest
from psycopg2 import sql
from pyspark.sql import SparkSession

from replicator.errors import Unreachable
from replicator.protocols import Difference
from replicator.sinks.postgres import Backoff, PostgresSink, keepalive
from replicator.spec import Applied, Progress
from tests.builders import made
from tests.contract.commit_proxy import CommitProxy
from tests.contract.serving import QUICK, Served, model

pytestmark = [pytest.mark.spark, pytest.mark.stack]

ROWS = 3000
COPY = b"FROM STDIN"


def items(spark: SparkSession, postgres: Served, version: int, name: str) -> Difference:
    of = model(postgres.schema, "items", {"id": "integer", "name": "text"})
    rows = [(key, f"{name} {key:05}", "upsert") for key in range(ROWS)]
    return Difference(of, made(spark, rows, "id INT, name STRING, _op STRING"), Progress("g", version), complete=True)


@contextmanager
def reading(served: Served) -> Iterator[list[tuple[int, int]]]:
    """What readers see meanwhile: rows of the old batch and of the new one, again and again."""
    query = "SELECT count(*) FILTER (WHERE name LIKE 'old%'), count(*) FILTER (WHERE name LIKE 'new%') FROM "
    of = sql.Identifier(served.schema, "items")
    seen, over = [], Event()

    def look() -> None:
        while not over.wait(0.1):
            seen.append(served.run(sql.SQL(query) + of)[0])

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield seen
        finally:
            over.set()
            looking.result()


def test_over_a_slow_link_that_breaks_all_of_a_batch_arrives_once(spark: SparkSession, postgres: Served) -> None:
    """Cut in the midst of staging, then before the answer to COMMIT: readers see the old rows or the new ones."""
    postgres.sink.publish([items(spark, postgres, 1, "old")])
    batch = items(spark, postgres, 2, "new")
    with (
        CommitProxy(postgres.connection.host, postgres.connection.port, latency=0.02, rate=200_000) as link,
        reading(postgres) as seen,
    ):
        through = replace(postgres.connection, host="127.0.0.1", port=link.port)
        link.cut_before(COPY, b"new 02500")
        with pytest.raises(Unreachable):
            PostgresSink(through, backoff=Backoff(retries=0)).publish([batch])
        assert link.cut == 1
        link.swallow_after(b"WITH written", b"COMMIT")
        assert PostgresSink(through, backoff=QUICK).publish([batch]) == {"items": Applied(0, ROWS, 0, 2)}
        assert link.swallowed == 1
    assert set(seen) == {(ROWS, 0), (0, ROWS)}
    assert [name for _, name in postgres.rows(batch.model)] == [f"new {key:05}" for key in range(ROWS)]


@pytest.mark.parametrize(
    ("seen", "trigger"),
    [(COPY, b"new 02500"), (b"pg_advisory_lock", b"SET CONSTRAINTS ALL DEFERRED")],
    ids=["staging", "transaction"],
)
def test_a_link_that_dies_without_a_word_is_given_up(
    spark: SparkSession, postgres: Served, seen: bytes, trigger: bytes
) -> None:
    """Neither side is told: ours says that Postgres is out of reach (exit 3, try again), and its session there is
    ended, by the server or by the next publisher, who waits for its lock no longer.
    """
    postgres.sink.publish([items(spark, postgres, 1, "old")])
    batch = items(spark, postgres, 2, "new")
    hasty = {"statement_timeout": "4s", "connect_timeout": "1", "idle_in_transaction_session_timeout": "3s"}
    with CommitProxy(postgres.connection.host, postgres.connection.port) as link:
        through = replace(postgres.connection, host="127.0.0.1", port=link.port, options=hasty)
        link.silent_from(seen, trigger)
        started = time.monotonic()
        with pytest.raises(Unreachable) as caught:
            PostgresSink(through, backoff=Backoff(retries=0)).publish([batch])
        assert (link.silenced, caught.value.exit_code) == (1, 3)
        assert time.monotonic() - started < 25
        assert postgres.rows(batch.model)[0] == (0, "old 00000")
        next_one = PostgresSink(replace(postgres.connection, options=hasty), backoff=QUICK)
        assert next_one.publish([batch]) == {"items": Applied(0, ROWS, 0, 2)}


def test_ctrl_c_ends_the_wait_for_the_server_and_what_it_works_on(postgres: Served) -> None:
    """A statement may run for an hour; who publishes next must not wait for the rest of it."""
    started, timer = time.monotonic(), Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    with closing(postgres.connection.open()) as session, session.cursor() as cursor:
        keepalive.set_idle_timeouts(cursor, "1min")
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            cursor.execute("SELECT pg_sleep(60)")
    query = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
    while postgres.run(sql.SQL(query)) != [(0,)]:
        assert time.monotonic() - started < 30
        time.sleep(0.1)
