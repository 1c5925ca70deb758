"""What a table does about rows that changed their key, where its batch has some (debezium.md C5, M7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.stages import tuning
from replicator.stages.truncates import Truncated
from replicator.transforms import decode, key_changes, occupants, truncate
from replicator.transforms.letters import letter
from replicator.transforms.transformed import PASSES

_CHAIN = 10
"""How many keys a row is followed back through, beyond the batch."""


@dataclass(frozen=True)
class Past:
    """Where a batch's own changes do not tell: ``stored`` is silver (None: no table yet), ``images`` decodes what the
    deletes of the batch took away, ``history`` the changes in bronze of keys (``_old_text``, ``_old``), None if there
    are none, ``truncated`` the truncates that are known, those of the batch included. ``is_part``: the table's key is a
    part of Kafka's.
    """

    keys: Sequence[str]
    stored: DataFrame | None
    images: Callable[[], DataFrame]
    history: Callable[[DataFrame], DataFrame | None]
    truncated: Callable[[], Truncated]
    is_part: bool


@dataclass(frozen=True)
class Settled:
    """Changes as the fold takes them, without MOVE_COLUMNS, and how many were ignored as ``key_swap``."""

    changes: DataFrame
    swaps: int


@contextmanager
def settled(changes: DataFrame, table: str, past: Past) -> Iterator[Settled]:
    """Changes with MOVE_COLUMNS -> changes in which swaps are undone and moved rows have what they inherit."""
    with ExitStack() as kept:
        stay = changes.where("_stays").count() if past.is_part else 0
        gone = changes.where(~F.col("_stays")) if stay else changes
        judged, swaps = _judged(gone, table, past, kept)
        left = key_changes.departures(changes, past.keys)
        yield Settled(key_changes.plain(_inherited(judged, left, past, kept)), stay + swaps)


def _judged(changes: DataFrame, table: str, past: Past, kept: ExitStack) -> tuple[DataFrame, int]:
    good = changes.where(F.col("_reject").isNull())
    known = good
    unclear = _unclear(good, past)
    earlier = None if unclear is None or unclear.isEmpty() else past.history(unclear)
    if earlier is not None:
        known = good.unionByName(kept.enter_context(tuning.kept(earlier))).where(~F.col("_stays"))
    keys = kept.enter_context(tuning.kept(key_changes.contested(known, past.keys)))
    if keys.isEmpty():
        return changes, 0
    verdicts = kept.enter_context(tuning.kept(_verdicts(known.join(keys, list(past.keys)), earlier, past)))
    marked = changes.join(F.broadcast(verdicts), [*past.keys, "_seq"], how="left")
    swapped = letter(table, F.col("_verdict"), detail=F.lit(None), seq=F.col("_seq"), at="_at.")
    ambiguous = F.col("_verdict") == occupants.AMBIGUOUS
    rejected = F.coalesce("_reject", F.when(ambiguous, swapped)).alias("_reject")
    stays = F.col("_verdict").isNull() | ambiguous
    columns = [rejected if c == "_reject" else F.col(names.spark(c)) for c in changes.columns]
    judged = kept.enter_context(tuning.kept(marked.where(stays).select(*columns)))
    swaps = good.join(verdicts.where(F.col("_verdict") == occupants.SWAP), [*past.keys, "_seq"], how="left_semi")
    return judged, swaps.count()


def _verdicts(known: DataFrame, earlier: DataFrame | None, past: Past) -> DataFrame:
    """What is known of contested keys, judged on top of the rows that silver had before; where bronze was asked for a
    key, it has told those too. A truncate leaves no row behind.
    """
    mark = past.truncated().watermark
    if mark is not None:
        known = truncate.survivors(known, mark)
    held = past.stored
    if held is not None:
        if mark is not None:
            held = truncate.survivors(held, mark)
        if earlier is not None:
            held = held.join(earlier, list(past.keys), how="left_anti")
        known = _unapplied(known, held, past)
        held = held.where(~F.col("_deleted"))
    return key_changes.judged(known, past.images(), held, past.keys)


def _unapplied(changes: DataFrame, held: DataFrame, past: Past) -> DataFrame:
    """Without what a row of silver is, or was before: a redelivery."""
    there = held.select(*map(names.spark, past.keys), F.col("_seq").alias("_is_at"))
    joined = changes.join(there, list(past.keys), how="left")
    newer = (F.col("_seq") > F.col("_is_at")) & ~position.is_copy(F.col("_seq"), F.col("_is_at"))
    return joined.where(F.coalesce(newer, F.lit(True))).drop("_is_at")


def _unclear(changes: DataFrame, past: Past) -> DataFrame | None:
    """Keys of departures of which bronze has to tell more: their row in silver came earlier in what may be the same
    transaction, or silver has none, where a condition (`where`, `apply_as_deletes`) may have taken out of the table
    what held its key at the source.
    """
    if past.stored is None:
        return None
    left = changes.where("_left").select(*map(names.spark, past.keys), F.col("_seq").alias("_q"), "_old_text")
    here = past.stored.select(*map(names.spark, past.keys), "_seq", F.col("_deleted").alias("_gone"))
    same = ~position.is_by_offset(F.col("_q")) & (position.major(F.col("_seq")) == position.major(F.col("_q")))
    gone = F.coalesce("_gone", F.lit(True))
    older = F.coalesce(F.col("_seq") < F.col("_q"), F.lit(True))
    hidden = gone if PASSES in changes.columns else F.lit(False)
    asked = left.join(here, list(past.keys), "left").where(older & (hidden | (~gone & same))).select("_old_text")
    return asked.distinct().withColumn("_old", F.lit(None).cast(changes.schema["_old"].dataType))


def _inherited(changes: DataFrame, left: DataFrame, past: Past, kept: ExitStack) -> DataFrame:
    """From the batch and from silver; what is still missing then from bronze. The rows that ``left`` are all of the
    batch's.
    """
    changes, missing = _adopted(changes, left, past, past.stored, kept)
    if not missing:
        return changes
    history = _whole_history(changes, past, kept)
    if history is None:
        return changes
    links = key_changes.orphans(changes, past.keys)
    known = key_changes.followed(links, key_changes.departures(history, past.keys), None, past.keys)
    found = key_changes.inherited(known, history, None, past.keys, past.truncated().places)
    return key_changes.adopt(changes, found, past.keys)


def _adopted(
    changes: DataFrame, left: DataFrame, past: Past, stored: DataFrame | None, kept: ExitStack
) -> tuple[DataFrame, int]:
    """Values handed on from row to row until nothing more is found; how many stay missing."""
    missing = _missing(changes)
    while missing:
        links = key_changes.followed(key_changes.orphans(changes, past.keys), left, stored, past.keys)
        good = changes.where(F.col("_reject").isNull())
        found = key_changes.inherited(links, good, stored, past.keys, past.truncated().places)
        filled = kept.enter_context(tuning.kept(key_changes.adopt(changes, found, past.keys)))
        before, missing = missing, _missing(filled)
        if missing == before:
            break
        changes = filled
    return changes, missing


def _whole_history(changes: DataFrame, past: Past, kept: ExitStack) -> DataFrame | None:
    """Every change in bronze of the keys that rows without a value came from, and of those before them."""
    wanted = key_changes.orphans(changes, past.keys).select("_old_text", "_old").distinct()
    history: DataFrame | None = None
    for _ in range(_CHAIN):
        found = past.history(wanted)
        if found is None:
            return None
        history = kept.enter_context(tuning.kept(found))
        more = key_changes.orphans(history, past.keys).select("_old_text", "_old").distinct().subtract(wanted)
        if more.isEmpty():
            break
        wanted = wanted.union(more)
    return (
        None if history is None else _adopted(history, key_changes.departures(history, past.keys), past, None, kept)[0]
    )


def _missing(changes: DataFrame) -> int:
    """How many values of moved rows are not known."""
    moved = changes.where(F.col("_old").isNotNull() & F.col("_reject").isNull())
    row = moved.agg(F.sum(F.size(decode.unsent())).alias("missing")).first()
    return 0 if row is None or row["missing"] is None else int(row["missing"])
