"""``replicator checks``: whether the rows of gold keep what the models' files say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from replicator.cli import console, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from replicator.operate.checks import ModelCheckResult

_COLUMNS = ("model", "check", "severity", "rows", "keys")


def checks(
    context: typer.Context,
    model: options.Models = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Run the checks of gold models over all their rows and build nothing; exit code 1 if one fails."""
    from replicator import assemble
    from replicator.operate import checks as operate
    from replicator.session import session

    settings = options.settings(env, conf)
    wanted = operate.select_models(settings.models, model or [])
    if not wanted:
        console.narrate("No model declares checks: there is nothing to look at.", style="yellow")
        if as_json:
            console.print_json([])
        return
    spark = session(settings, debug=options.is_debug(context))
    at = assemble.warehouse(spark, settings)
    found = []
    for looked in operate.run_checks(spark, wanted, at.gold, at.lake):
        found.append(looked)
        if looked.error is not None:
            console.narrate(f"{looked.model}: {looked.error}", style="red")
    rows = [row for looked in found for row in _rows(looked)]
    if as_json:
        console.print_json(rows)
    elif rows:
        told = [{**row, "keys": "; ".join(row["keys"])} for row in rows]
        console.print_table(_COLUMNS, [[str(row[column]) for column in _COLUMNS] for row in told])
    if not all(looked.is_well for looked in found):
        raise typer.Exit(1)


def _rows(looked: ModelCheckResult) -> Iterator[dict[str, Any]]:
    for each in looked.verdicts:
        values = (looked.model, each.check.name, each.check.severity, each.rows, list(each.keys))
        yield dict(zip(_COLUMNS, values, strict=True))
