"""``replicator catalog``: register the lake's tables in Glue, for Athena and other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options
from replicator.errors import ReplicatorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from replicator.catalog.entries import LakeTable
    from replicator.catalog.inventory import Inventory
    from replicator.catalog.sync import Outcome
    from replicator.settings import Settings

app = typer.Typer(help="The lake's tables in a catalog that Athena reads.", no_args_is_help=True)

_Database = Annotated[
    Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Option("--database", help="The catalog's database. Default: catalog.database.", metavar="NAME"),
]
_TABLE = "<database or schema>.<table>, its last part, or a model."
_COLUMNS = ("name", "kind", "action", "what", "from", "to")
_SHOWN = 60


@app.command()
def sync(
    context: typer.Context,
    database: _Database = None,
    source: options.SourceName = None,
    table: Annotated[
        Optional[list[str]],  # noqa: UP045 - as above
        typer.Option("--table", help=f"Only this: {_TABLE}", metavar="NAME"),
    ] = None,
    drop: Annotated[
        bool, typer.Option("--drop", help="Drop entries whose table no longer exists in the lake.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change and write nothing.")] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Register silver and gold in Glue, so that Athena can read them; print the differences."""
    from replicator.catalog import sync as syncing
    from replicator.catalog.glue import GlueCatalog

    settings = options.settings(env, conf, lake)
    keys = settings.catalog_in(database)
    catalog = GlueCatalog(keys.database, keys.region, keys.endpoint)
    found = _inventory(context, settings, keys.database, source, table or [])
    pending = syncing.sync(catalog, found.plan, drop=drop, dry_run=dry_run)
    outcomes = print_outcomes([*found.refused], pending, as_json=as_json)
    _warn_unreadable(found.tables)
    if dry_run:
        console.narrate("Nothing was written: this was a dry run.", style="yellow")
    if any(each.error for each in outcomes):
        raise typer.Exit(1)


@app.command()
def ddl(
    context: typer.Context,
    table: Annotated[Optional[list[str]], typer.Argument(help=_TABLE, metavar="[TABLE]...")] = None,  # noqa: UP045
    database: _Database = None,
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Print the statements that register silver and gold when they are run in Athena."""
    from replicator.catalog import athena_ddl

    settings = options.settings(env, conf, lake)
    keys = settings.catalog_in(database)
    found = _inventory(context, settings, keys.database, source, table or [])
    ddl_lines = [(entry, athena_ddl.statements(entry, keys.database)) for entry in found.plan.entries]
    if as_json:
        console.print_json(
            [{"name": each.name, "kind": each.kind.value, "statements": lines} for each, lines in ddl_lines]
        )
    else:
        console.print_text(f"CREATE DATABASE IF NOT EXISTS `{keys.database}`;\n")
        for _, lines in ddl_lines:
            console.print_text("".join(f"{line};\n\n" for line in lines).rstrip("\n") + "\n")
    _print_errors(found.refused)
    _warn_unreadable(found.tables)
    if found.refused:
        raise typer.Exit(1)


def print_outcomes(done: list[Outcome], outcomes: Iterable[Outcome], *, as_json: bool) -> list[Outcome]:
    """Print the outcomes in ``done`` and those in ``outcomes``, and return all of them. Where the catalog fails
    half-way, the outcomes so far are printed and the error is raised.
    """
    try:
        for each in outcomes:
            done.append(each)  # noqa: PERF402 - those before an error are kept
    except ReplicatorError:
        if done:
            _print(done, as_json=as_json)
        raise
    _print(done, as_json=as_json)
    return done


def _inventory(
    context: typer.Context, settings: Settings, database: str, source: str | None, tables: Sequence[str]
) -> Inventory:
    from replicator import lake_stores
    from replicator.catalog import catalog_tables, inventory
    from replicator.cli import views
    from replicator.lake import Lake
    from replicator.session import session

    spark = session(settings, debug=options.is_debug(context), brief=True)
    root, tables_of = Lake(settings.lake.root), lake_stores.table_format(settings)
    silver, gold = views.silver_tables(spark, tables_of, root), views.gold_tables(spark, tables_of, root)
    every = catalog_tables.list_tables(silver, gold, views.list_views(silver, gold))
    selection = inventory.TableSelection(source, tuple(tables))
    return inventory.build(spark, tables_of, root.root, every, selection, database, settings.models)


def _print(outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    if as_json:
        console.print_json([_to_json(each) for each in outcomes])
    elif outcomes:
        console.print_table(_COLUMNS, [row for each in outcomes for row in _rows(each)])
    else:
        console.narrate("There are no tables in this lake yet.")
    _print_errors(outcomes)


def _rows(outcome: Outcome) -> Iterator[tuple[str, ...]]:
    from replicator.catalog.columns import one_line

    lines = [(change.what, change.before or "", change.after or "") for change in outcome.changes]
    counts = {"new": outcome.added, "changed": outcome.changed, "gone": outcome.removed}
    lines += [(f"{what} partitions", "", str(count)) for what, count in counts.items() if count]
    for what, before, after in lines or [("", "", "")]:
        yield outcome.name, outcome.kind, outcome.action, what, one_line(before, _SHOWN), one_line(after, _SHOWN)


def _to_json(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.name,
        "kind": outcome.kind,
        "table": outcome.table,
        "action": outcome.action,
        "changes": [{"what": each.what, "from": each.before, "to": each.after} for each in outcome.changes],
        "partitions": {"added": outcome.added, "changed": outcome.changed, "removed": outcome.removed},
        "error": None if outcome.error is None else str(outcome.error),
    }


def _print_errors(outcomes: Sequence[Outcome]) -> None:
    for each in outcomes:
        if each.error is not None:
            console.narrate(f"{each.name}: {each.error}", style="red")


def _warn_unreadable(tables: Sequence[LakeTable]) -> None:
    """Print one line per reason with the tables that it holds for."""
    from replicator.catalog.entries import unreadable_reason

    reasons: dict[str, list[str]] = {}
    for table in tables:
        if (why := unreadable_reason(table)) is not None:
            reasons.setdefault(why, []).append(table.name)
    for why, names in reasons.items():
        console.narrate(f"Athena may be unable to read {', '.join(names)}: {why}.", style="yellow")
