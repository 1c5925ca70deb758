"""``replicator aws render``: files for clients of MSK, each of one source's definition and of one login."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from replicator.settings import Settings
    from replicator.spec import SourceSpec


class Part(str, Enum):
    """For whom."""

    spark = "spark"
    client = "client"
    worker = "worker"
    ui = "ui"
    connector = "connector"
    sink = "sink"


def render(
    part: Annotated[Part, typer.Argument(help="spark, client, worker, ui, connector or sink.", metavar="PART")],
    connector: Annotated[
        Optional[Path],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--file", help="With connector: its configuration, ${NAME} where it differs.", metavar="FILE"),
    ] = None,
    values: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option("--set", help="With connector: a value for ${NAME}.", metavar="NAME=VALUE"),
    ] = None,
    bucket: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option("--bucket", help="With sink: where objects go, BUCKET/PREFIX.", metavar="NAME"),
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
        text = _text(part, configured, source, connector, values or [])
    console.print_text(text.rstrip("\n"))


def _text(part: Part, configured: Settings, source: str | None, file: Path | None, values: Iterable[str]) -> str:
    from replicator.aws import msk

    if part is Part.spark:
        return msk.properties(msk.spark())
    if part is Part.client:
        return msk.properties(msk.IAM)
    if part is Part.worker:
        return msk.properties(msk.worker(_region(configured)))
    if part is Part.ui:
        return msk.properties(msk.ui(_source(configured, source).bootstrap_servers))
    return json.dumps(_connector(configured, _source(configured, source), file, values), indent=2)


def _connector(configured: Settings, source: SourceSpec, file: Path | None, values: Iterable[str]) -> Mapping[str, str]:
    from replicator.aws import msk
    from replicator.connect import template

    if file is None:
        raise ConfigError("--file FILE says which connector", mend="infra/aws/connect has two.")
    known = {"SOURCE": source.name, "KAFKA_BOOTSTRAP": source.bootstrap_servers, "REGION": _region(configured)}
    if source.database is not None:
        at = source.database
        known |= {"DATABASE_HOST": at.host, "DATABASE_PORT": str(at.port), "DATABASE_NAME": at.dbname}
    pairs = [each.partition("=") for each in values]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ConfigError(f"--set {wrong[0]!r} is no NAME=VALUE")
    return msk.connector(template.fill(file, known | {name: value for name, _, value in pairs}))


def _sink(configured: Settings, source: SourceSpec, bucket: str | None) -> Mapping[str, str]:
    from replicator.aws import msk, sink

    name, _, prefix = (bucket or "").partition("/")
    if not name or not prefix:
        raise ConfigError("--bucket BUCKET/PREFIX says where the sink puts objects")
    tables = {table.table: table.partition_by for table in source.tables}
    return msk.connector(sink.landing(source.name, tables, name, prefix, _region(configured)))


def _region(configured: Settings) -> str:
    if not configured.aws.region:
        raise ConfigError("aws.region is not set, and what is rendered has to name it")
    return configured.aws.region


def _source(configured: Settings, name: str | None) -> SourceSpec:
    """The source of that name, or the only one. Raises ConfigError."""
    if name is not None:
        return configured.source(name)
    if len(configured.sources) != 1:
        raise ConfigError("there is more than one source, or none: --source NAME says which")
    return configured.sources[0]
