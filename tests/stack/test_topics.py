"""Live topics: looked at, asked, and written for others, against a real Kafka."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from infra.local import Stack
from replicator.debezium.event_reader import StartingOffset
from replicator.debezium.record_masking import REDACTED
from replicator.errors import LoginRefused, ReplicatorError, Unreachable
from replicator.formats.delta import DeltaFormat
from replicator.jvm import gateway
from replicator.jvm.jvm_options import SHORT_LIVED
from replicator.lake import Lake
from replicator.sources import librdkafka
from replicator.sources.consumer import Topic
from replicator.sources.kafka import KafkaSource
from replicator.stages.bronze import Ingestion
from replicator.stages.ingest.bronze_stream import ingest_stream
from replicator.transforms.table_transform.hashing import digest
from tests.builders import envelope, wrapped
from tests.cli import said
from tests.kafka import consumed, create, produce

pytestmark = [pytest.mark.stack, pytest.mark.spark]

TOPIC = "shop.db.orders"
MONEY = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}, {**MONEY, "field": "total"}]},
        {"field": "op", "type": "string"},
    ],
}
CONFIGURATION = f"""
lake: {{{{root: {{lake}}, lease: off}}}}
kafka: {{{{bootstrap_servers: "{{kafka}}"}}}}
dead_letter: {{{{max_share: 1.0}}}}
spark: {{{{spark.master: "local[2]", spark.driver.extraJavaOptions: {SHORT_LIVED}}}}}
"""
FEED = """
topic: {topic}
table: shop/db.orders
select: {{order_id: id, total: total}}
tombstones: true
"""

MASKED = """
name: {prefix}
hash_key: ${{TOPICS_HASH_KEY}}
mask_before_bronze: {{db.people: {{hash: [email], drop: [ssn]}}}}
tables: {{db.people: {{keys: [email], columns: {{email: string, name: string}}}}}}
"""


def change(op: str, after: Any, before: Any = None, pos: int = 4) -> str:
    return json.dumps(wrapped(envelope(op, after, before, pos, "db.orders", name="shop"), SCHEMA))


RECORDS = [
    ('{"id":1}', change("c", {"id": 1, "total": "BOI="})),
    ('{"id":1}', change("u", {"id": 1, "total": "BPY="}, {"id": 1, "total": "BOI="}, 8)),
    ('{"id":2}', "{"),
    ('{"id":1}', change("d", None, {"id": 1, "total": "BPY="}, 12)),
    ('{"id":1}', None),
]


@pytest.fixture
def conf(broker: str, tmp_path: Path) -> Path:
    """A source and a feed on topics of their own."""
    prefix = f"t{uuid4().hex[:8]}"
    written = {
        "topics.yaml": CONFIGURATION.format(lake=tmp_path / "lake", kafka=broker),
        "sources/shop.yaml": f"name: shop\ntopics: {prefix}[.]{TOPIC}\n",
        "canonical/orders.yaml": FEED.format(topic=f"{prefix}.cdm"),
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    create(broker, f"{prefix}.{TOPIC}")
    produce(broker, f"{prefix}.{TOPIC}", RECORDS)
    (tmp_path / "prefix").write_text(prefix, encoding="utf-8")
    return tmp_path


def test_a_live_topic_is_looked_at_and_asked(spark: SparkSession, broker: str, conf: Path) -> None:
    """``tail`` and ``sql --topic``: readable values, what is no change is said; with the configuration or the address
    alone; the end is the end of then.
    """
    topic = f"{(conf / 'prefix').read_text()}.{TOPIC}"
    ours = "--conf", str(conf), "--env", "topics"
    assert said("tail", topic, "--from", "1", *ours).splitlines() == [
        "0/1  u  db.orders  id=1  total: 12.50 → 12.70  (file 1, pos 8)",
        "0/2  malformed JSON  id=2",
        "0/3  d  db.orders  id=1  total=12.70  (file 1, pos 12)",
        "0/4  tombstone  id=1",
    ]
    [last] = map(json.loads, said("tail", topic, "--from", "-1", "--json", "--brokers", broker).splitlines())
    assert (last["offset"], last["note"], last["key"]) == (4, "tombstone", {"id": 1})
    query = "SELECT _offset, total, _op FROM orders ORDER BY _seq"
    assert said("sql", query, "--topic", topic, "--format", "csv", *ours).splitlines() == [
        "_offset,total,_op", "0,12.50,c", "1,12.70,u", "3,,d",
    ]  # fmt: skip
    assert "  db.orders: {} # 3 records, which carry their types" in said("schema", "infer", topic, *ours).splitlines()
    seven = [f'{{"id": {number}, "message": "hi"}}' for number in (1, 2, 3, 4, 5, 6, 6)]
    create(broker, messages := f"{topic}.test_json_topic")
    produce(broker, messages, [(None, text) for text in seven])
    counted = "SELECT count(*) AS n, count(DISTINCT value) AS d FROM records"
    told = said("sql", counted, "--topic", messages, "--brokers", broker, "--format", "csv")
    assert told.splitlines() == ["n,d", "7,6"]


def test_a_new_project_runs_as_it_is(
    spark: SparkSession, broker: str, conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`init` and the address of Kafka are all that the tables of a connector need; those of one whose name only ends
    so are not read.
    """
    prefix = (conf / "prefix").read_text()
    project = tmp_path / "project"
    said("init", str(project), "--source", prefix)
    monkeypatch.setenv("KAFKA_BOOTSTRAP", broker)
    monkeypatch.chdir(project)
    produce(broker, f"{prefix}.{TOPIC}", [('{"id":2}', change("c", {"id": 2, "total": "BOI="}, pos=16))])
    create(broker, other := f"x{prefix}.{TOPIC}")
    produce(broker, other, [('{"id":3}', change("c", {"id": 3, "total": "BOI="}, pos=16))])
    said("run")
    assert said("sql", "SELECT * FROM orders", "--format", "csv").splitlines() == ["id,total", "2,12.50"]
    kept = spark.read.format("delta").load(f"{project}/lake/bronze/{prefix}")
    assert {row["topic"] for row in kept.collect()} == {f"{prefix}.{TOPIC}"}


def test_topics_begin_and_end_where_both_clients_say(spark: SparkSession, broker: str, conf: Path) -> None:
    """Java's and librdkafka's, of every partition; ``status`` needs no Spark for it."""
    prefix = (conf / "prefix").read_text()
    create(broker, f"{prefix}.three", partitions=3)
    produce(broker, f"{prefix}.three", [(str(number), "x") for number in range(20)])
    topics = f"{prefix}[.](three|{TOPIC})"
    found = librdkafka.end_offsets(broker, topics, {"security.protocol": "PLAINTEXT"})
    assert found == KafkaSource(broker, topics).end_offsets(spark)
    assert (len(found), sum(found.values())) == (4, 25)
    assert librdkafka.end_offsets(broker, "no such topic", {}) == {}
    place = TopicPartition(f"{prefix}.three", 0, found[f"{prefix}.three", 0])
    admin = AdminClient({"bootstrap.servers": broker})
    admin.delete_records([place])[place].result(timeout=30)
    firsts = librdkafka.first_offsets(broker, topics, {})
    assert firsts == KafkaSource(broker, topics).first_offsets(spark)
    assert {place: first for place, first in firsts.items() if first} == {(place.topic, 0): place.offset}


def test_what_comes_is_followed(spark: SparkSession, broker: str, conf: Path) -> None:
    """``--follow`` begins at the end, and shows what comes then."""
    topic = f"{(conf / 'prefix').read_text()}.{TOPIC}"
    feeding = threading.Timer(3, produce, (broker, topic, [('{"id":7}', None)] * 20))
    feeding.start()
    try:
        told = said("tail", topic, "--follow", "--limit", "1", "--brokers", broker).splitlines()
    finally:
        feeding.join()
    assert told == ["0/5  tombstone  id=7"]


def test_what_is_not_there_is_named(spark: SparkSession, broker: str, conf: Path) -> None:
    """Exit code 3, whether it is the topic or the broker, also by a name that no topic can have; to look makes none."""
    topic = f"{(conf / 'prefix').read_text()}.{TOPIC}"
    for end, *verb in (("x", "tail"), (" x", "tail"), ("x", "sql", "SELECT 1", "--topic")):
        with pytest.raises(Unreachable, match=f"topic .*{topic}{end}.* does not exist") as caught:
            said(*verb, f"{topic}{end}", "--brokers", broker)
        assert caught.value.exit_code == 3
    with pytest.raises(Unreachable, match="does not answer") as caught:
        said("tail", topic, "--brokers", "127.0.0.1:1")
    assert caught.value.where == "127.0.0.1:1"


def test_what_retention_takes_while_it_is_read_is_said(spark: SparkSession, broker: str, conf: Path) -> None:
    """Somebody's pager may wait for hours: Kafka answers, and has other records by then."""
    topic = f"{(conf / 'prefix').read_text()}.{TOPIC}"
    one_by_one = {"max.partition.fetch.bytes": "1", "max.poll.records": "1"}
    for number in range(5):
        produce(broker, topic, [(str(number), "{}")])
    records = Topic(topic, broker, one_by_one).records(gateway.of(spark), StartingOffset(offset=5), follow=True)
    assert next(records).offset == 5
    place = TopicPartition(topic, 0, 9)
    admin = AdminClient({"bootstrap.servers": broker})
    admin.delete_records([place])[place].result(timeout=30)
    with pytest.raises(ReplicatorError, match=f"Kafka deleted records of topic {topic} before they were read") as told:
        list(records)
    assert told.value.exit_code == 1


def test_a_broker_that_may_wait_for_more_bytes_is_not_let(spark: SparkSession, broker: str, conf: Path) -> None:
    """Options that suit batches: a wait longer than a request may take gave no record, and no end."""
    topic = f"{(conf / 'prefix').read_text()}.waiting"
    produce(broker, topic, [("k", "{}")])
    patient = {"fetch.min.bytes": "1000000", "fetch.max.wait.ms": "20000"}
    records = Topic(topic, broker, patient).records(gateway.of(spark), StartingOffset(), follow=False)
    assert [each.offset for each in records] == [0]


def test_a_kafka_that_falls_silent_while_it_is_read_ends_the_reading(
    spark: SparkSession, stack: Stack, broker: str, conf: Path
) -> None:
    """Its client would ask again for ever, without a word."""
    topic = f"{(conf / 'prefix').read_text()}.{TOPIC}"
    one_by_one = {"max.partition.fetch.bytes": "1", "max.poll.records": "1"}
    produce(broker, topic, [("k", "{}")])
    records = Topic(topic, broker, one_by_one).records(gateway.of(spark), StartingOffset(), follow=False)
    assert next(records).offset == 0
    [pid] = [each.pid for each in stack.status() if each.name == "kafka" and each.pid]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable, match="Kafka does not answer"):
            list(records)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_is_masked_before_bronze_rests_nowhere(
    spark: SparkSession, broker: str, conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a broker's topic over two runs: keys, both images, tombstones, the headers of a moved key, what is no JSON;
    and rows find each other by their hashes.
    """
    monkeypatch.setenv("TOPICS_HASH_KEY", secret := "the key of hashed columns")
    prefix = f"{(conf / 'prefix').read_text()}masked"
    topic, ours, lake = f"{prefix}.db.people", ("--conf", str(conf), "--env", "topics"), conf / "lake"
    (conf / "sources" / "shop.yaml").write_text(MASKED.format(prefix=prefix), encoding="utf-8")
    (conf / "canonical" / "orders.yaml").unlink()

    def person(email: str, name: str) -> dict[str, str]:
        return {"email": f"{email}@example.org", "ssn": "078-05", "name": name}

    def key(email: str) -> str:
        return json.dumps({"email": f"{email}@example.org"})

    def told(op: str, after: Any, before: Any, pos: int) -> str:
        return json.dumps(wrapped(envelope(op, after, before, pos, "db.people", name=prefix)))

    def run(*records: tuple[str, str | None], **headers: str) -> None:
        produce(broker, topic, records, headers or None)

    create(broker, topic)
    run(
        (key("ann"), told("c", person("ann", "Ann"), None, 4)),
        (key("bob"), told("c", person("bob", "Bob"), None, 8)),
        (key("ann"), '{"email": "ann@example.org"'),
    )
    run((key("ann"), told("d", None, person("ann", "Ann"), 12)), **{"__debezium.newkey": key("anna")})
    run((key("ann"), None))
    run((key("anna"), told("c", person("anna", "Anna"), None, 16)), **{"__debezium.oldkey": key("ann")})
    said("run", "bronze", "silver", *ours)
    run((key("bob"), told("u", person("bob", "Bobby"), person("bob", "Bob"), 20)))
    said("run", "bronze", "silver", *ours)
    rows = said("sql", "SELECT email, name FROM people ORDER BY name", "--format", "csv", *ours).splitlines()
    hashes = {name: digest(secret, f"{name}@example.org") for name in ("ann", "anna", "bob")}
    assert rows == ["email,name", f"{hashes['anna']},Anna", f"{hashes['bob']},Bobby"]
    kept = spark.read.format("delta").load(str(lake / "bronze" / prefix)).orderBy("offset").collect()
    assert [json.loads(row["key"])["email"] for row in kept] == [
        hashes[name] for name in ("ann", "bob", "ann", "ann", "ann", "anna", "bob")
    ]
    assert [json.loads(pair["value"]) for row in kept for pair in row["headers"] or ()] == [
        {"email": hashes["anna"]}, {"email": hashes["ann"]},
    ]  # fmt: skip
    assert [row["offset"] for row in kept if row["value"] == REDACTED] == [2]
    assert [word for word in ("@example.org", "078-05", secret) if word in str(kept)] == []
    files = [file for file in lake.rglob("*") if file.is_file() and file.suffix != ".parquet"]
    assert [file for file in files for word in (b"@example.org", b"078-05") if word in file.read_bytes()] == []
    shown = said("tail", topic, "--from", "beginning", *ours)
    assert "name=Anna" in shown
    assert "example.org" not in shown


def test_changes_arrive_in_the_canonical_topic(spark: SparkSession, broker: str, conf: Path) -> None:
    """Kafka to Kafka: no topic, exit 3; with one, events and a tombstone under the key; nothing twice without a reason,
    and the schema is told.
    """
    ours = "--conf", str(conf), "--env", "topics"
    topic, target = (f"{(conf / 'prefix').read_text()}.{name}" for name in (TOPIC, "cdm"))
    produce(broker, topic, [('{"id":4}', change("c", {"id": 4, "total": "BOI="}, pos=16))])
    stopped = {line["stage"]: line["error"] for line in json.loads(said("run", "--json", *ours, code=3))}
    assert target in stopped.pop("canonical")
    assert set(stopped.values()) == {None}
    create(broker, target, partitions=3)
    produce(broker, topic, [('{"id":3}', change("c", {"id": 3, "total": "BPY="}, pos=20))])
    lines = {line["stage"]: line for line in json.loads(said("run", "--json", *ours))}
    assert (lines["canonical"]["table"], lines["canonical"]["applied"]) == ("orders", 2)
    events = {key: (json.loads(value or ""), dict(headers)) for key, value, headers in consumed(broker, target)}
    assert {key: (event["op"], event["after"]) for key, (event, _) in events.items()} == {
        '{"order_id":4}': ("read", {"order_id": 4, "total": "12.50"}),
        '{"order_id":3}': ("create", {"order_id": 3, "total": "12.70"}),
    }
    assert all(headers["ce_id"].decode() == event["id"] for event, headers in events.values())
    produce(broker, topic, [('{"id":3}', change("d", None, {"id": 3, "total": "BPY="}, 24))])
    said("run", *ours)
    assert "canonical" not in said("run", "--json", *ours)
    of_three = [value is None for key, value, _ in consumed(broker, target) if key == '{"order_id":3}']
    assert of_three == [False, False, True]
    [told] = json.loads(said("canonical", "list", "--json", *ours))
    assert told["sent_up_to"] == told["newest"]
    schema = json.loads(said("canonical", "schema", "orders", *ours))
    assert schema["properties"]["key"]["properties"] == {"order_id": {"type": "integer"}}
    shown = [line.partition("  ")[2] for line in said("tail", target, "--from", "beginning", *ours).splitlines()]
    assert "create  orders  order_id=3  total=12.70" in shown
    assert len(shown) == 4
    said("canonical", "restart", "orders", *ours)
    [told] = json.loads(said("canonical", "list", "--json", *ours))
    assert told["sent_up_to"] is None


@pytest.mark.parametrize("once", [True, False])
def test_a_stream_that_kafka_lets_not_in_says_so(spark: SparkSession, broker: str, tmp_path: Path, once: bool) -> None:
    """Exit code 2, in Kafka's own words: of a run that goes on, too, whose stream is the first to ask."""
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hidden";'
    options = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    at = Ingestion("s", KafkaSource(broker, "s[.].*", options), DeltaFormat(), Lake(str(tmp_path)))
    with pytest.raises(LoginRefused, match=r"Kafka refused the client: .*PLAIN") as caught:
        ingest_stream(spark, at, once=once).finish()
    assert "hidden" not in str(caught.value)
