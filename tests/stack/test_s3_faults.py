"""The whole pipeline with its lake on S3, behind a busy store and a bad network (reliability.md F-O1, F-O2)."""

from __future__ import annotations

import base64
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg2
import pytest
import yaml
from psycopg2 import sql
from pyspark.sql import SparkSession

from infra.local.endpoints import Endpoints
from replicator import cli, settings
from replicator import s3 as s3_client
from replicator.config.settingkeys import S3Keys
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.transforms.live import select_live
from tests.builders import envelope
from tests.contract.s3_proxy import FAULTS, S3Proxy
from tests.kafka import create, produce
from tests.objects import known_store

pytestmark = [pytest.mark.stack, pytest.mark.spark]

SHUT = ((["bronze"], ("/lake/bronze/", ".parquet")), (["bronze", "silver"], ("/lake/silver/", "_delta_log")))
"""Stages, and the words of the first PUT from which on the store answers nothing but 503, or 403."""
ENDS = {
    "slow_down": (3, "does not answer", "Status Code: 503"),
    "refused": (2, "denied access to the driver", "s3.access_key"),
}
"""The exit code of a run that meets this, and words of what it says."""
TOPIC, TABLE = "busy.shop.orders", "shop.orders"
LONG, NOTE_BYTES = 14, 600_000
"""So many orders have a note of so many bytes that nothing makes smaller: more than one part of an upload."""
HASTE = {"multipart.size": "5M", "connection.timeout": "2000", "attempts.maximum": "1", "retry.throttle.limit": "2"}
"""Of the object store's client: the smallest parts, and a patience for tests."""
SQL = "SELECT id AS order_key, customer, total, length(note) AS said FROM {orders}\n"
MODEL = {
    "key": ["order_key"],
    "inputs": {"orders": f"busy/{TABLE}"},
    "lineage": {"orders": ["order_key"]},
    "columns": {name: {"type": "integer"} for name in ("order_key", "customer", "total", "said")},
}


@dataclass
class Shop:
    """A source of one table: its rows as they stand, ``records`` of what is not sent yet, and how many ever were."""

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    records: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0

    def __post_init__(self) -> None:
        self._random, self._position = random.Random(8), 4

    def put(self, key: int, *, long: bool = False) -> None:
        note = base64.b64encode(self._random.randbytes(NOTE_BYTES * 3 // 4)).decode() if long else f"note {key}"
        row = {"id": key, "customer": key % 7, "total": self._random.randrange(1000), "note": note}
        self._change("u" if key in self.rows else "c", key, row)
        self.rows[key] = row

    def drop(self, key: int) -> None:
        self._change("d", key, None, self.rows.pop(key))

    def deliver(self, kafka: str) -> None:
        produce(kafka, TOPIC, self.records)
        self.sent, self.records = self.sent + len(self.records), []

    @property
    def served(self) -> list[tuple[int, int, int, int]]:
        """The model's rows."""
        return sorted((row["id"], row["customer"], row["total"], len(row["note"])) for row in self.rows.values())

    def _change(self, op: str, key: int, after: Any, before: Any = None) -> None:
        self._position += 4
        change = envelope(op, after, before and {"id": key}, self._position, TABLE, name="busy")
        self.records.append((json.dumps({"id": key}), json.dumps(change)))


@dataclass(frozen=True)
class World:
    """A lake behind the proxy, on the stack's servers."""

    conf: Path
    bucket: str
    proxy: S3Proxy
    endpoints: Endpoints
    schema: str

    def at(self, environment: str = "busy") -> tuple[str, ...]:
        return ("--conf", str(self.conf), "--env", environment)

    @property
    def lake(self) -> Lake:
        return Lake(f"s3a://{self.bucket}/lake")

    def store(self) -> Any:
        """The server itself, without the proxy."""
        return s3_client.client(_keys(self.endpoints, self.endpoints.s3.endpoint))

    def published(self) -> list[tuple[Any, ...]]:
        at = self.endpoints.postgres
        with (
            closing(
                psycopg2.connect(host=at.host, port=at.port, user=at.user, password=at.password, dbname=at.database)
            ) as session_,
            session_.cursor() as cursor,
        ):
            cursor.execute(
                sql.SQL("SELECT order_key, customer, total, said FROM {} ORDER BY 1").format(
                    sql.Identifier(self.schema, "orders")
                )
            )
            return cursor.fetchall()


def _keys(endpoints: Endpoints, endpoint: str) -> S3Keys:
    store = endpoints.s3
    return S3Keys.model_validate(
        {"endpoint": endpoint, "access_key": store.access_key, "secret_key": store.secret_key, "path_style": True}
    )


def _configuration(world: World) -> dict[str, Any]:
    postgres, store = world.endpoints.postgres, world.endpoints.s3
    login = {name: getattr(postgres, name) for name in ("host", "port", "database", "user", "password")}
    keys = {"access_key": store.access_key, "secret_key": store.secret_key}
    columns = {"id": "int", "customer": "int", "total": "int", "note": "string"}
    target = {"target": "warehouse", "schema": world.schema, "table": "orders"}
    return {
        "base.yaml": {
            "lake": {"root": world.lake.root},
            "kafka": {"bootstrap_servers": world.endpoints.kafka},
            "s3": {"endpoint": world.proxy.endpoint, "path_style": True, **keys},
            "targets": {"warehouse": {**login, "sslmode": "disable"}},
            "spark": {f"spark.hadoop.fs.s3a.{key}": value for key, value in HASTE.items()},
        },
        "busy.yaml": {},
        "shut.yaml": {"lake": {"lease": "off"}},
        "sources/busy.yaml": {"name": "busy", "tables": {TABLE: {"keys": ["id"], "columns": columns}}},
        "models/order_totals.yaml": {**MODEL, "publish": target},
    }


@pytest.fixture
def world(spark: SparkSession, endpoints: Endpoints, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """The JVM of the tests knows the store by the name of its bucket: as a session of the product would."""
    share = request.config.getoption("--s3-faults")
    with S3Proxy(endpoints.s3.endpoint, share, seed=int(share * 1000)) as proxy:
        world = World(tmp_path, f"busy-{uuid4().hex[:12]}", proxy, endpoints, f"busy_{uuid4().hex[:12]}")
        for name, content in _configuration(world).items():
            path = world.conf / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(yaml.safe_dump(content), encoding="utf-8")
        (world.conf / "models/order_totals.sql").write_text(SQL, encoding="utf-8")
        world.store().create_bucket(Bucket=world.bucket)
        known_store(spark, settings.load(world.conf, "busy", {}), world.bucket)
        yield world


def ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of our program, and what it says on stderr."""
    monkeypatch.setattr("sys.argv", ["replicator", *arguments])
    with pytest.raises(SystemExit) as over:
        cli.main()
    return int(over.value.code or 0), capsys.readouterr().err


def equal(spark: SparkSession, world: World, shop: Shop) -> None:
    """Bronze has every record once; silver, gold and Postgres are the source."""
    at = DeltaFormat()
    places = [tuple(row) for row in at.read(spark, world.lake.bronze("busy")).select("partition", "offset").collect()]
    assert sorted(places) == [(0, offset) for offset in range(shop.sent)]
    silver = select_live(at.read(spark, world.lake.silver("busy", TABLE))).collect()
    assert {row["id"]: row.asDict() for row in silver} == shop.rows
    gold = at.read(spark, world.lake.gold("order_totals")).select("order_key", "customer", "total", "said").collect()
    assert sorted(map(tuple, gold)) == shop.served
    assert world.published() == shop.served


def stored(world: World) -> Mapping[str, str]:
    """The ETags of all objects by their keys."""
    pages = world.store().get_paginator("list_objects_v2").paginate(Bucket=world.bucket)
    return {each["Key"]: each["ETag"].strip('"') for page in pages for each in page.get("Contents", ())}


def refused(
    world: World, stages: list[str], words: tuple[str, ...], by: str, run: Callable[..., tuple[int, str]]
) -> None:
    """A run that meets 503, or 403, and nothing else from such a PUT on: exit code 3, or 2, and one sentence. Without
    leases, which could not be given back and would be waited for: their holder, this process, goes on to live.
    """
    world.proxy.close_at(*words, by=by)
    code, told = run("run", *stages, *world.at("shut"))
    assert (world.proxy.is_closed, code) == (True, ENDS[by][0]), told
    [error] = [line for line in told.splitlines() if line.startswith("error: ")]
    assert all(word in error for word in ENDS[by][1:]), error
    world.proxy.open()


def in_parts(world: World) -> None:
    """The stream's checkpoint is in the bucket, and files of bronze and silver that went up in two parts."""
    objects = stored(world)
    checkpoint = {key.split("/")[4] for key in objects if key.startswith("lake/_replicator/checkpoints/busy/")}
    assert checkpoint >= {"commits", "offsets"}
    large = [key for key, tag in objects.items() if tag.endswith("-2")]
    assert {key.split("/")[1] for key in large} == {"bronze", "silver"}
    assert set(world.proxy.uploads) == {2}


def test_a_lake_on_a_busy_store_ends_equal_and_one_that_stays_shut_is_told(
    spark: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """503s, 500s, lost answers, cut objects and a stalled connection are survived, uploads in parts and the stream's
    checkpoint among them. 503s that do not end are exit code 3 with one sentence, in bronze's stream and in silver's
    commit; then the next run goes on where the last one was.
    """
    shop, proxy, laps = Shop(), world.proxy, [time.monotonic()]
    run = partial(ended, monkeypatch, capsys)
    create(world.endpoints.kafka, TOPIC)
    for key in range(60):
        shop.put(key, long=key < LONG)
    shop.drop(50)
    shop.deliver(world.endpoints.kafka)
    assert run("run", *world.at())[0] == 0
    laps.append(time.monotonic())
    equal(spark, world, shop)
    for key in (3, 20, 70):
        shop.put(key)
    shop.drop(4)
    shop.deliver(world.endpoints.kafka)
    share, proxy.share = proxy.share, 0.0
    for (stages, words), by in product(SHUT, ENDS):
        refused(world, stages, words, by, run)
        laps.append(time.monotonic())
    proxy.share = share
    assert run("run", *world.at())[0] == 0
    laps.append(time.monotonic())
    equal(spark, world, shop)
    in_parts(world)
    assert all(proxy.faults[each] for each in (*FAULTS, "stalled")), proxy.faults
    seconds = ", ".join(f"{end - begin:.0f}" for begin, end in pairwise(laps))
    sys.stdout.write(
        f"\n{proxy.requests:,} requests, {share:.0%} faulty: {dict(proxy.faults)}; {proxy.retries:,} asked again; "
        f"{len(proxy.uploads)} uploads in parts; "
        f"seconds of the whole, shut four times, whole: {seconds}; all layers equal\n"
    )
