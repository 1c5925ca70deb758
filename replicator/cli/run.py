"""``replicator run``: run the stages once or continuously, or load recorded events without a configuration."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options, recorded_files
from replicator.cli.run_summary import RunSummary, reporting
from replicator.errors import ConfigError, Unreachable, exit_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.protocols import Fence
    from replicator.settings import Settings
    from replicator.stages.run_report import Report, ReportLine

_STOPPING = "stopping: work in progress is finished first; repeat to stop at once"
_AGAIN_SECONDS = 1.0
"""Within this time a second signal counts as the same one: `timeout` sends it to its program and then to the whole
process group.
"""


def run(
    context: typer.Context,
    stages: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(
            help="bronze, silver, gold, publish, canonical; all when none is named. After --recorded: more files.",
            metavar="[STAGE]...",
        ),
    ] = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    once: Annotated[
        bool, typer.Option("--once/--continuous", help="Process what is available now and exit, or run until stopped.")
    ] = True,
    recorded: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--recorded",
            help="Captured events (kcat -C -J) instead of Kafka; no configuration needed.",
            metavar="FILE...",
        ),
    ] = None,
    lake: options.LakeRoot = None,
    declare: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--declare", help="YAML with column types, for events without schemas.", metavar="FILE"),
    ] = None,
    wait: options.Wait = 0,
    as_json: options.Json = False,
) -> None:
    """Bring the lake and the targets up to date with Kafka."""
    debug = options.is_debug(context)
    summary = RunSummary(once=once, as_json=as_json)
    if recorded:
        if lake is None:
            raise ConfigError("--recorded needs --lake DIR", fix="Name the folder to write the tables to.")
        if not once:
            raise ConfigError("recorded files are finite: --continuous is for sources", fix="Leave it out.")
        files = recorded_files.absolute_paths([*recorded, *(stages or [])])
        recorded_files.run(options.settings(env, conf, lake), files, declare, summary, wait=wait, debug=debug)
    elif declare is not None:
        raise ConfigError("--declare needs --recorded FILE", fix="For topics, the declarations in conf/sources apply.")
    elif lake is not None:
        raise ConfigError(
            "neither a source nor a model is configured: with --lake no configuration is read",
            fix=f"Set `lake: {{root: {lake}}}` in one, and omit --lake; or give --recorded FILE.",
        )
    else:
        _run(options.settings(env, conf), stages or [], summary, once=once, wait=wait, debug=debug)
    summary.show()
    if code := exit_code(summary.errors()):
        raise typer.Exit(code)


def _run(settings: Settings, named: list[str], summary: RunSummary, *, once: bool, wait: int, debug: bool) -> None:
    from replicator import assemble
    from replicator.lake import Lake
    from replicator.operate.lock import exclusive
    from replicator.session import session
    from replicator.stages import continuous, pipeline
    from replicator.stages.run_report import CANONICAL, STAGES

    known = (*STAGES, CANONICAL)
    unknown = [stage for stage in named if stage not in known]
    if unknown:
        raise ConfigError(f"unknown stage {unknown[0]!r}", fix=f"Stages are {', '.join(known)}.")
    if CANONICAL in named and not settings.feeds:
        raise ConfigError("no feed is configured", fix="Add one to conf/canonical: see docs/canonical.md.")
    if not (settings.sources or settings.models or settings.feeds):
        raise ConfigError(
            "neither a source nor a model is configured",
            fix="Write conf/sources/NAME.yaml, or set --conf; `--recorded FILE` needs none.",
        )
    stages = named or list(known if settings.feeds else STAGES)
    if once and "bronze" in stages:
        _require_kafka(settings)
    with exclusive(Lake(settings.lake.root), stages, assemble.lease_options(settings, wait)) as fence:
        spark = session(settings, debug=debug)
        assembled = assemble.pipeline(spark, settings, fence)
        with reporting(spark, settings, " ".join(["run", *named]), summary) as report:
            if once:
                pipeline.run_once(spark, assembled, stages, report)
            else:
                upkeep = _maintenance(spark, settings, fence, stages)
                stop = _stop_on_signal()
                with _suppress_shutdown_errors(stop, spark, report) as filtered:
                    continuous.run_continuously(spark, assembled, stages, filtered, stop, upkeep)


def _require_kafka(settings: Settings) -> None:
    """Raise ConfigError or Unreachable before the JVM starts: its Kafka client would retry for 15 seconds, which is
    right only for a continuous run.
    """
    from replicator.endpoint import check_any_reachable

    nowhere = next((source.name for source in settings.sources if source.has_no_origin), None)
    if nowhere is not None:
        raise ConfigError(
            f"source {nowhere} has no bootstrap servers", fix="Set kafka.bootstrap_servers, or its bootstrap_servers."
        )
    for servers in {source.bootstrap_servers for source in settings.sources if not source.objects}:
        check_any_reachable(servers, "Kafka", "Check that a broker runs and `bootstrap_servers` is right.")


def _maintenance(spark: SparkSession, settings: Settings, fence: Fence, stages: Sequence[str]) -> Callable[[], None]:
    """Return what a continuous run does between passes: raise where the lease is lost, and run table maintenance for
    the tables of its stages at the configured interval.
    """
    from replicator import assemble
    from replicator.operate import maintain

    keeper, keys = assemble.lake_tables(settings, fence), settings.maintenance
    last = time.monotonic()

    def now_and_then() -> None:
        nonlocal last
        fence.refuse_if_lost()
        if keys.every is None or time.monotonic() - last < keys.every:
            return
        try:
            for result in maintain.maintain(spark, keeper.tables_of, keeper.tables(spark, stages), keys.keep):
                if result.error is not None:
                    console.narrate(f"maintenance of {result.table}: {result.error}", style="yellow")
        except Unreachable as error:
            console.narrate(f"maintenance: {error}", style="yellow")
        last = time.monotonic()

    return now_and_then


@contextmanager
def _suppress_shutdown_errors(stop: Event, spark: SparkSession, report: Report) -> Iterator[Report]:
    """Ignore errors caused by the shutdown of the JVM. Under `spark-submit` a signal that is sent to the whole process
    group, as terminals and service managers do, ends the JVM too; what fails then is no error, whether raised or
    reported for a table. Raises KeyboardInterrupt, since the current pass cannot continue.
    """
    from replicator.jvm.failures import is_stopped

    def is_over() -> bool:
        return stop.is_set() and is_stopped(spark)

    def heard(line: ReportLine) -> None:
        if line.error is None or not is_over():
            report(line)

    try:
        yield heard
    except Exception:
        if not is_over():
            raise
    if is_over():
        raise KeyboardInterrupt


def _stop_on_signal() -> Event:
    """Return an event that the first SIGTERM or Ctrl-C sets: the current pass is finished. A later one ends the process
    at once, as in a crash: a pass may be waiting for a server that does not respond.
    """
    stop, since = Event(), 0.0

    def signalled(number: int, _: object) -> None:
        nonlocal since
        if not stop.is_set():
            since = time.monotonic()
            stop.set()
            # in another thread: the signal may have interrupted the main thread while it was writing a line
            Thread(target=console.narrate, args=(_STOPPING, "yellow"), daemon=True).start()
        elif time.monotonic() - since >= _AGAIN_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signalled)
    return stop
