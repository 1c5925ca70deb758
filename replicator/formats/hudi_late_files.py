"""Files of a write to a Hudi table that another writer has rolled back meanwhile.

A driver that was suspended inside of a write goes on with it when it is resumed. If another one has taken over, that
one has rolled the write back and removed its files; those written afterwards stay. Hudi refuses to commit them, but
takes a file for a committed one as soon as the timeline begins after its instant: at once in a new table, later when
the commits of that time are archived. Where such a file is the first of its file group, its rows are there twice.

Logs of merge on read bear another instant in their names and stay: readers skip blocks of an unknown instant, and the
next compaction leaves them behind.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError, first_line
from replicator.formats import control
from replicator.jvm.failures import ALL_FAILURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.formats.hudi_timeline import Timeline

LOG = logging.getLogger(__name__)

_MARKERS = ".hoodie/.temp"
"""Hudi's folder with a folder per unfinished instant, in which each file that was begun has a marker."""

_MARKER = ".marker."
"""What stands in a marker's name between the name of its file and the kind of the write."""


def remove(spark: SparkSession, location: str, timeline: Timeline, begun: str) -> None:
    """Remove the files of writes since ``begun`` that the timeline does not have, neither completed nor pending: they
    were rolled back. The caller's own write has failed. If the store fails as well, a warning is logged.
    """
    try:
        _remove(spark, location, timeline, begun)
    except (*ALL_FAILURES, ReplicatorError) as error:
        LOG.warning("late_files_not_removed table=%s reason=%s", location, first_line(error))


def _remove(spark: SparkSession, location: str, timeline: Timeline, begun: str) -> None:
    folder = f"{location}/{_MARKERS}"
    if not (timeline.exists(spark) and control.exists(spark, folder)):
        return
    markers = [path.partition("/")[::2] for path, _ in control.list_files(spark, folder)]
    instants = {instant for instant, _ in markers if instant >= begun} - timeline.instants(spark)
    for instant, marker in markers:
        file = marker.rpartition(_MARKER)[0]
        if instant in instants and file.endswith(f"_{instant}.parquet"):
            control.remove(spark, f"{location}/{file}")
    for instant in instants:
        control.remove(spark, f"{folder}/{instant}")
