"""``replicator epoch``: a source whose order starts over after a restore, reset, move or change of partitions."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import advice, console, options, spark_fallback
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.operate.epoch import LakeSource
    from replicator.protocols import Fence
    from replicator.settings import Settings
    from replicator.stages.tick.epochs import Epoch

app = typer.Typer(help="Epochs: a source's order starts over after a restore, reset or move.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(help="The source: its topic prefix.", metavar="SOURCE")]
_STARTS = ("epoch", "topic", "partition", "from offset", "why")


@app.command()
def bump(
    context: typer.Context,
    source: Source,
    reason: Annotated[str, typer.Option("--reason", help="What happened; recorded with the epoch.", metavar="TEXT")],
    starts: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option(
            "--from",
            help="Where the epoch starts in a partition, if not where it is detected.",
            metavar="TOPIC:PART:OFFSET",
        ),
    ] = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """Start a new epoch: everything that the source sends from now on is newer than all before."""
    from replicator import assemble
    from replicator.operate import epoch
    from replicator.operate.lock import exclusive

    settings, offsets = options.settings(env, conf, lake), options.parse_offsets(starts or [])
    if not reason.strip():
        raise ConfigError("a new epoch needs a reason", fix="State in --reason what happened to the source.")
    with exclusive(options.existing_lake(settings), ("silver",), assemble.lease_options(settings)) as fence:
        spark, target = _open(settings, source, fence, debug=options.is_debug(context))
        begun = epoch.bump(spark, target, reason, offsets)
        overtaken = epoch.tables_to_rebuild(spark, target, begun)
    if as_json:
        console.print_json([asdict(start) for start in begun])
    else:
        console.print_table(_STARTS, [[str(cell) for cell in asdict(start).values()] for start in begun])
    console.narrate(f"{source} is in epoch {begun[0].epoch}; run again." if begun else "")
    if overtaken:
        rebuild = advice.command("rebuild", *overtaken)
        console.narrate(
            f"Silver has already read some of its records, in the old order: {rebuild} puts them into the new one.",
            style="yellow",
        )


@app.command()
def show(
    context: typer.Context,
    source: Source,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
    as_json: options.Json = False,
) -> None:
    """List the epochs of a source, each with its reason."""
    settings = options.settings(env, conf, lake)
    known, found = spark_fallback.answer(
        lambda: _without_spark(settings, source), lambda: _by_spark(context, settings, source)
    )
    options.refuse_unknown(source, known)
    if as_json:
        console.print_json([each.value() for each in found])
    elif found:
        rows = [[str(each.number), each.since, each.reason] for each in found]
        console.print_table(("epoch", "since", "reason"), rows)
    else:
        console.narrate(f"{source} never started a new epoch.")


def _without_spark(settings: Settings, source: str) -> tuple[list[str], list[Epoch]]:
    """Return the names of all sources, and the epochs of this one."""
    from replicator import assemble_without_spark
    from replicator.operate import epoch

    survey = assemble_without_spark.arrow_survey(settings, options.store(settings))
    known = [each.name for each in assemble_without_spark.sources(settings, survey)]
    return known, epoch.list_epochs(survey.facts, survey.lake, source)


def _by_spark(context: typer.Context, settings: Settings, source: str) -> tuple[list[str], list[Epoch]]:
    from replicator.operate import epoch
    from replicator.protocols import UNFENCED

    _, target = _open(settings, source, UNFENCED, debug=options.is_debug(context))
    return [target.source], epoch.list_epochs(target.control, target.lake, source)


def _open(settings: Settings, source: str, fence: Fence, *, debug: bool) -> tuple[SparkSession, LakeSource]:
    from replicator import assemble
    from replicator.session import session

    spark = session(settings, debug=debug, brief=True)
    return spark, assemble.lake_source(spark, settings, source, fence)
