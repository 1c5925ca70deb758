"""``replicator schema avro``: write the schema of a topic's values as an Avro schema, for tools that need one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import console, options, topics
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from replicator.debezium.event_reader import KafkaRecord


def avro(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="A file of recorded events, or a topic.", metavar="WHAT")],
    topic: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--topic", help="For a file with several topics: which one.", metavar="TOPIC"),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", min=1, help="Read the first N records of a file, the newest N of each partition.", metavar="N"
        ),
    ] = 10_000,
    brokers: options.Brokers = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Print the Avro schema (.avsc) of a topic's values, from the schema block of the newest record that was read."""
    from replicator.debezium.avro_schema import avro_schema

    block = _newest_schema(topics.sample_records(context, what, limit, brokers, env, conf), topic, what)
    console.print_text(json.dumps(avro_schema(block), indent=2, ensure_ascii=False))


def _newest_schema(records: Iterable[KafkaRecord], topic: str | None, where: str) -> Mapping[str, Any]:
    """Return the schema block of the newest record that has one. Raises ConfigError where none has, or where records of
    several topics have one.
    """
    from replicator.debezium.record_payload import schema_block

    found: dict[str, tuple[tuple[int, int], Mapping[str, Any]]] = {}
    for record in records:
        block = schema_block(record.value)
        age = (record.timestamp or 0, record.offset)
        if block is not None and topic in (None, record.topic) and age >= found.get(record.topic, (age, {}))[0]:
            found[record.topic] = (age, block)
    if len(found) > 1:
        raise ConfigError(
            f"records of several topics have a schema block: {', '.join(sorted(found))}",
            where=where,
            fix="Choose one with --topic.",
        )
    if not found:
        fix = "Let the connector send one (`value.converter.schemas.enable: true`), if only for one record."
        what = "no record has a schema block" if topic is None else f"no record of {topic} has a schema block"
        raise ConfigError(what, where=where, fix=fix)
    return next(iter(found.values()))[1]
