"""What a batch does about updates that gave their row another key, where declared keys are more than the records'."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.stages import tuning
from replicator.stages.table.transforming import BatchTransform
from replicator.transforms.columns.layout import Layout
from replicator.transforms.keys import departures
from replicator.transforms.table_transform import execution


@dataclass(frozen=True)
class FormerKeyInputs:
    """What tells of them: ``layout`` has the source's columns, ``images`` decodes rows before updates, and ``stored``
    is silver (None: no table yet).
    """

    layout: Layout
    transform: BatchTransform
    images: Callable[[], DataFrame]
    stored: DataFrame | None


@contextmanager
def build_deletes(changes: DataFrame, past: FormerKeyInputs) -> Iterator[DataFrame]:
    """The deletes under the former keys, as changes of the table with ``_at``, kept for the time of the block."""
    keys: Sequence[str] = past.transform.layout.keys
    made = execution.apply_filter(past.transform.made(departures.departures(changes, past.layout)))
    with tuning.persist(past.images()) as images:
        left = departures.unoccupied_departures(
            made.where(F.col("_reject").isNull()), images, changes, past.stored, keys
        )
        with tuning.persist(left) as kept:
            yield kept
