"""The changes of one table's share, counted, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.stages.table import repeated_snapshots, truncates
from replicator.stages.table.decoding import Decoded
from replicator.stages.table.schema_change import PlannedChange
from replicator.stages.table.truncates import TruncateState
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import decode, ties
from replicator.transforms.columns.layout import Layout
from replicator.transforms.purge_horizon import Horizon

_SHOWN = 3
"""So many keys are named in an alarm."""


@dataclass(frozen=True)
class Batch:
    """Decoded changes (persisted) of one table with what was counted in them: ``good`` ones, whether some of those are
    ``partial``, ``rejected`` ones by reason. ``departed`` rows are beside the changes; ``purged`` is how far deleted
    rows are gone from the table.
    """

    changes: DataFrame
    schema: PlannedChange
    stored: StructType | None
    good: int
    partial: bool
    truncated: TruncateState
    purged: Horizon | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    departed: DataFrame | None = None

    @property
    def layout(self) -> Layout:
        """The columns of the changes."""
        return self.schema.plan.layout


def build(read: Decoded, made: DataFrame, truncated: TruncateState, purged: Horizon | None) -> Batch:
    """The batch of what was ``made`` of the changes that were read: as their tally says, where that holds of it."""
    told = read.tally if purged is None else None  # a horizon makes dead letters of changes
    good, partial, rejected = _by_reason(made) if told is None or told["rejected"] else (*_of_good(told), {})
    return Batch(
        made,
        read.schema,
        read.stored,
        good=good + read.replaced,
        partial=partial,
        truncated=truncated,
        purged=purged,
        rejected=rejected,
        departed=read.departed,
    )


def warnings(share: TableShare, read: Decoded, made: DataFrame, truncated: TruncateState) -> list[str]:
    """What a user should know of these changes, in sentences."""
    told = []
    if read.guessed:
        told.append(
            f"no types are known for {names.shorten_list(sorted(read.guessed))}: they were inferred; declare them"
        )
    if read.overruled:
        told.append(
            f"{names.shorten_list(sorted(read.overruled))}: declared, but the records' own schemas give other types"
        )
    told += read.schema.plan.warnings
    if share.tied:
        told += _ties(made, read.schema.plan.layout)
    return [
        *told,
        *truncates.overtaken_warnings(share, read.ordered, truncated),
        *repeated_snapshots.find_warnings(share),
    ]


def _ties(made: DataFrame, layout: Layout) -> list[str]:
    """An alarm where partitions contradict each other (debezium.md Q11); ``_seq`` decides all the same."""
    tied = ties.across_partitions(made, layout.keys, list(layout.types)).limit(_SHOWN + 1).collect()
    shown = ", ".join(str(tuple(row)) for row in tied[:_SHOWN])
    return [f"cross_partition_tie: partitions disagree about one place of the source, key {shown}"] if tied else []


def _of_good(told: Mapping[str, int]) -> tuple[int, bool]:
    return told["good"], told["partial"] > 0


def _by_reason(made: DataFrame) -> tuple[int, bool, dict[str, int]]:
    """How many changes are good, whether one of those is partial, and how many are not, by reason."""
    incomplete = F.size(decode.unavailable_columns()) > 0
    tally = made.groupBy(F.col("_reject.reason").alias("reason")).agg(
        F.count("*").alias("count"), F.max(incomplete).alias("partial")
    )
    counts = {row["reason"]: row for row in tally.collect()}
    good = counts.pop(None, None)
    rejected = {reason: row["count"] for reason, row in counts.items()}
    return (0, False, rejected) if good is None else (good["count"], bool(good["partial"]), rejected)
