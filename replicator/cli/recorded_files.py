"""``replicator run --recorded``: captured events into a lake, without any configuration."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.cli import console
from replicator.cli.run_summary import RunSummary, reporting
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from replicator.assemble import Recording
    from replicator.lake import Lake
    from replicator.protocols import Fence
    from replicator.settings import Settings
    from replicator.spec import SourceSpec

_SMALL_BYTES = 4 << 20


def absolute_paths(given: list[str]) -> list[str]:
    """Captured files by their absolute names. Raises ConfigError for no name, which would be the folder that one is in,
    and for that of a stage, which is no file here; BadRecording for one that is not there: before there is anything of
    a lake.
    """
    from replicator.config import settingkeys
    from replicator.sources.kcat_files import refuse_missing
    from replicator.stages.run_report import CANONICAL, STAGES

    if not all(given):
        raise ConfigError("--recorded has a file without a name", mend="Name it; is a variable of the shell not set?")
    stage = next((each for each in given if each in (*STAGES, CANONICAL) and not Path(each).exists()), None)
    if stage is not None:
        raise ConfigError(f"{stage} is a stage, not a file: --recorded runs bronze and silver", mend="Leave it out.")
    files = [settingkeys.absolute_path(file) for file in given]
    refuse_missing(files)
    return files


def run(
    settings: Settings, files: list[str], declare: Path | None, told: RunSummary, *, wait: int, debug: bool
) -> None:
    """Take captured events into the lake of the settings. The lease comes first, so that a second driver is told soon;
    of a lake that is not there behind the look at the files: those that give nothing make no folder.
    """
    from replicator import assemble
    from replicator import settings as configuration
    from replicator.lake import Lake
    from replicator.operate.lock import exclusive
    from replicator.protocols import UNFENCED
    from replicator.session import session
    from replicator.spec import SourceSpec

    declared = configuration.load_declarations(declare) if declare is not None else SourceSpec("", "")
    settings, lake = settings.with_formats_of(declared), Lake(settings.lake.root)
    leases = exclusive(lake, ("bronze", "silver"), assemble.lease_options(settings, wait))
    with ExitStack() as kept:
        fence = None if _is_new(lake) else kept.enter_context(leases)
        spark: SparkSession = session(settings, debug=debug, brief=_is_small(files))
        events = assemble.open_recording(spark, files)
        if fence is None:
            fence = kept.enter_context(leases) if events.topics else UNFENCED
        for table, nearest in _ingest(spark, settings, events, declared, fence, told).items():
            console.narrate(f"{declare} speaks of {table}, and no record is of it{nearest}", style="yellow")


def _is_new(lake: Lake) -> bool:
    """Whether it would be a folder of this machine that is not there yet."""
    from replicator.lake import local_path

    return lake.is_local() and not local_path(lake.root).exists()


def _ingest(
    spark: SparkSession, settings: Settings, events: Recording, declared: SourceSpec, fence: Fence, told: RunSummary
) -> dict[str, str]:
    """The events through bronze and silver; tables that are declared and in no record, with what is said of each."""
    from replicator import assemble
    from replicator.operate.progress import source_tables
    from replicator.stages import bronze, pipeline
    from replicator.stages.run_report import ReportLine

    made, shares = assemble.recording_pipeline(spark, settings, events, declared, fence)
    with reporting(spark, settings, "run --recorded", told) as report:
        for ingestion, topics in shares.items():
            started = time.monotonic()
            lost, rows = bronze.lost_commit(spark, ingestion), bronze.ingest_files(spark, ingestion, topics)
            report(
                ReportLine("bronze", ingestion.source, rows, rows, seconds=time.monotonic() - started, warnings=lost)
            )
        pipeline.run_once(spark, made, ("silver",), report)
        return source_tables.without_records(spark, made.refinements)


def _is_small(files: Sequence[str]) -> bool:
    """Whether events are taken sooner than a thorough compiler would pay."""
    return all(map(os.path.isfile, files)) and sum(map(os.path.getsize, files)) <= _SMALL_BYTES
