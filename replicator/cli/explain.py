"""``replicator explain``: what was done with every record of one row, and why the row has its values."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli import console, options

if TYPE_CHECKING:
    from replicator.operate.explain import Entry, Explanation

_COLUMNS = ("record", "position", "op", "source time (UTC)", "verdict", "why")


def explain(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="<database or schema>.<table>, or its last part if that is enough.")],
    key: Annotated[str, typer.Argument(help="1; a,b in the order of the key; or name=value,...")],
    source: options.SourceName = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    declare: options.Declare = None,
    as_json: options.Json = False,
) -> None:
    """Show the history of a row: its records in source order, what the merge did with each, and the row now."""
    from replicator.operate import explain as operation
    from replicator.operate.row.trace import find_table

    declared = options.load_declarations(declare, lake)
    settings = options.settings(env, conf, lake)
    spark, sources = options.open_sources(context, settings, source, declared)
    history = operation.explain(spark, *find_table(spark, sources, table), key)
    if as_json:
        console.print_json(asdict(history))
    else:
        _print(history)
    for warning in history.warnings:
        console.narrate(warning, style="yellow")


def _print(history: Explanation) -> None:
    named = ", ".join(f"{name}={value}" for name, value in history.key.items())
    console.print_text(f"{history.table} {named}")
    if history.entries:
        console.print_table(_COLUMNS, [_row(entry) for entry in history.entries])
    else:
        console.print_text("Bronze has no record of this key.")
    console.print_text("")
    if history.position is None:
        console.print_text("There is no such row in silver.")
        return
    console.print_text(f"The row {'was deleted' if history.deleted else 'was last changed'} at {history.position}:")
    console.print_table(
        ("column", "value", "known from"), [[cell.column, cell.value, cell.position or ""] for cell in history.row]
    )


def _row(entry: Entry) -> list[str | None]:
    place = entry.line or f"{entry.topic}/{entry.partition}/{entry.offset}"
    return [place, entry.position or "", entry.op or "", _time(entry.source_ts_ms), entry.verdict, entry.why]


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
