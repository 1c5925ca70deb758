"""``replicator schema``: pending schema changes of silver, those that need approval, and the history of changes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options
from replicator.cli.schema_avro import avro
from replicator.cli.schema_infer import infer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from replicator.operate.schema import PendingChange, TableSchema
    from replicator.settings import Settings
    from replicator.spec import SourceSpec
    from replicator.stages.refinement import Refinement

app = typer.Typer(
    name="schema",
    help="The columns of silver: a draft of their types, what would change, and what did.",
    no_args_is_help=True,
)

app.command("infer")(infer)
app.command("avro")(avro)

_TABLE = typer.Argument(
    help="<database or schema>.<table>, or its last part if that is enough; with <source>/ before it where two have it."
)
_Declare = Annotated[
    Optional[Path],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Option("--declare", help="With --lake: the YAML that the tables were declared with.", metavar="FILE"),
]
_COLUMNS = ("table", "change", "column", "from", "to", "then")


@app.command()
def diff(
    context: typer.Context,
    table: Annotated[Optional[str], _TABLE] = None,  # noqa: UP045
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    declare: _Declare = None,
    approve: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--approve", help="Approve changes that the table's policy withholds.", metavar="TABLE"),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what the next silver run would change, from records that it has not read; exit code 1 if a table
    would stop.
    """
    from replicator.operate import schema

    spark, every, settings = _open(context, env, conf, lake, declare)
    if approve is not None:
        _approve(spark, settings, options.load_declarations(declare, lake), approve)
    found = schema.pending_changes(spark, every, approve or table)
    if as_json:
        console.print_json([_change_to_json(each) for each in found])
    elif found:
        console.print_table(_COLUMNS, [(e.table, e.change, e.column, e.before, e.after, e.then) for e in found])
    else:
        console.narrate("No schema would change.")
    for each in found:
        if each.why:
            console.narrate(f"{each.table}: {each.why}", style="red")
    if any(each.then in (schema.APPROVAL, schema.STOPS) for each in found):
        raise typer.Exit(1)


@app.command()
def show(
    context: typer.Context,
    table: Annotated[str, _TABLE],
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Show a silver table's columns, with their names at the source, and all changes of them so far."""
    from replicator.operate import schema

    spark, every, _ = _open(context, env, conf, lake, None)
    found = schema.describe(spark, every, table)
    if as_json:
        console.print_json(_schema_to_json(found))
        return
    columns = [(c.column, c.name, c.type, "" if c.key is None else str(c.key + 1)) for c in found.columns]
    console.print_table(("column", "at the source", "type", "key"), columns)
    if found.changes:
        console.print_text("")
        changes = [(seq, c.kind, c.column, c.before, c.after) for seq, c in found.changes]
        console.print_table(("at", "change", "column", "from", "to"), changes)


def _open(
    context: typer.Context, env: str, conf: Path | None, lake: str | None, declare: Path | None
) -> tuple[SparkSession, Sequence[Refinement], Settings]:
    """Return a session, the sources, and the settings."""
    settings = options.settings(env, conf, lake)
    spark, sources = options.open_sources(
        context, settings, declared=options.load_declarations(declare, lake), brief=True
    )
    return spark, sources, settings


def _approve(spark: SparkSession, settings: Settings, declared: SourceSpec, table: str) -> None:
    """Approve the changes that a table's policy holds back, under the lease of silver, whose ledger this writes."""
    from replicator import assemble
    from replicator.operate import schema
    from replicator.operate.lock import exclusive

    with exclusive(options.existing_lake(settings), ("silver",), assemble.lease_options(settings)) as fence:
        approved = schema.approve(spark, assemble.refinements(spark, settings, declared, fence), table)
    for change in approved:
        console.narrate(f"approved: {change}")
    if not approved:
        console.narrate(f"No change of {table} waits for approval.")


def _change_to_json(each: PendingChange) -> dict[str, str]:
    fields = asdict(each)
    return {{"before": "from", "after": "to"}.get(key, key): value for key, value in fields.items()}


def _schema_to_json(found: TableSchema) -> dict[str, object]:
    return {
        "table": found.table,
        "columns": [asdict(column) for column in found.columns],
        "changes": [
            {"at": seq, "change": c.kind, "column": c.column, "from": c.before, "to": c.after}
            for seq, c in found.changes
        ],
        "approved": [{"change": c.kind, "column": c.column, "from": c.before, "to": c.after} for c in found.approved],
    }
