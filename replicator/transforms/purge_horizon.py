"""What a purge leaves behind: a ``_seq`` below which a key that is absent may have been deleted (debezium.md M9)."""

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

    ``read`` has by topic and partition the last offset that silver had read when it was purged: what is read again of
    that (a topic from its beginning) has had its say and is no late change. ``version`` is that of bronze, up to which
    it had read; None in rows that do not say it.
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
) -> DataFrame:
    """Changes with ``_at``, some of which are not above the horizon -> the same, with ``_purged BOOLEAN``: whether the
    change belongs to a row that was purged, and must not bring it back.

    Of these the ones that came after the purge have a ``_reject``, all of them where they are ``is_late`` (tried again)
    or ``is_news`` (in bronze since then). Changes up to ``above`` are left alone. Where only offsets order, the horizon
    may be of another partition, and what came after the purge is newer than all that went from its own (Q3, Q8).
    """
    here = stored.select(*[F.col(names.quote_spark(key)) for key in keys], F.lit(True).alias("_is_here"))
    met = changes.join(here, list(keys), how="left")
    came_later = F.lit(True) if is_news else F.col("_at.offset") > F.coalesce(_read(horizon), F.lit(-1))
    is_newer = position.is_by_offset(F.col("_seq")) & came_later
    is_low = (F.col("_seq") > above) & (F.col("_seq") <= horizon.seq) & ~is_newer
    is_purged = F.col("_reject").isNull() & is_low & F.col("_is_here").isNull()
    late = F.lit(True) if is_late else came_later
    dead = to_dead_letter(table, F.lit(REASON), detail=F.lit(None), seq=F.col("_seq"), at="_at.")
    others = [F.col(names.quote_spark(column)) for column in changes.columns if column != "_reject"]
    rejected = F.when(is_purged & late, dead).otherwise(F.col("_reject"))
    return met.select(*others, rejected.alias("_reject"), (is_purged & ~late).alias("_purged"))


def clear_unknown(rows: DataFrame, stored: DataFrame, keys: Sequence[str], horizon: Horizon) -> DataFrame:
    """Folded rows; of keys that are not in the table, columns that nobody knows count as deleted at the horizon: a
    delete may be forgotten there, and no older value may pass it (M4). A row below it, which only offsets of another
    partition than the horizon's order, takes what comes after itself.
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
