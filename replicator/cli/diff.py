"""``replicator diff``: the rows of a table that changed from one version to another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.text import Text

from replicator import time_travel
from replicator.cli import console, options
from replicator.cli.result_writer import MOST_SHOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from replicator.operate.diff import Changes
    from replicator.protocols import TableFormat
    from replicator.settings import Settings
    from replicator.spec import Table

_STYLES = {"added": "green", "removed": "red", "changed": "yellow"}
_NULL = "null"


def diff(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="A table as sql knows it: orders, orders__history, fact_orders.")],
    since: Annotated[
        str, typer.Option("--from", help="A version or a time (UTC): 7, 2026-11-21T10:00, -2h.", metavar="V|TIME")
    ],
    until: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--to", help="Another version or time. Default: the newest version.", metavar="V|TIME"),
    ] = None,
    where: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option("--where", help="Only rows that meet this before or after.", metavar="SQL"),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option("--limit", min=0, help="At most this many rows; a table shows 1000 by default.", metavar="N"),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045 - as above
        typer.Option(
            "--key", help="The key of a gold table without a model in the configuration.", metavar="COLUMN,..."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Rows as stored, with deleted rows and system columns.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Print only how many rows changed.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if there are differences.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
) -> None:
    """Show what differs between two versions of a table of silver or gold, or a history: one line per key."""
    from replicator import lake_stores
    from replicator.operate import diff as operate
    from replicator.session import session

    settings = options.settings(env, conf, lake)
    spark = session(settings, debug=options.is_debug(context), brief=True)
    tables_of = lake_stores.table_format(settings)
    target = resolve_table(spark, tables_of, settings, table, key)
    request = operate.DiffRequest(target, options.parse_moment(since), options.parse_optional_moment(until), where, raw)
    with operate.changes(spark, tables_of, request) as found:
        console.narrate(_describe(target, found))
        if summary:
            _summarize(target, found, as_json=as_json)
        else:
            most = MOST_SHOWN if limit is None and not as_json else limit
            _print(found.rows, most, as_json=as_json)
            if most is not None and sum(found.counts.values()) > most:
                console.narrate(f"only the first {most} keys are shown: --limit N shows more", style="yellow")
        differs = any(found.counts.values())
    if exit_code and differs:
        raise typer.Exit(1)


def resolve_table(spark: SparkSession, tables_of: TableFormat, settings: Settings, name: str, key: str | None) -> Table:
    """Return the table that ``sql`` knows by a name; a gold table with the given key, else with the key of its model.
    Raises ConfigError.
    """
    from replicator.cli.views import find_table
    from replicator.lake import Lake

    table = find_table(spark, tables_of, Lake(settings.lake.root), name)
    of_model = next((model.key for model in settings.models if model.name == table.name), ())
    return replace(table, keys=of_model if key is None else tuple(part.strip() for part in key.split(",")))


def _describe(table: Table, found: Changes) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in found.counts.items())
    return f"{table.name}, {time_travel.describe(found.before)} -> {time_travel.describe(found.after)}: {counts}"


def _summarize(table: Table, found: Changes, *, as_json: bool) -> None:
    if not as_json:
        console.print_table(("change", "rows"), [(kind, str(count)) for kind, count in found.counts.items()])
        return
    ends = {"from": found.before, "to": found.after}
    versions = {name: {"version": each.version, "at": each.at.isoformat()} for name, each in ends.items()}
    console.print_text(json.dumps({"table": table.name, **versions, **found.counts}))


def _print(rows: DataFrame, limit: int | None, *, as_json: bool) -> None:
    ordered = rows.orderBy("at")
    shown = with_ordered_columns(ordered if limit is None else ordered.limit(limit))
    if not as_json:
        console.print_table(("change", "key", "row"), [format_row(row) for row in shown.toLocalIterator()])
        return
    for row in shown.toLocalIterator():
        console.print_text(f"{{{json_members(row)}}}")


def with_ordered_columns(rows: DataFrame) -> DataFrame:
    """Convert the maps of changed rows into lists of pairs, since Python receives the entries of a map in the order of
    their hashes.
    """
    from pyspark.sql import functions as F

    return rows.select("change", *[F.map_entries(name).alias(name) for name in ("key", "before", "after")])


def json_members(row: Row) -> str:
    """Format a changed row, as :func:`with_ordered_columns` returns it, as members of a JSON object."""
    cells = ", ".join(f'"{name}": {_object(row[name])}' for name in ("key", "before", "after"))
    return f'"change": "{row["change"]}", {cells}'


def _object(values: Sequence[tuple[str, str]] | None) -> str:
    """Format values that are JSON already as an object, so that no digit of a number is lost."""
    if values is None:
        return _NULL
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {text}" for name, text in values) + "}"


def format_row(row: Row) -> tuple[Text, Text, Text]:
    """Format a changed row, as :func:`with_ordered_columns` returns it, for people: the kind of change, the key, and
    the columns; of a changed row only those that differ.
    """
    style = _STYLES[row["change"]]
    key = ", ".join(f"{name}={_plain(text)}" for name, text in row["key"])
    return Text(row["change"], style), Text(key), Text(", ").join(_cells(row, style))


def _cells(row: Row, style: str) -> Iterator[Text]:
    if row["change"] != "changed":
        values = row["after"] or row["before"] or ()
        return (Text(f"{name}={_plain(text)}", style) for name, text in values)
    before, after = dict(row["before"]), dict(row["after"])
    return (
        Text.assemble(
            f"{name}: ", (_plain(before.get(name, _NULL)), "red"), " \u2192 ", (_plain(after.get(name, _NULL)), "green")
        )
        for name in dict.fromkeys([*before, *after])
    )


def _plain(text: str) -> str:
    """Format a JSON value for people: a string without quotes, on one line."""
    value: Any = json.loads(text) if text.startswith('"') else text
    return "NULL" if text == _NULL else console.printable(str(value))
