"""Every verb of the command line: its module and its line in ``replicator --help``. Only the requested verb is
imported: building the options of all verbs takes longer than most commands.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

VERBS: Mapping[str, tuple[str, str]] = {
    "checks": (
        "checks:checks",
        "Run the checks of gold models over all their rows and build nothing; exit code 1 if one fails.",
    ),
    "diff": (
        "diff:diff",
        "Show what differs between two versions of a table of silver or gold, or a history: one line per key.",
    ),
    "doctor": (
        "doctor:doctor",
        "Check Python, Spark, Java, JARs, configuration, Kafka, Connect, Postgres and the lake.",
    ),
    "explain": (
        "explain:explain",
        "Show the history of a row: its records in source order, what the merge did with each, and the row now.",
    ),
    "init": (
        "init:init",
        "Create a project: a valid configuration and one job per stage for spark-submit. Overwrites nothing.",
    ),
    "jars": (
        "jars:jars",
        'Print the verified JARs, separated by commas: spark-submit --jars "$(replicator jars)" ...',
    ),
    "maintain": (
        "maintain:maintain",
        "Compact small files and remove files that no version in use needs; readers see no difference.",
    ),
    "plan": ("plan:plan", "Show what the next run of gold would compute for each model, and why. Writes nothing."),
    "purge": (
        "purge:purge",
        "Remove silver rows that were deleted at the source longer ago than their table's purge_after.",
    ),
    "rebuild": (
        "rebuild:rebuild",
        "Rebuild tables from all of bronze, and models from silver; what differs is written in one commit.",
    ),
    "report": (
        "report:report",
        (
            "Write one HTML page: sales, the star schema and the state of the pipeline. It can be viewed without a "
            "network."
        ),
    ),
    "republish": (
        "republish:republish",
        "Send models to their targets in full, and delete rows there that gold does not have.",
    ),
    "run": ("run:run", "Bring the lake and the targets up to date with Kafka."),
    "runs": ("runs:runs", "List the last runs and what became of the records they read."),
    "sql": (
        "sql:sql",
        (
            "Query the lake: live rows of silver (source columns only) and gold models, by name. With --topic: its "
            "changes, by the name of their table, and its records."
        ),
    ),
    "status": ("status:status", "Show the progress of each table, and its lag behind the layer before it."),
    "tail": (
        "tail:tail",
        "Show events: the position of each, the row and the operation, and the columns before and after.",
    ),
    "validate": (
        "validate:validate",
        "Check configuration, sources and models; list everything that is wrong, with exit code 2.",
    ),
    "verify": (
        "verify:verify",
        (
            "Compare the contents of every layer with the one before it, by checksums and down to keys and columns; "
            "exit code 1 if they differ, 2 if a database refuses the login or there is no lake, 3 if one is "
            "unreachable."
        ),
    ),
    "aws": ("aws:app", "Stages on Amazon EMR, and clients of Amazon MSK."),
    "canonical": ("canonical:app", "Topics of events for other teams."),
    "catalog": ("catalog:app", "The lake's tables in a catalog that Athena reads."),
    "config": ("config:app", "The configuration, where each value came from, and its JSON Schemas."),
    "connect": ("connect:app", "The connectors that capture the sources."),
    "dead-letters": ("dead_letters:app", "Records that could not be applied: list, show, retry, drop."),
    "demo-source": ("demo_source:app", "Fill a database with a sample."),
    "epoch": ("epoch:app", "Epochs: a source's order starts over after a restore, reset or move."),
    "import": ("imports:app", "Convert settings of other tools into source files."),
    "lease": ("lease:app", "Leases of the drivers that write the lake."),
    "schema": ("schema:app", "The columns of silver: a draft of their types, what would change, and what did."),
    "tables": ("tables:app", "Which tables are replicated, and which are paused."),
}
"""The module, the attribute in it (a command, or ``app`` for a group of commands), and the first sentences of its help.
"""


class Verbs(TyperGroup):
    """The group of all verbs. Help and completion use their names and summaries; only the invoked verb is loaded."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, (_, summary) in VERBS.items():
            self.add_command(TyperCommand(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the placeholder of the invoked verb by the loaded command."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else load(name), rest


def load(name: str) -> TyperCommand | TyperGroup:
    """Load a verb: a command with its options, or a group with its commands."""
    module, _, attribute = VERBS[name][0].partition(":")
    found = getattr(importlib.import_module(f"replicator.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        return cast("TyperCommand", typer.main.get_command(alone))
    group = typer.main.get_group(found)
    group.name = name
    return group
