"""``replicator dead-letters``: the records that could not be applied: list, show, retry or drop them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import console, options, spark_fallback, tables
from replicator.errors import ConfigError, exit_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from replicator.operate.dead_letters import Count, LetterFilter
    from replicator.settings import Settings
    from replicator.stages.account import Account
    from replicator.stages.refinement import Refinement

app = typer.Typer(help="Records that could not be applied: list, show, retry, drop.", no_args_is_help=True)

TableName = Annotated[
    Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Option("--table", help="Only this table: as `status` prints it, or its last part.", metavar="TABLE"),
]
ReasonName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--reason", help="Only dead letters with this reason.", metavar="REASON"),
]
Everything = Annotated[bool, typer.Option("--all", help="All dead letters, whatever their table and reason.")]
_COUNTS = ("source", "table", "reason", "letters", "first_seen", "last_seen")
_LETTERS = ("source", "topic", "partition", "offset", "table", "reason", "detail", "position", "first_seen")
_ACCOUNTS = ("table", "letters", "applied", "superseded", "ignored", "still_dead")


@app.command("list")
def list_letters(
    context: typer.Context,
    table: TableName = None,
    reason: ReasonName = None,
    source: options.SourceName = None,
    rows: Annotated[bool, typer.Option("--rows", help="The dead letters themselves instead of counts.")] = False,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Dropped dead letters instead, with the time and the filter.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", help="At most this many dead letters per source.", min=1)] = 100,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Count dead letters by table and reason; with --rows, list them."""
    from replicator.cli import letter_details
    from replicator.operate.dead_letters import LetterFilter

    table, source = options.split_source(table, source)
    settings, choice = options.settings(env, conf, lake), LetterFilter(table, reason)
    if rows:
        spark, sources = options.open_sources(context, settings, source, brief=True)
        columns = (*_LETTERS, "dropped_at", "filter") if dropped else _LETTERS
        found, has_more = letter_details.rows(spark, sources, choice, dropped=dropped, limit=limit)
        if not found:
            _refuse_unknown(spark, sources, choice)
        _print(columns, found, as_json=as_json)
        if has_more:
            message = f"only the first {limit} dead letters per source are shown: --limit N shows more"
            console.narrate(message, style="yellow")
        return
    counts = options.select_by_source(source, _counts(context, settings, choice, dropped=dropped))
    if not counts and not choice.is_all:
        known = [each.name for each in options.select_by_source(source, tables.list_tables(context, settings))]
        every = options.select_by_source(source, _counts(context, settings, LetterFilter(), dropped=dropped))
        choice.refuse_unknown(known, every)
    _print(_COUNTS, [asdict(count) for count in counts], as_json=as_json)


@app.command()
def show(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(help="The record's topic.")],
    partition: Annotated[int, typer.Argument(help="Its partition.", max=options.MAX_PARTITION)],
    offset: Annotated[int, typer.Argument(help="Its offset.", max=options.MAX_OFFSET)],
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Show one record as it is in bronze, why it could not be applied, and how to fix that."""
    from replicator.cli import letter_details
    from replicator.operate.dead_letters import find

    spark, sources = options.open_sources(context, options.settings(env, conf, lake), source, brief=True)
    found = find(spark, sources, topic, partition, offset)
    if found is None:
        raise ConfigError(
            "bronze has no such record",
            where=f"{topic} {partition} {offset}",
            fix="`replicator dead-letters list --rows` lists the positions of all dead letters.",
        )
    fields = letter_details.describe(found)
    if as_json:
        console.print_json(fields)
        return
    for line in letter_details.format_lines(fields):
        console.print_text(line)


@app.command()
def retry(
    context: typer.Context,
    table: TableName = None,
    reason: ReasonName = None,
    source: options.SourceName = None,
    everything: Everything = False,
    declare: options.Declare = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Apply the dead letters that can be applied now, each change at its own place in the source's order; the others
    stay.
    """
    from replicator import assemble
    from replicator.operate.lock import exclusive

    choice, source = _selection(table, reason, source, everything=everything)
    declared = options.load_declarations(declare, lake)
    if lake is not None and declare is None:
        console.narrate("Without --declare FILE, the types of the tables are used.", style="dim")
    settings = options.settings(env, conf, lake)
    with exclusive(options.existing_lake(settings), ("silver",), assemble.lease_options(settings)) as fence:
        from replicator.operate.retry import retry as again

        spark, sources = options.open_sources(context, settings, source, declared, fence=fence)
        accounts = [account for each in sources for account in again(spark, each, choice)]
        staying = 0 if accounts else _count_without_records(spark, sources, choice)
    if accounts or as_json or not staying:
        _print(_ACCOUNTS, [_to_row(account) for account in accounts], as_json=as_json)
    if staying:
        message = f"{staying} dead letters stay: bronze no longer has their records. `dead-letters drop` discards them."
        console.narrate(message, style="yellow")
    for account in accounts:
        for warning in account.warnings:
            console.narrate(f"{account.table}: {warning}", style="yellow")
        if account.error is not None:
            console.narrate(f"{account.table} stopped, its dead letters are kept: {account.error}", style="red")
    if code := exit_code([account.error for account in accounts if account.error is not None]):
        raise typer.Exit(code)


@app.command()
def drop(
    context: typer.Context,
    table: TableName = None,
    reason: ReasonName = None,
    source: options.SourceName = None,
    everything: Everything = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Drop them. Without it, only count what would be dropped.")
    ] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Drop dead letters. Which, when and by which filter is recorded in the lake: list --dropped."""
    from replicator import assemble
    from replicator.operate import dead_letters
    from replicator.operate.lock import exclusive

    choice, source = _selection(table, reason, source, everything=everything)
    settings = options.settings(env, conf, lake)
    with exclusive(
        options.existing_lake(settings), ("silver",) if yes else (), assemble.lease_options(settings)
    ) as fence:
        spark, sources = options.open_sources(context, settings, source, fence=fence)
        found = [asdict(count) for each in sources for count in dead_letters.counts(spark, each, choice)]
        if not found:
            _refuse_unknown(spark, sources, choice)
        if yes:
            for each in sources:
                dead_letters.drop(spark, each, choice)
    _print(_COUNTS, found, as_json=as_json)
    if found:
        console.narrate("Dropped." if yes else "Nothing was dropped: add --yes to drop these.", style="yellow")


def _refuse_unknown(spark: SparkSession, sources: Sequence[Refinement], choice: LetterFilter) -> None:
    """Raise ConfigError for a table or a reason that does not exist; called where nothing was found."""
    from replicator.operate.dead_letters import LetterFilter, counts
    from replicator.operate.pause import list_tables

    if choice.is_all:
        return
    every = [count for source in sources for count in counts(spark, source, LetterFilter())]
    choice.refuse_unknown([each.name for each in list_tables(spark, sources)], every)


def _count_without_records(spark: SparkSession, sources: Sequence[Refinement], choice: LetterFilter) -> int:
    """Return the number of selected dead letters where none could be retried. Raises as :func:`_refuse_unknown`."""
    from replicator.operate.dead_letters import counts

    found = [count.letters for source in sources for count in counts(spark, source, choice)]
    if not found:
        _refuse_unknown(spark, sources, choice)
    return sum(found)


def _counts(
    context: typer.Context, settings: Settings, choice: LetterFilter, *, dropped: bool
) -> dict[str, list[Count]]:
    """Return the counts of each source, by its name."""
    return spark_fallback.answer(
        lambda: _without_spark(settings, choice, dropped=dropped),
        lambda: _by_spark(context, settings, choice, dropped=dropped),
    )


def _without_spark(settings: Settings, choice: LetterFilter, *, dropped: bool) -> dict[str, list[Count]]:
    from replicator import assemble_without_spark
    from replicator.operate.progress import arrow_letters

    survey = assemble_without_spark.arrow_survey(settings, options.store(settings))
    sources = [each.name for each in assemble_without_spark.sources(settings, survey)]
    return {name: arrow_letters.counts(survey, name, choice, dropped=dropped) for name in sources}


def _by_spark(
    context: typer.Context, settings: Settings, choice: LetterFilter, *, dropped: bool
) -> dict[str, list[Count]]:
    from replicator.operate import dead_letters

    spark, sources = options.open_sources(context, settings, brief=True)
    return {each.source.name: dead_letters.counts(spark, each, choice, dropped=dropped) for each in sources}


def _selection(
    table: str | None, reason: str | None, source: str | None, *, everything: bool
) -> tuple[LetterFilter, str | None]:
    """Return the filter and the source. Raises ConfigError unless a table or reason is given, or ``--all`` alone."""
    from replicator.operate.dead_letters import LetterFilter

    name, table_source = options.split_source(table, source)
    choice = LetterFilter(name, reason)
    if choice.is_all != everything:
        raise ConfigError(
            "no dead letters are selected" if choice.is_all else "--all cannot be combined with --table or --reason",
            fix="Give --table TABLE, --reason REASON or both, or --all alone; `replicator dead-letters list` shows "
            "them.",
        )
    return choice, table_source


def _to_row(account: Account) -> dict[str, Any]:
    counts = (account.read, account.applied, account.superseded, sum(account.ignored.values()), account.dead_lettered)
    fields = dict(zip(_ACCOUNTS, (account.table, *counts), strict=True))
    return fields | ({} if account.error is None else {"error": str(account.error)})


def _print(columns: tuple[str, ...], rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        console.print_json([{name: _plain(value) for name, value in row.items()} for row in rows])
    elif rows:
        cells = [[_text(row.get(name)) for name in columns] for row in rows]
        console.print_table([name.replace("_", " ") for name in columns], cells)
    else:
        console.narrate("No dead letters match.")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else _text(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
