"""Handle updates that gave their row another key, if the declared key has more columns than the records' key."""

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
    """The inputs for :func:`build_deletes`: ``layout`` has the source's columns, ``images`` decodes the rows before the
    updates, and ``stored`` is silver (None: no table yet).
    """

    layout: Layout
    transform: BatchTransform
    images: Callable[[], DataFrame]
    stored: DataFrame | None


@contextmanager
def build_deletes(changes: DataFrame, past: FormerKeyInputs) -> Iterator[DataFrame]:
    """Yield the deletes under the former keys, as changes of the table with ``_at``; persisted while the context is
    open.
    """
    keys: Sequence[str] = past.transform.layout.keys
    made = execution.apply_filter(past.transform.apply(departures.departures(changes, past.layout)))
    with tuning.persist(past.images()) as images:
        unoccupied = departures.unoccupied_departures(
            made.where(F.col("_reject").isNull()), images, changes, past.stored, keys
        )
        with tuning.persist(unoccupied) as persisted:
            yield persisted
