"""Counts of changes, as conditions by name: they are counted while the changes are computed, without a job of their
own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.transforms import decode
from replicator.transforms.keys.row_keys import CAME_FROM

_LACKS = "lacks "


def by_outcome() -> dict[str, Column]:
    """Conditions for ``good`` changes, those of them that are ``partial``, and ``rejected`` ones."""
    is_good = F.col("_reject").isNull()
    return {"good": is_good, "partial": is_good & (F.size(decode.unavailable_columns()) > 0), "rejected": ~is_good}


def departed() -> dict[str, Column]:
    """Condition for changes, with CAME_FROM, whose row came from another key."""
    return {"departed": F.col("_reject").isNull() & F.col(CAME_FROM).isNotNull()}


def moved(columns: Iterable[str]) -> dict[str, Column]:
    """The conditions of :func:`by_outcome` for changes with MOVE_COLUMNS, without deletes whose row ``stays``.

    In addition: rows that ``moved`` (came from a key or left one), records with a transaction that ``took`` a row away,
    and for each of the columns the rows from another key that lack it (:func:`missing_by_column`).
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


def missing_by_column(counts: Mapping[str, int]) -> dict[str, int]:
    """The number of rows that lack each column, for columns that some row lacks."""
    return {name.removeprefix(_LACKS): count for name, count in counts.items() if name.startswith(_LACKS) and count}
