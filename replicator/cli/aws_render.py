"""``replicator aws render``: configuration files for clients of MSK, each from the definition of one source."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replicator.settings import Settings
    from replicator.spec import SourceSpec


class Part(str, Enum):
    """The kinds of clients."""

    spark = "spark"
    client = "client"
    worker = "worker"
    ui = "ui"
    connector = "connector"
    sink = "sink"


def render(
    part: Annotated[Part, typer.Argument(help="spark, client, worker, ui, connector or sink.", metavar="PART")],
    bucket: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--bucket", help="With sink: where objects are written, BUCKET/PREFIX.", metavar="NAME"),
    ] = None,
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Print a file: options of Spark's Kafka reader, of Kafka's own tools, a worker of MSK Connect, Kafka UI's
    environment, or the configuration of a source's connector or sink.
    """
    configured = options.settings(env, conf)
    if part is Part.sink:
        text = json.dumps(_sink(configured, _source(configured, source), bucket), indent=2)
    else:
        text = _text(part, configured, source)
    console.print_text(text.rstrip("\n"))


def _text(part: Part, configured: Settings, source: str | None) -> str:
    from replicator.aws import msk

    if part is Part.spark:
        return msk.properties(msk.spark_options())
    if part is Part.client:
        return msk.properties(msk.IAM)
    if part is Part.worker:
        return msk.properties(msk.worker_config(_region(configured)))
    if part is Part.ui:
        return msk.properties(msk.kafka_ui_environment(_source(configured, source).bootstrap_servers))
    return json.dumps(_connector(_source(configured, source)), indent=2)


def _connector(source: SourceSpec) -> Mapping[str, str]:
    from replicator.aws import msk
    from replicator.connect.configuration import configuration

    if source.connector is None:
        fix = "Write a `connector` block into its file in conf/sources."
        raise ConfigError(f"the source {source.name} does not describe how it is captured", fix=fix)
    return msk.connector_config(configuration(source.connector))


def _sink(configured: Settings, source: SourceSpec, bucket: str | None) -> Mapping[str, str]:
    from replicator.aws import msk, s3_sink

    name, _, prefix = (bucket or "").partition("/")
    if not name or not prefix:
        raise ConfigError("--bucket BUCKET/PREFIX, where the sink writes objects, is required")
    tables = {table.table: table.partition_by for table in source.tables}
    return msk.connector_config(s3_sink.connector_config(source.name, tables, name, prefix, _region(configured)))


def _region(configured: Settings) -> str:
    if not configured.aws.region:
        raise ConfigError("aws.region is not set, but the rendered file needs it")
    return configured.aws.region


def _source(configured: Settings, name: str | None) -> SourceSpec:
    """Return the source of that name, or the only one. Raises ConfigError."""
    if name is not None:
        return configured.source(name)
    if len(configured.sources) != 1:
        raise ConfigError("there is more than one source, or none: choose with --source NAME")
    return configured.sources[0]
