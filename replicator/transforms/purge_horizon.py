"""The purge horizon: a ``_seq`` up to which an absent key may have been deleted and purged (debezium.md M9)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.transforms import merge
from replicator.transforms.dead_letters import to_dead_letter

REASON = "below_purge_horizon"
_OFFSETS = "MAP<STRING, MAP<STRING, BIGINT>>"


@dataclass(frozen=True)
class Horizon:
    """``seq`` is that of the newest deleted row that was purged; every deleted row up to it is gone.

    ``read`` is, by topic and partition, the last offset that silver had read at the time of the purge: a record up to
    it that is read again (a topic from its beginning) was applied before and is not late. ``version`` is the bronze
    version that silver had read; None in control rows without it.
    """

    seq: str
    read: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    version: int | None = None


def mark_purged(
    changes: DataFrame,
    stored: DataFrame,
    keys: Sequence[str],
    horizon: Horizon,
    table: str,
    *,
    above: str = "",
    is_late: bool = False,
    is_news: bool = False,
    is_by_topic: bool = False,
) -> DataFrame:
    """Add ``_purged BOOLEAN`` to changes with ``_at``: whether the change belongs to a purged row and must not bring it
    back.

    Changes of purged rows that arrived after the purge get a ``_reject`` instead; with ``is_late`` (retried) or
    ``is_news`` (in bronze since the purge) all of them do. Changes up to ``above`` are left alone. Where only offsets
    give the order, the horizon may be from another partition, and a change that arrived after the purge is newer than
    everything purged from its own partition (Q3, Q8). ``is_by_topic``: each topic has keys of its own, so nothing was
    purged of one that the table had not read.
    """
    here = stored.select(*[F.col(names.quote_spark(key)) for key in keys], F.lit(True).alias("_is_here"))
    met = changes.join(here, list(keys), how="left")
    came_later = F.lit(True) if is_news else F.col("_at.offset") > F.coalesce(_read(horizon), F.lit(-1))
    is_newer = position.is_by_offset(F.col("_seq")) & came_later
    if is_by_topic:
        is_newer = is_newer | ~F.col("_at.topic").isin(*horizon.read)
    is_low = (F.col("_seq") > above) & (F.col("_seq") <= horizon.seq) & ~is_newer
    is_purged = F.col("_reject").isNull() & is_low & F.col("_is_here").isNull()
    late = F.lit(True) if is_late else came_later
    dead = to_dead_letter(table, F.lit(REASON), detail=F.lit(None), seq=F.col("_seq"), at="_at.")
    others = [F.col(names.quote_spark(column)) for column in changes.columns if column != "_reject"]
    rejected = F.when(is_purged & late, dead).otherwise(F.col("_reject"))
    return met.select(*others, rejected.alias("_reject"), (is_purged & ~late).alias("_purged"))


def clear_unknown(rows: DataFrame, stored: DataFrame, keys: Sequence[str], horizon: Horizon) -> DataFrame:
    """In folded rows of keys that are not in the table, treat unknown columns as deleted at the horizon: a delete may
    have been purged there, and no older value may pass it (M4). For a row below the horizon (only offsets give the
    order, and the horizon is from another partition) they count as deleted at the row's own position.
    """
    here = stored.select(*[F.col(names.quote_spark(key)) for key in keys], F.lit(True).alias("_is_here"))
    cleared_at = F.least(F.lit(f"{horizon.seq}-"), merge.default_position(F.col("_seq"), F.lit(True)))
    forgotten = F.transform_values("_column_seq", lambda _, place: F.when(place == "", cleared_at).otherwise(place))
    own = F.when(F.col("_is_here").isNull(), forgotten).otherwise(F.col("_column_seq")).alias("_column_seq")
    columns = [own if column == "_column_seq" else F.col(names.quote_spark(column)) for column in rows.columns]
    return rows.join(here, list(keys), how="left").select(*columns)


def _read(horizon: Horizon) -> Column:
    offsets = F.from_json(F.lit(json.dumps(horizon.read)), _OFFSETS)
    of_topic = F.try_element_at(offsets, F.col("_at.topic"))
    return F.try_element_at(of_topic, F.col("_at.partition").cast("string"))
