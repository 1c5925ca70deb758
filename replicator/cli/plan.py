"""``replicator plan``: show what the next run of gold would compute, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from replicator.cli import console, options

if TYPE_CHECKING:
    from replicator.operate.plan import ModelPlan

_COLUMNS = ("model", "action", "why", "changed keys", "affected rows", "rows")


def plan(
    context: typer.Context,
    models: options.Models = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Show what the next run of gold would compute for each model, and why. Writes nothing."""
    from replicator import assemble
    from replicator.operate.plan import plan_models, select_models
    from replicator.session import session

    settings = options.settings(env, conf)
    wanted = select_models(settings.models, models or ())
    spark = session(settings, debug=options.is_debug(context), brief=True)
    found = list(plan_models(spark, settings.models, assemble.warehouse(spark, settings), wanted))
    if as_json:
        console.print_json([asdict(each) for each in found])
    elif found:
        console.print_table(_COLUMNS, [_row(each) for each in found])
    else:
        console.narrate("There are no models.")


def _row(planned: ModelPlan) -> list[str | None]:
    changed = ", ".join(f"{given}: {count}" for given, count in planned.changed.items() if count)
    counts = (planned.affected, planned.rows)
    return [planned.model, planned.action, planned.why, changed, *(None if c is None else str(c) for c in counts)]
