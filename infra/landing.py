"""A topic's records as objects, as a sink connector lays them down: ``python -m infra.landing`` (docs/objects.md).

No Kafka Connect sink in a public registry divides records by the values of columns, so this one stands in for it. The
layout is that of ``replicator/landing_objects.py``; like those sinks it writes payloads only, and no nulls.

Exactly once by naming: an object is called by the offset of its last record, so what a folder holds says how far its
records are landed, and a run that begins again goes on behind that.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import boto3
from botocore.config import Config
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from infra.local.ending import exit_code_of
from replicator import environment as variables
from replicator.errors import ConfigError, Unreachable

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The folder of a NULL, as Hive calls it."""

FLUSH_COUNT = 50
"""Records of one folder that make an object full."""

_NAME = re.compile(r"(?:(.*)/)?([^/]+)\((\d+)_(\d+)\)\.json")
_QUIET_SECONDS = 10.0

Reached = Mapping[tuple[str, str, int], int]
"""The greatest landed offset of each folder, topic and partition; to what a killed run left hidden, its dot is one of
the topic.
"""


@dataclass(frozen=True)
class Record:
    """A Kafka record, as far as it is landed."""

    topic: str
    partition: int
    offset: int
    value: str | None


@dataclass(frozen=True)
class Object:
    """A name below the target, and its text."""

    name: str
    text: str


def objects(
    records: Iterable[Record], partition_by: Sequence[str], reached: Reached, flush_count: int = FLUSH_COUNT
) -> Iterator[Object]:
    """What is to be landed of records in the order of their partitions; the last object of a folder may not be full."""
    open_: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        payload = _payload(record.value)
        if payload is None:
            continue
        at = _folder(payload, partition_by), record.topic, record.partition
        if record.offset <= reached.get(at, -1):
            continue
        open_.setdefault(at, []).append(record)
        if len(open_[at]) == flush_count:
            yield _object(at[0], open_.pop(at))
    for (folder, *_), held in open_.items():
        yield _object(folder, held)


def reached(names: Iterable[str]) -> Reached:
    """How far the objects of these names go."""
    found: dict[tuple[str, str, int], int] = {}
    for match in filter(None, map(_NAME.fullmatch, names)):
        at = match[1] or "", match[2], int(match[3])
        found[at] = max(found.get(at, -1), int(match[4]))
    return found


class Store(Protocol):
    """Where objects go."""

    def names(self) -> Iterable[str]:
        """What is there, below the target."""

    def put(self, each: Object) -> None:
        """Make an object appear as a whole."""


@dataclass(frozen=True)
class Folder:
    """A local folder."""

    root: Path

    def names(self) -> Iterator[str]:
        """Every file."""
        return (str(file.relative_to(self.root)) for file in self.root.rglob("*.json"))

    def put(self, each: Object) -> None:
        """Under a hidden name first."""
        file = self.root / each.name
        file.parent.mkdir(parents=True, exist_ok=True)
        hidden = file.with_name(f".{file.name}")
        hidden.write_text(each.text, encoding="utf-8", newline="")
        hidden.rename(file)


@dataclass(frozen=True)
class Bucket:
    """A prefix of a bucket."""

    client: Any
    bucket: str
    prefix: str

    def names(self) -> Iterator[str]:
        """Every key below the prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=f"{self.prefix}/")
        return (each["Key"][len(self.prefix) + 1 :] for page in pages for each in page.get("Contents", ()))

    def put(self, each: Object) -> None:
        """In one request."""
        key = f"{self.prefix}/{each.name}"
        self.client.put_object(Bucket=self.bucket, Key=key, Body=each.text.encode())


def land(records: Iterable[Record], store: Store, partition_by: Sequence[str], flush_count: int = FLUSH_COUNT) -> int:
    """Land what is not there yet; how many objects that made."""
    made = 0
    for each in objects(records, partition_by, reached(store.names()), flush_count):
        store.put(each)
        made += 1
    return made


def records(bootstrap_servers: str, topic: str) -> Iterator[Record]:
    """All records of a topic up to its present end. Raises Unreachable, also where there is no such topic."""
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": "landing", "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": True, "log_level": 0})
    with closing(consumer):
        try:
            for partition in _partitions(consumer, topic):
                yield from _records_of(consumer, topic, partition)
        except KafkaException as error:
            raise Unreachable(f"Kafka gives no records of {topic}: {error.args[0]}", where=bootstrap_servers) from error


def _partitions(consumer: Consumer, topic: str) -> Sequence[int]:
    found = consumer.list_topics(topic, timeout=_QUIET_SECONDS).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return sorted(found.partitions)


def _records_of(consumer: Consumer, topic: str, partition: int) -> Iterator[Record]:
    """To the end: behind the last record there may be markers of transactions, which take offsets."""
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_QUIET_SECONDS)
    consumer.assign([TopicPartition(topic, partition, first)])
    position = first
    while position < end:
        message = consumer.poll(_QUIET_SECONDS)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - its own name
        error, offset, text = message.error(), message.offset(), message.value()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - as above
            return
        if error is not None or offset is None:
            raise KafkaException(error)
        yield Record(topic, partition, offset, None if text is None else text.decode())
        position = offset + 1


def store(target: str, environment: Mapping[str, str]) -> Store:
    """The store behind ``s3a://bucket/prefix`` or ``s3://`` (endpoint and keys of the stack's variables), or a folder.

    Raises ConfigError for another scheme.
    """
    scheme, found, place = target.partition("://")
    if not found:
        return Folder(Path(target))
    if scheme not in ("s3", "s3a"):
        raise ConfigError(f"records cannot be landed in {scheme}://", where=target, fix="Name s3a:// or a folder.")
    bucket, _, prefix = place.partition("/")
    client = boto3.client(
        "s3",
        endpoint_url=environment.get("S3_ENDPOINT"),
        aws_access_key_id=environment.get("S3_ACCESS_KEY"),
        aws_secret_access_key=environment.get("S3_SECRET_KEY"),
        region_name=environment.get("AWS_REGION", "us-east-1"),
        config=Config(s3={"addressing_style": "path"}),
    )
    return Bucket(client, bucket, prefix.rstrip("/"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Land a topic once, or again and again; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.landing", description="Land a topic's records as objects.")
    parser.add_argument("topic")
    parser.add_argument("target", help="s3a://bucket/prefix, or a folder")
    parser.add_argument("--partition-by", required=True, help="columns, with commas", metavar="A,B")
    parser.add_argument("--flush-count", type=int, default=FLUSH_COUNT, help="records that make an object full")
    parser.add_argument("--every", type=float, metavar="SECONDS", help="go on, and look this often")
    parser.add_argument("--bootstrap-servers", default=os.environ.get("KAFKA_BOOTSTRAP", "127.0.0.1:9092"))
    told = parser.parse_args(arguments)
    variables.bypass_proxy_for_localhost()
    return exit_code_of(lambda: _land_topic(told), prefix="error: ")


def _land_topic(told: argparse.Namespace) -> None:
    target, columns = store(told.target, os.environ), told.partition_by.split(",")
    while True:
        made = land(records(told.bootstrap_servers, told.topic), target, columns, told.flush_count)
        print(f"{made} objects landed in {told.target}", file=sys.stderr)
        if told.every is None:
            return
        time.sleep(told.every)


def _payload(value: str | None) -> dict[str, Any] | None:
    """The row; a converter's wrapper is taken off. None for what is no row."""
    row = None if value is None else json.loads(value)
    if isinstance(row, dict) and set(row) == {"schema", "payload"}:
        row = row["payload"]
    return row if isinstance(row, dict) else None


def _folder(payload: Mapping[str, Any], partition_by: Sequence[str]) -> str:
    return "/".join(f"{column}={_text(payload.get(column))}" for column in partition_by)


def _text(value: Any) -> str:
    return NO_VALUE if value is None else str(value).replace("/", "-")


def _object(folder: str, held: Sequence[Record]) -> Object:
    last = held[-1]
    name = f"{last.topic}({last.partition}_{last.offset}).json"
    return Object("/".join(filter(None, (folder, name))), "".join(f"{_line(each.value or '')}\n" for each in held))


def _line(value: str) -> str:
    """The payload as it was sent where that is one line: numbers keep their digits."""
    if "\n" not in value and "schema" not in json.loads(value):
        return value
    return json.dumps(_payload(value), ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
