"""``replicator republish``: send models to their targets in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli import options
from replicator.cli.run_summary import RunSummary, reporting
from replicator.errors import ConfigError, exit_code

if TYPE_CHECKING:
    from replicator.settings import Settings
    from replicator.spec import Model


def republish(
    context: typer.Context,
    models: Annotated[list[str], typer.Argument(help="Models that have a target.", metavar="MODEL...")],
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    wait: options.Wait = 0,
    as_json: options.Json = False,
) -> None:
    """Send models to their targets in full, and delete rows there that gold does not have.

    For tables that someone else has changed, truncated or restored. Other models are published as by `run publish`.
    """
    from replicator import assemble
    from replicator.operate.lock import exclusive
    from replicator.session import session
    from replicator.stages import pipeline

    settings = options.settings(env, conf)
    wanted = [_find_model(settings, name) for name in dict.fromkeys(models)]
    summary = RunSummary(once=True, as_json=as_json)
    lake, lease_options = options.existing_lake(settings), assemble.lease_options(settings, wait)
    with exclusive(lake, ("publish",), lease_options) as fence:
        spark = session(settings, debug=options.is_debug(context))
        command = " ".join(["republish", *(model.name for model in wanted)])
        with reporting(spark, settings, command, summary) as report:
            for line in pipeline.republish(spark, assemble.pipeline(spark, settings, fence), wanted):
                report(line)
    summary.show()
    if code := exit_code(summary.errors()):
        raise typer.Exit(code)


def _find_model(settings: Settings, name: str) -> Model:
    model = settings.model(name)
    if model.target is None:
        raise ConfigError(f"model {name} has no target", fix=f"Add one to its file, or omit {name}.")
    return model
