"""``replicator sql``: read-only queries of the lake; every silver table and gold model is known by name."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import options, result_writer, topics
from replicator.cli.console import narrate, print_json, print_table
from replicator.config import queryfile
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from replicator.catalog.sql_query import SqlQuery
    from replicator.protocols.engine import Dialect, Engine
    from replicator.settings import Settings


class Engines(str, Enum):
    """The query engines, which are also the SQL dialects that a query is written in."""

    spark = "spark"
    duckdb = "duckdb"
    athena = "athena"


def sql(
    context: typer.Context,
    query: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="One SELECT. Tables are named by their last part: orders, fact_orders."),
    ] = None,
    engine: Annotated[
        Engines, typer.Option("--engine", help="The query engine. duckdb starts in a second; athena queries AWS.")
    ] = Engines.spark,
    dialect: Annotated[
        Optional[Engines],  # noqa: UP045 - as above
        typer.Option("--dialect", help="The SQL dialect of the query. Default: the engine's own."),
    ] = None,
    saved: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option("--saved", help="Run conf/queries/NAME.sql.", metavar="NAME"),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="Print the saved queries.")] = False,
    parameters: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option("--param", help="A value for :NAME in the query; may be repeated.", metavar="NAME=VALUE"),
    ] = None,
    form: Annotated[
        Optional[options.RowFormat],  # noqa: UP045 - as above
        typer.Option("--format", help="Output format. Default: a table; for a file, by its suffix."),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045 - as above
        typer.Option("--output", help="Write the rows to this file instead of stdout.", metavar="FILE"),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option("--limit", min=0, help="At most this many rows; a table shows 1000 by default.", metavar="N"),
    ] = None,
    as_of: options.AsOf = None,
    topic: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option("--topic", help="Query this topic, as it is now, instead of the lake.", metavar="TOPIC"),
    ] = None,
    brokers: options.Brokers = None,
    as_json: options.Json = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
) -> None:
    """Query the lake: live rows of silver (source columns only) and gold models, by name. With --topic: its changes, by
    the name of their table, and its records.
    """
    from replicator import settings as configuration

    if brokers is not None and topic is None:
        raise ConfigError("--brokers needs --topic TOPIC.", fix="Without it, the lake is queried.")
    folder = configuration.conf_dir(conf) / "queries"
    if listing:
        if query or saved:
            raise ConfigError("--list runs no query.", fix="Omit one of them.")
        _list(queryfile.load_queries(folder), as_json=as_json)
        return
    question = _question(query, saved, folder, dialect or engine, dialect is not None, parameters or ())
    chosen = result_writer.resolve_format(_one_format(form, as_json=as_json), output)
    most = result_writer.resolve_limit(chosen, limit)
    if topic is not None:
        _refuse_with_topic(engine, as_of, lake)
        answering: Engine = _topic_engine(context, topics.settings_of(env, conf, None, brokers), topic, brokers)
    else:
        answering = _engine(context, engine, options.settings(env, conf, lake), options.parse_optional_moment(as_of))
    answer = answering.ask(_transpile(question, answering), None if most is None else most + 1)
    result_writer.write(answer, chosen, most, output)
    if note := answering.summary():
        narrate(note)


def _one_format(form: options.RowFormat | None, *, as_json: bool) -> options.RowFormat | None:
    """Return the format that --format or --json requests. Raises ConfigError if they differ."""
    if as_json and form not in (None, options.RowFormat.json):
        raise ConfigError("--json and --format cannot be combined.", fix="Omit one of them.")
    return options.RowFormat.json if as_json else form


def _refuse_with_topic(engine: Engines, as_of: str | None, lake: str | None) -> None:
    """Raise ConfigError for options that do not apply to a topic, which only Spark reads."""
    given = {"--engine": engine is not Engines.spark, "--as-of": as_of is not None, "--lake": lake is not None}
    for name in (name for name, is_given in given.items() if is_given):
        raise ConfigError(f"--topic and {name} cannot be combined.", fix=f"Omit {name}.")


def _topic_engine(context: typer.Context, settings: Settings, topic: str, brokers: str | None) -> Engine:
    from replicator import assemble
    from replicator.cli.spark_sql import TopicEngine
    from replicator.session import session

    source = topics.require_source(settings, topic, brokers)
    opened = assemble.read_topic(session(settings, debug=options.is_debug(context)), source)
    return TopicEngine(context.with_resource(opened))


def _list(saved: Sequence[queryfile.SavedQuery], *, as_json: bool) -> None:
    if as_json:
        print_json([{"name": q.name, "dialect": q.dialect, "description": q.description} for q in saved])
    else:
        print_table(["query", "dialect", "what it tells"], [(q.name, q.dialect, q.description) for q in saved])


def _question(
    query: str | None, saved: str | None, folder: Path, dialect: Engines, given: bool, parameters: Sequence[str]
) -> SqlQuery:
    """Return the query of the command line or the saved one; ``--dialect`` takes precedence over the dialect in the
    file.
    """
    from replicator.catalog.sql_query import SqlQuery

    if (query is None) == (saved is None):
        raise ConfigError("give one query, or --saved NAME", fix="`replicator sql --list` lists the saved queries.")
    values = options.collect_unique("--param", map(_parameter, parameters))
    default: Dialect = dialect.value
    if saved is None:
        return SqlQuery(query or "", default, values)
    file = queryfile.load_query(folder, saved)
    return SqlQuery(file.text, default if given or file.dialect is None else file.dialect, values)


def _parameter(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ConfigError(f"--param {text!r} is not NAME=VALUE")
    return name, value


def _transpile(question: SqlQuery, engine: Engine) -> str:
    from replicator.catalog.sql_query import transpile

    return transpile(question, engine.dialect, engine.databases, guards_itself=engine.guards_itself)


def _engine(context: typer.Context, name: Engines, settings: Settings, when: int | datetime | None) -> Engine:
    from replicator.lake import Lake

    root = Lake(settings.lake.root)
    if name is Engines.athena:
        from replicator.catalog import athena

        if when is not None:
            fix = "Use `--engine spark` or `--engine duckdb`."
            raise ConfigError("Athena cannot read older versions of Delta tables.", fix=fix)
        database = settings.athena.database or settings.catalog.database
        place = athena.AthenaSettings(**settings.athena.model_dump() | {"database": database})
        return athena.AthenaEngine(athena.client(place), place)
    if name is Engines.duckdb:
        from replicator.catalog.local import DuckdbEngine

        return DuckdbEngine(options.store(settings), root, when)
    from replicator import lake_stores
    from replicator.cli.spark_sql import SparkEngine
    from replicator.session import session

    spark = session(settings, debug=options.is_debug(context))
    return SparkEngine(spark, lake_stores.table_format(settings), root, when)
