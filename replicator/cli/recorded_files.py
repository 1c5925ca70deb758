"""``replicator run --recorded``: load recorded events into a lake without a configuration."""

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


def absolute_paths(names: list[str]) -> list[str]:
    """Return recorded files by their absolute paths, before anything of a lake is created. Raises ConfigError for an
    empty name, which would resolve to the current folder, and for the name of a stage that is no file; BadRecording for
    a missing file.
    """
    from replicator.config import settingkeys
    from replicator.sources.kcat_files import refuse_missing
    from replicator.stages.run_report import CANONICAL, STAGES

    if not all(names):
        raise ConfigError(
            "--recorded was given an empty file name", fix="Name the file; a shell variable may be unset."
        )
    stage = next((each for each in names if each in (*STAGES, CANONICAL) and not Path(each).exists()), None)
    if stage is not None:
        raise ConfigError(f"{stage} is a stage, not a file: --recorded runs bronze and silver", fix="Leave it out.")
    files = [settingkeys.absolute_path(file) for file in names]
    refuse_missing(files)
    return files


def run(
    settings: Settings, files: list[str], declare: Path | None, summary: RunSummary, *, wait: int, debug: bool
) -> None:
    """Load recorded events into the lake of the settings. The lease is acquired first, so that a second driver fails
    early. Where the lake does not exist yet, it is acquired after the files are examined: files without events create
    no folder.
    """
    from replicator import assemble
    from replicator import settings as configuration
    from replicator.lake import Lake
    from replicator.operate.lock import exclusive
    from replicator.protocols import UNFENCED
    from replicator.session import session
    from replicator.spec import SourceSpec

    declared = configuration.load_declarations(declare) if declare is not None else SourceSpec("", "")
    if _selects_topics(declared):
        what = f"warning: {declare} selects tables, but every record of a file is loaded"
        console.narrate(f"{what}: `include`, `exclude` and `topics` are for topics of Kafka", style="yellow")
    settings, lake = settings.with_formats_of(declared), Lake(settings.lake.root)
    leases = exclusive(lake, ("bronze", "silver"), assemble.lease_options(settings, wait))
    with ExitStack() as stack:
        fence = None if _is_new(lake) else stack.enter_context(leases)
        spark: SparkSession = session(settings, debug=debug, brief=_is_small(files))
        events = assemble.open_recording(spark, files)
        if fence is None:
            fence = stack.enter_context(leases) if events.topics else UNFENCED
        for table, nearest in _ingest(spark, settings, events, declared, fence, summary).items():
            console.narrate(f"{declare} declares {table}, but no record belongs to it{nearest}", style="yellow")


def _selects_topics(declared: SourceSpec) -> bool:
    """Return whether a declaration has `include`, `exclude` or `topics`, which select from the topics of a cluster."""
    from replicator.config import topicnames

    return declared.topics not in ("", topicnames.topic_pattern(declared.name))


def _is_new(lake: Lake) -> bool:
    """Return whether the lake is a local folder that does not exist yet."""
    from replicator.lake import local_path

    return lake.is_local() and not local_path(lake.root).exists()


def _ingest(
    spark: SparkSession, settings: Settings, events: Recording, declared: SourceSpec, fence: Fence, summary: RunSummary
) -> dict[str, str]:
    """Process the events through bronze and silver. Return the declared tables that no record is of, each with a
    suggestion.
    """
    from replicator import assemble
    from replicator.operate.progress import source_tables
    from replicator.stages import bronze, pipeline
    from replicator.stages.run_report import ReportLine

    pipeline_parts, shares = assemble.recording_pipeline(spark, settings, events, declared, fence)
    with reporting(spark, settings, "run --recorded", summary) as report:
        for ingestion, topics in shares.items():
            started = time.monotonic()
            lost, rows = bronze.lost_commit(spark, ingestion), bronze.ingest_files(spark, ingestion, topics)
            report(
                ReportLine("bronze", ingestion.source, rows, rows, seconds=time.monotonic() - started, warnings=lost)
            )
        pipeline.run_once(spark, pipeline_parts, ("silver",), report)
        return source_tables.without_records(spark, pipeline_parts.refinements)


def _is_small(files: Sequence[str]) -> bool:
    """Return whether the events are so few that loading them takes less time than an optimizing compiler would save."""
    return all(map(os.path.isfile, files)) and sum(map(os.path.getsize, files)) <= _SMALL_BYTES
