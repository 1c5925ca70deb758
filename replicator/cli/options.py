"""The options that verbs share."""

from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional, TypeVar

import typer

from replicator.errors import ConfigError, ReplicatorError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from replicator.catalog.store import Store
    from replicator.lake import Lake
    from replicator.protocols import Fence
    from replicator.settings import Settings
    from replicator.spec import SourceSpec
    from replicator.stages.refinement import Refinement

Name = TypeVar("Name", str, tuple[str, int])
Value = TypeVar("Value")

Env = Annotated[
    str,
    typer.Option(
        "--env", envvar="REPLICATOR_ENV", help="The environment: <env>.yaml overrides base.yaml.", metavar="NAME"
    ),
]
Conf = Annotated[
    Optional[Path],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Option("--conf", help="The configuration folder; $REPLICATOR_CONF, else ./conf.", metavar="DIR"),
]
Models = Annotated[
    Optional[list[str]],  # noqa: UP045 - as above
    typer.Argument(help="Only these models. Default: all.", metavar="[MODEL]..."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
LakeRoot = Annotated[
    Optional[str],  # noqa: UP045 - as above
    typer.Option("--lake", help="A lake to use without any configuration.", metavar="DIR"),
]
SourceName = Annotated[
    Optional[str],  # noqa: UP045 - as above
    typer.Option(
        "--source", help="Only this source (a topic prefix). Default: all sources of the lake.", metavar="NAME"
    ),
]
Declare = Annotated[
    Optional[Path],  # noqa: UP045 - as above
    typer.Option("--declare", help="With --lake: YAML with column types, as for run --recorded.", metavar="FILE"),
]
AsOf = Annotated[
    Optional[str],  # noqa: UP045 - as above
    typer.Option(
        "--as-of",
        help="A version or a time (UTC) at which every table is seen: 7, 2026-11-21T10:00, -2h, '2 hours ago'.",
        metavar="V|TIME",
    ),
]
Wait = Annotated[
    int, typer.Option("--wait", help="How long to wait for another driver of the lake.", metavar="SECONDS", min=0)
]
Brokers = Annotated[
    Optional[str],  # noqa: UP045 - as above
    typer.Option("--brokers", help="Kafka brokers to use without a configuration.", metavar="HOST:PORT,..."),
]
DEFAULT_ENV = "local"
MAX_PARTITION, MAX_OFFSET = (1 << 31) - 1, (1 << 63) - 1
"""The greatest numbers that Kafka has."""


class RowFormat(str, Enum):
    """The output formats of ``sql``."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def settings(env: str, conf: Path | None, lake: str | None = None) -> Settings:
    """Return the configuration of an environment or, with *lake*, the defaults for that lake."""
    from replicator import settings as configuration

    return configuration.load(conf, env) if lake is None else configuration.bare(lake)


def parse_moment(text: str) -> int | datetime:
    """Parse a version or a time (UTC). Raises ConfigError."""
    from replicator import time_travel

    return time_travel.parse(text, datetime.now(timezone.utc))


def parse_optional_moment(text: str | None) -> int | datetime | None:
    """Parse a version or a time; None where none is given. Raises ConfigError."""
    return None if text is None else parse_moment(text)


def parse_offset(text: str) -> tuple[tuple[str, int], int]:
    """Parse ``--from TOPIC:PARTITION:OFFSET`` into ``((topic, partition), offset)``. Raises ConfigError."""
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    is_place = partition.isdecimal() and offset.isdecimal()
    if not (topic and is_place and int(partition) <= MAX_PARTITION and int(offset) <= MAX_OFFSET):
        raise ConfigError(f"--from {text!r} is not TOPIC:PARTITION:OFFSET", fix="For example shop.sales.orders:0:1234.")
    return (topic, int(partition)), int(offset)


def parse_offsets(texts: Iterable[str]) -> dict[tuple[str, int], int]:
    """Parse all ``--from`` options into offsets by topic and partition. Raises ConfigError, also for a partition given
    twice.
    """
    return collect_unique("--from", map(parse_offset, texts))


def collect_unique(flag: str, pairs: Iterable[tuple[Name, Value]]) -> dict[Name, Value]:
    """Return the values of a repeatable option by name. Raises ConfigError where a name is given twice."""
    found: dict[Name, Value] = {}
    for name, value in pairs:
        if name in found:
            label = name if isinstance(name, str) else ":".join(map(str, name))
            raise ConfigError(f"{flag} {label} is given twice", fix="Leave one of them out.")
        found[name] = value
    return found


def store(settings: Settings) -> Store:
    """Return the location of the lake and how to reach it, for readers without Spark."""
    from replicator.catalog.store import Store

    s3 = settings.s3
    if s3 is None:
        return Store(settings.lake.root)
    access, secret = (None if key is None else key.get_secret_value() for key in (s3.access_key, s3.secret_key))
    return Store(settings.lake.root, s3.endpoint, access, secret, s3.region, s3.path_style)


def existing_lake(settings: Settings) -> Lake:
    """Return the lake for a verb that needs an existing one, so that a mistyped path creates no folder. Raises
    ConfigError where the lake has no layer yet, Unreachable; where this cannot be determined without Spark, the check
    is left to the verb.
    """
    from replicator.lake import LAYERS, Lake

    lake, location = Lake(settings.lake.root), store(settings)
    try:
        files = location.files()
    except ConfigError:
        return lake
    try:
        found = location.folders(files, lake.root)
    except ReplicatorError:
        return lake
    if LAYERS.isdisjoint(found):
        fix = "Name the right one (--lake, or lake.root of the environment); a run creates one."
        raise ConfigError("there is no lake yet, or it is empty", where=lake.root, fix=fix)
    return lake


def load_declarations(declare: Path | None, lake: str | None) -> SourceSpec:
    """Load a ``--declare`` file, which holds for sources of any name; without one nothing is declared. Raises
    ConfigError unless ``--lake`` is given: with a configuration, ``conf/sources`` declares.
    """
    from replicator import settings as configuration
    from replicator.spec import SourceSpec

    if declare is None:
        return SourceSpec("", "")
    if lake is None:
        raise ConfigError("--declare needs --lake DIR", fix="With --env, the declarations in conf/sources apply.")
    return configuration.load_declarations(declare)


def open_sources(
    context: typer.Context,
    settings: Settings,
    source: str | None = None,
    declared: SourceSpec | None = None,
    *,
    brief: bool = False,
    fence: Fence | None = None,
) -> tuple[SparkSession, list[Refinement]]:
    """Return a session (``brief``: tuned for a short query) and the silver refinements of one source, or of all
    sources. They write only while ``fence`` permits it. Raises ConfigError for an unknown source.
    """
    from replicator import assemble
    from replicator.protocols import UNFENCED
    from replicator.session import session
    from replicator.spec import SourceSpec

    spark = session(settings, debug=is_debug(context), brief=brief)
    refinements = assemble.refinements(spark, settings, declared or SourceSpec("", ""), fence or UNFENCED)
    return spark, filter_by_source(refinements, source)


def filter_by_source(refinements: Sequence[Refinement], source: str | None) -> list[Refinement]:
    """Return the refinements of one source, or all of them without a name. Raises ConfigError for an unknown source,
    with the closest name.
    """
    refuse_unknown(source, [each.source.name for each in refinements])
    return [each for each in refinements if source in (None, each.source.name)]


def select_by_source(source: str | None, found: Mapping[str, Sequence[Value]]) -> list[Value]:
    """Return the values of one source, or of all sources without a name. Raises ConfigError for an unknown source, with
    the closest name.
    """
    refuse_unknown(source, found)
    return [each for name in found if source in (None, name) for each in found[name]]


def split_source(table: str | None, source: str | None) -> tuple[str | None, str | None]:
    """Split a fully qualified table (``shop/sales.orders``, as ``status`` prints it) into its name and its source;
    return any other pair unchanged. Raises ConfigError where the table names a source other than ``source``.
    """
    prefix, _, rest = (table or "").partition("/")
    if not prefix or "." not in rest:  # a table may have a slash in its own name
        return table, source
    if source not in (None, prefix):
        raise ConfigError(f"--table {table} is not a table of the source {source}", fix="Leave one of them out.")
    return rest, prefix


def refuse_unknown(source: str | None, known: Collection[str]) -> None:
    """Raise ConfigError, with the closest name, for a source that is not among the ``known`` ones."""
    from replicator.spelling import suggest

    if source is not None and source not in known:
        raise ConfigError(f"source {source!r} does not exist{suggest(source, known)}")


def is_debug(context: typer.Context) -> bool:
    """Return whether ``--debug`` was given, before or after the verb."""
    return bool(getattr(context.find_root().obj, "debug", False))
