"""``replicator run --recorded``: captured events into a lake, without any configuration."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.cli import console
from replicator.cli.told import Told, reporting
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from replicator.assemble import Captured
    from replicator.lake import Lake
    from replicator.protocols import Fence
    from replicator.settings import Settings
    from replicator.spec import SourceSpec

_FEW_BYTES = 4 << 20


def absolute(given: list[str]) -> list[str]:
    """Captured files by their absolute names. Raises ConfigError for no name, which would be the folder that one is in,
    and for that of a stage, which is no file here; BadRecording for one that is not there: before there is anything of
    a lake.
    """
    from replicator.config import settingkeys
    from replicator.sources.lines import refuse_absent
    from replicator.stages.lines import CANONICAL, STAGES

    if not all(given):
        raise ConfigError("--recorded has a file without a name", mend="Name it; is a variable of the shell not set?")
    stage = next((each for each in given if each in (*STAGES, CANONICAL) and not Path(each).exists()), None)
    if stage is not None:
        raise ConfigError(f"{stage} is a stage, not a file: --recorded runs bronze and silver", mend="Leave it out.")
    files = [settingkeys.absolute(file) for file in given]
    refuse_absent(files)
    return files


def run(settings: Settings, files: list[str], declare: Path | None, told: Told, *, wait: int, debug: bool) -> None:
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

    declared = configuration.declared(declare) if declare is not None else SourceSpec("", "")
    settings, lake = settings.with_formats_of(declared), Lake(settings.lake.root)
    leases = exclusive(lake, ("bronze", "silver"), assemble.terms(settings, wait))
    with ExitStack() as kept:
        fence = None if _is_nowhere(lake) else kept.enter_context(leases)
        spark: SparkSession = session(settings, debug=debug, brief=_are_few(files))
        events = assemble.captured(spark, files)
        if fence is None:
            fence = kept.enter_context(leases) if events.topics else UNFENCED
        for table, nearest in _taken(spark, settings, events, declared, fence, told).items():
            console.narrate(f"{declare} speaks of {table}, and no record is of it{nearest}", style="yellow")


def _is_nowhere(lake: Lake) -> bool:
    """Whether it would be a folder of this machine that is not there yet."""
    from replicator.lake import on_disk

    return lake.is_local() and not on_disk(lake.root).exists()


def _taken(
    spark: SparkSession, settings: Settings, events: Captured, declared: SourceSpec, fence: Fence, told: Told
) -> dict[str, str]:
    """The events through bronze and silver; tables that are declared and in no record, with what is said of each."""
    from replicator import assemble
    from replicator.operate.where import carried
    from replicator.stages import bronze, pipeline
    from replicator.stages.lines import Line

    made, shares = assemble.recorded(spark, settings, events, declared, fence)
    with reporting(spark, settings, "run --recorded", told) as report:
        for ingestion, topics in shares.items():
            started = time.monotonic()
            lost, rows = bronze.lost_commit(spark, ingestion), bronze.ingest_files(spark, ingestion, topics)
            report(Line("bronze", ingestion.source, rows, rows, seconds=time.monotonic() - started, warnings=lost))
        pipeline.run_once(spark, made, ("silver",), report)
        return carried.without_records(spark, made.refinements)


def _are_few(files: Sequence[str]) -> bool:
    """Whether events are taken sooner than a thorough compiler would pay."""
    return all(map(os.path.isfile, files)) and sum(map(os.path.getsize, files)) <= _FEW_BYTES
