"""``replicator checks``: check that the rows of gold models satisfy the checks in the models' files."""

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
        console.narrate("No model declares checks: nothing to check.", style="yellow")
        if as_json:
            console.print_json([])
        return
    spark = session(settings, debug=options.is_debug(context))
    target = assemble.warehouse(spark, settings)
    found = []
    for result in operate.run_checks(spark, wanted, target.gold, target.lake):
        found.append(result)
        if result.error is not None:
            console.narrate(f"{result.model}: {result.error}", style="red")
    rows = [row for result in found for row in _rows(result)]
    if as_json:
        console.print_json(rows)
    elif rows:
        printed = [{**row, "keys": "; ".join(row["keys"])} for row in rows]
        console.print_table(_COLUMNS, [[str(row[column]) for column in _COLUMNS] for row in printed])
    if not all(result.passed for result in found):
        raise typer.Exit(1)


def _rows(result: ModelCheckResult) -> Iterator[dict[str, Any]]:
    for each in result.verdicts:
        values = (result.model, each.check.name, each.check.severity, each.rows, list(each.keys))
        yield dict(zip(_COLUMNS, values, strict=True))
