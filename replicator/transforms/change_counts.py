"""What is counted of changes while they are computed, as conditions by name: a job less for each that asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.transforms import decode
from replicator.transforms.keys.row_keys import CAME_FROM

_LACKS = "lacks "


def by_outcome() -> dict[str, Column]:
    """How many changes are ``good``, how many of those ``partial``, and how many are ``rejected``."""
    is_good = F.col("_reject").isNull()
    return {"good": is_good, "partial": is_good & (F.size(decode.unavailable_columns()) > 0), "rejected": ~is_good}


def departed() -> dict[str, Column]:
    """How many changes, of some with FROM, took their row from another key."""
    return {"departed": F.col("_reject").isNull() & F.col(CAME_FROM).isNotNull()}


def moved(columns: Iterable[str]) -> dict[str, Column]:
    """The same of changes with MOVE_COLUMNS, without those that are none since their row ``stays``.

    Besides, how many rows ``moved`` (came from a key or left one), how many records with a transaction ``took`` a row
    away, and for each of the columns how many rows that came from another key lack it (:func:`missing_by_column`).
    """
    good, stays, came = F.col("_reject").isNull(), F.col("_stays"), F.col("_old").isNotNull()
    lacks = {f"{_LACKS}{each}": good & came & F.array_contains("_unavailable", each) for each in columns}
    return {
        **{name: ~stays & condition for name, condition in by_outcome().items()},
        "stays": stays,
        "moved": came | F.col("_left"),
        "took": ~stays & good & F.col("_deleted") & F.col("_tx").isNotNull(),
        **lacks,
    }


def missing_by_column(told: Mapping[str, int]) -> dict[str, int]:
    """How many rows lack each column that is not known of all of them, by its name."""
    return {name.removeprefix(_LACKS): count for name, count in told.items() if name.startswith(_LACKS) and count}
