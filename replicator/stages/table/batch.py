"""The changes of one table's share with their counts, and the warnings about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.stages.table import hidden_changes, repeated_snapshots, truncates
from replicator.stages.table.decoding import Decoded
from replicator.stages.table.schema_change import PlannedChange
from replicator.stages.table.truncates import TruncateState
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import decode, ties
from replicator.transforms.columns.layout import Layout
from replicator.transforms.display import as_texts
from replicator.transforms.purge_horizon import Horizon

_SHOWN = 3
"""So many keys are listed in a warning."""


@dataclass(frozen=True)
class Batch:
    """Decoded changes (persisted) of one table and their counts: ``good`` ones, whether some of those are ``partial``,
    ``rejected`` ones by reason.

    ``departed`` are deletes besides the changes, under the former keys of rows; ``purged`` is the horizon up to which
    deleted rows were purged from the table.
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
    """Return the batch with the transformed changes (``made``). Its counts are those of the tally, unless there is a
    purge horizon or a rejected change.
    """
    tally = read.tally if purged is None else None  # a horizon turns changes into dead letters
    good, partial, rejected = _by_reason(made) if tally is None or tally["rejected"] else (*_of_good(tally), {})
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
    """Return the warnings for the user about these changes, one sentence each."""
    found = []
    if read.guessed:
        found.append(
            f"no types are known for {names.shorten_list(sorted(read.guessed))}: they were inferred; declare them"
        )
    if read.overruled:
        found.append(
            f"{names.shorten_list(sorted(read.overruled))}: declared, but the records' own schemas give other types"
        )
    found += read.schema.plan.warnings
    if share.has_place_ties:
        found += _ties(made, read.schema.plan.layout)
    return [
        *found,
        *truncates.overtaken_warnings(share, read.ordered, truncated),
        *repeated_snapshots.find_warnings(share),
        *hidden_changes.find_warnings(share),
    ]


def _ties(made: DataFrame, layout: Layout) -> list[str]:
    """Return a warning if partitions contradict each other (debezium.md Q11); ``_seq`` decides in any case."""
    tied = ties.across_partitions(made, layout.keys, list(layout.types)).limit(_SHOWN + 1)
    shown = tied.select(*as_texts(layout.keys)).collect()
    examples = ", ".join(f"({', '.join(map(str, row))})" for row in shown[:_SHOWN])
    return [f"cross_partition_tie: partitions differ at the same source position, key {examples}"] if shown else []


def _of_good(tally: Mapping[str, int]) -> tuple[int, bool]:
    return tally["good"], tally["partial"] > 0


def _by_reason(made: DataFrame) -> tuple[int, bool, dict[str, int]]:
    """Count the good changes, whether one of those is partial, and the rejected changes by reason."""
    incomplete = F.size(decode.unavailable_columns()) > 0
    tally = made.groupBy(F.col("_reject.reason").alias("reason")).agg(
        F.count("*").alias("count"), F.max(incomplete).alias("partial")
    )
    counts = {row["reason"]: row for row in tally.collect()}
    good = counts.pop(None, None)
    rejected = {reason: row["count"] for reason, row in counts.items()}
    return (0, False, rejected) if good is None else (good["count"], bool(good["partial"]), rejected)
