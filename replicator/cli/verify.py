"""``replicator verify``: whether tables that must be equal are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import console, options

if TYPE_CHECKING:
    from replicator.operate.verify import Verdict

_COLUMNS = ("table", "against", "rows", "missing", "extra", "differing", "behind", "verdict")


def verify(
    context: typer.Context,
    table: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="Only this table: <database or schema>.<table>, or its last part.", metavar="[TABLE]"),
    ] = None,
    source: options.SourceName = None,
    declare: options.Declare = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Compare the contents of tables that are kept in two formats; exit code 1 where they differ."""
    from replicator.operate import verify as operate

    declared = options.declared(declare, lake)
    settings = options.settings(env, conf, lake).with_formats_of(declared)
    spark, sources = options.opened(context, settings, source, declared)
    verdicts: list[Verdict] = []
    for verdict in operate.verify(spark, operate.chosen(spark, sources, table, settings.formats)):
        verdicts.append(verdict)
        _narrate(verdict)
    if as_json:
        console.print_json([_told(verdict) for verdict in verdicts])
    elif verdicts:
        rows = [_told(verdict) for verdict in verdicts]
        console.print_table(_COLUMNS, [[str(row[column]) for column in _COLUMNS] for row in rows])
    else:
        console.narrate("No table is kept in two formats: there is nothing to compare.", style="yellow")
    if not all(verdict.is_equal for verdict in verdicts):
        raise typer.Exit(1)


def _told(verdict: Verdict) -> dict[str, Any]:
    word = "equal" if verdict.is_equal else "unknown" if verdict.error is not None else "different"
    error = None if verdict.error is None else str(verdict.error)
    return {**vars(verdict), "error": error, "verdict": word}


def _narrate(verdict: Verdict) -> None:
    place = f"{verdict.table} ({verdict.against})"
    if verdict.error is not None:
        console.narrate(f"{place}: {verdict.error}", style="red")
    for column in verdict.columns:
        console.narrate(f"{place}: the column {column}", style="red")
    for key in verdict.named:
        console.narrate(f"{place}: {key}", style="red")
