"""The truncates of one table: those of a batch, and those in its control row (debezium.md section T)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator.errors import TableStopped
from replicator.spec import BY_POSITION, Declaration
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import truncate


@dataclass(frozen=True)
class TruncateState:
    """``count`` truncates are in the batch. ``watermark`` is the greatest ``_seq`` of all that were applied (T1; None:
    none). ``every`` maps the ``_seq`` of all of them to their ``source.ts_ms`` if the table has a history: older ones
    count there too, since a late row may have lived between two of them.
    """

    count: int
    watermark: str | None
    every: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def places(self) -> Sequence[str]:
        """The ``_seq`` of each known truncate, sorted."""
        return sorted({*self.every, *filter(None, [self.watermark])})


def read(share: TableShare, ordered: DataFrame) -> TruncateState:
    """Return the known truncates, with those among a batch's ordered records. Raises TableStopped if the policy is to
    fail.
    """
    count = sum(group["truncates"] or 0 for group in share.rows)
    row = _row(share)
    stored, listed = row.get("watermark"), row.get("truncates", {}) if share.declaration.has_history else {}
    if not count or share.declaration.truncate == "ignore":
        return TruncateState(count, stored, listed)
    if share.declaration.truncate == "fail":
        raise stop_error(share.declaration, share.table.name)
    found = {each["_seq"]: each["source_ts_ms"] for each in truncate.select_truncates(ordered).collect()}
    every = {**listed, **found} if share.declaration.has_history else {}
    return TruncateState(count, max(filter(None, (stored, *found)), default=None), every)


def stop_error(declared: Declaration, where: str) -> TableStopped:
    """Return the error of a table whose policy is to fail; a table of shards cannot follow any truncate."""
    keep = "Set `truncate: ignore` for the table to keep its rows"
    more = ", including those of the truncated shard" if declared.shards else ", or `truncate: apply` for it to follow"
    return TableStopped("the table was truncated at the source", where=where, fix=f"{keep}{more}.")


def overtaken_warnings(share: TableShare, ordered: DataFrame, known: TruncateState) -> list[str]:
    """Return a warning if rows of a snapshot rank below a truncate of an earlier batch. Rows without a position of
    their own rank above what their partition had passed (Q5), but the truncate may be in another partition: which of
    the two came first cannot be known.
    """
    is_news = share.retried_rejects is None and not share.is_from_start and share.any("has_snapshot")
    if known.watermark is None or known.count or not is_news:
        return []
    below = ordered.where(F.col("is_snapshot") & (F.col("_seq") <= known.watermark)).count()
    way_out = f"run `replicator epoch bump {share.at.source.name} --reason TEXT`, and then take it again"
    warning = f"snapshot_below_truncate: {below:,} rows of a snapshot precede an earlier TRUNCATE, and are ignored"
    return [f"{warning}; if the snapshot was taken after it, {way_out}"] if below else []


def save(share: TableShare, known: TruncateState) -> None:
    """Write the control row; what a history needs stays in it while no history is kept."""
    listed = {"truncates": dict(known.every)} if known.every else {}
    position_fields = {"watermark": known.watermark, "order": share.at.source.order(share.name)}
    share.at.control.put(_path(share), {**_row(share), **position_fields, **listed})


def _row(share: TableShare) -> Mapping[str, Any]:
    """Return the control row; empty if its positions are of another order, that of a table that was removed (Q9). Rows
    of earlier releases do not state the order: theirs is the order that the table had.
    """
    row, order = share.at.control.get(_path(share)) or {}, share.at.source.order(share.name)
    before = share.at.state.orders.get(share.name, BY_POSITION)
    return row if row.get("order", before) == order else {}


def _path(share: TableShare) -> str:
    return share.at.lake.truncates(share.at.source.name, share.name)
