"""The truncates of one table: those of a batch, and what its control row remembers (debezium.md section T)."""

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
    none), ``every`` holds them all with their ``source.ts_ms``, where the table has a history: an older one counts
    there too, since a row that comes late may have lived between two of them.
    """

    count: int
    watermark: str | None
    every: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def places(self) -> Sequence[str]:
        """The ``_seq`` of each that is known, sorted."""
        return sorted({*self.every, *filter(None, [self.watermark])})


def read(share: TableShare, ordered: DataFrame) -> TruncateState:
    """What is known, with the truncates among a batch's ordered records. Raises TableStopped where the policy says
    so.
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
    """The error of a table whose policy is to stop; one of shards can follow no truncate."""
    keep = "Set `truncate: ignore` for the table to keep its rows"
    more = ", those of the shard that is empty too" if declared.shards else ", or `truncate: apply` for it to follow"
    return TableStopped("the table was truncated at the source", where=where, mend=f"{keep}{more}.")


def overtaken_warnings(share: TableShare, ordered: DataFrame, known: TruncateState) -> list[str]:
    """A word where rows of a snapshot stand below a truncate of an earlier batch. Those that say no place of their own
    stand above what their partition had passed (Q5), and the truncate may lie in another one: nobody can tell which of
    the two came first.
    """
    is_news = share.again is None and not share.whole and share.any("has_snapshot")
    if known.watermark is None or known.count or not is_news:
        return []
    below = ordered.where(F.col("is_snapshot") & (F.col("_seq") <= known.watermark)).count()
    way_out = f"`replicator epoch bump {share.at.source.name} --reason TEXT`, and then take it once more"
    word = f"snapshot_below_truncate: {below:,} rows of a snapshot stand below an earlier TRUNCATE, and are left out"
    return [f"{word}; if it was taken behind that one, {way_out}"] if below else []


def save(share: TableShare, known: TruncateState) -> None:
    """Write the control row; what a history needs stays in it while none is kept."""
    listed = {"truncates": dict(known.every)} if known.every else {}
    told = {"watermark": known.watermark, "order": share.at.source.order(share.name)}
    share.at.control.put(_path(share), {**_row(share), **told, **listed})


def _row(share: TableShare) -> Mapping[str, Any]:
    """The control row; nothing where its places are of another order, that of a table that was removed (Q9). One of
    an earlier checkout does not say: it is of the order that the table had.
    """
    row, order = share.at.control.get(_path(share)) or {}, share.at.source.order(share.name)
    before = share.at.reached.orders.get(share.name, BY_POSITION)
    return row if row.get("order", before) == order else {}


def _path(share: TableShare) -> str:
    return share.at.lake.truncates(share.at.source.name, share.name)
