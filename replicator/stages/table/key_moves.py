"""What a table does about rows that changed their key, where its batch has some (debezium.md C5, M7).

Such rows are few, and what is asked of them costs its planning: so what has to be known is counted while rows are
computed, silver is read once, for the keys that are concerned, and only columns that some row lacks are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.stages import tuning
from replicator.stages.table.truncates import TruncateState
from replicator.transforms import change_counts, truncate
from replicator.transforms.dead_letters import to_dead_letter
from replicator.transforms.keys import key_changes, key_swaps
from replicator.transforms.keys.key_changes import KeyHistory
from replicator.transforms.table_transform.steps import PASSES

_CHAIN = 10
"""How many keys a row is followed back through, beyond the batch."""

Counts = Mapping[str, int]
"""What was counted of changes: see ``change_counts.moved``."""


@dataclass(frozen=True)
class History:
    """The good changes in bronze of some keys, with what was counted of them and of the columns that were asked for;
    ``images`` decodes what their deletes took away.
    """

    changes: DataFrame
    told: Counts
    images: Callable[[], DataFrame]


@dataclass(frozen=True)
class Past:
    """Where a batch's own changes do not tell: ``stored`` is silver (None: no table yet), ``images`` decodes what the
    deletes of the batch took away, ``history`` asks bronze for keys (``_old_text``, ``_old``); None if it has nothing.
    Both are kept while the batch is. ``truncated`` are the truncates that are known, those of the batch included.
    """

    keys: Sequence[str]
    stored: DataFrame | None
    images: Callable[[], DataFrame]
    history: Callable[[DataFrame, Collection[str]], History | None]
    truncated: Callable[[], TruncateState]


@dataclass(frozen=True)
class ResolvedMoves:
    """Changes as the fold takes them, without MOVE_COLUMNS, what was counted of them, and how many were ignored as
    ``key_swap``.
    """

    changes: DataFrame
    told: Counts
    swaps: int


@contextmanager
def resolve(changes: DataFrame, told: Counts, table: str, past: Past) -> Iterator[ResolvedMoves]:
    """Changes with MOVE_COLUMNS, which are kept -> changes in which swaps are undone and moved rows have what they
    inherit, for the time of the block. ``told`` is what was counted of them, and of all columns.
    """
    with ExitStack() as kept:
        past = replace(past, stored=_stored_under_moved_keys(changes, told, past, kept))
        gone = changes.where(~F.col("_stays")) if told["stays"] else changes
        judged, now, swaps = _drop_swaps(gone, told, table, past, kept)
        left = key_changes.departures(changes, past.keys)
        done, now = _inherit_values(judged, now, left, past, kept)
        yield ResolvedMoves(key_changes.drop_move_columns(done), now, told["stays"] + swaps)


def _stored_under_moved_keys(changes: DataFrame, told: Counts, past: Past, kept: ExitStack) -> DataFrame | None:
    """Silver, and where rows that moved are few only what it has under their keys."""
    if past.stored is None or told["moved"] > tuning.MAX_BROADCAST_KEYS:
        return past.stored
    keys = F.broadcast(key_changes.affected_keys(changes, past.keys))
    found = past.stored.join(keys, list(past.keys), how="left_semi")
    return kept.enter_context(tuning.persist(found)) if change_counts.missing_by_column(told) else found


def _drop_swaps(
    changes: DataFrame, told: Counts, table: str, past: Past, kept: ExitStack
) -> tuple[DataFrame, Counts, int]:
    """Changes without the deletes that are not to be applied, what was counted of them, and how many those are."""
    known = _find_contested(changes, past, kept) if told["took"] else None
    if known is None:
        return changes, told, 0
    verdicts = kept.enter_context(tuning.persist(_judge_contested(*known, past)))
    marked = _mark_verdicts(changes, verdicts, table, past.keys)
    counted = tuning.persist_and_count(
        marked, change_counts.moved(change_counts.missing_by_column(told)), ~F.col("_stays")
    )
    judged, now = kept.enter_context(counted)
    return judged, now, now["stays"]


def _find_contested(changes: DataFrame, past: Past, kept: ExitStack) -> tuple[DataFrame, History | None] | None:
    """What is known of contested keys, and all that bronze has told, where it was asked; None where no key is one."""
    known, is_unclear = changes.where(F.col("_reject").isNull()), F.col("_old_text").isNotNull()
    conditions = {"contested": ~is_unclear, "unclear": is_unclear}
    asked, counts = kept.enter_context(tuning.persist_and_count(_keys_to_look_up(known, past), conditions))
    keys, told = asked.where(~is_unclear).select(*map(names.quote_spark, past.keys)), None
    if counts["unclear"]:
        nowhere = F.lit(None).cast(changes.schema["_old"].dataType).alias("_old")
        told = past.history(asked.where(is_unclear).select("_old_text", nowhere), ())
    if told is not None:
        known = known.unionByName(told.changes).where(~F.col("_stays"))
        anew = key_changes.contested_keys(known, past.keys)
        keys, counts = kept.enter_context(tuning.persist_and_count(anew, {"contested": F.lit(True)}))
    if not counts["contested"]:
        return None
    return known.join(keys, list(past.keys)), told


def _mark_verdicts(changes: DataFrame, verdicts: DataFrame, table: str, keys: Sequence[str]) -> DataFrame:
    """Changes of which those that swap stay, and ambiguous ones are rejected."""
    marked = changes.join(F.broadcast(verdicts), [*keys, "_seq"], how="left")
    is_swap, is_ambiguous = (F.col("_action") == each for each in (key_swaps.SWAP, key_swaps.AMBIGUOUS))
    swapped = to_dead_letter(table, F.col("_action"), detail=F.lit(None), seq=F.col("_seq"), at="_at.")
    replaced = {
        "_stays": F.coalesce(is_swap, F.lit(False)),
        "_reject": F.coalesce("_reject", F.when(is_ambiguous, swapped)),
    }
    return marked.select(*[replaced.get(c, F.col(names.quote_spark(c))).alias(c) for c in changes.columns])


def _judge_contested(known: DataFrame, earlier: History | None, past: Past) -> DataFrame:
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
            held = held.join(earlier.changes, list(past.keys), how="left_anti")
        known = _drop_redelivered(known, held, past)
        held = held.where(~F.col("_deleted"))
    images = past.images()
    if earlier is not None:
        images = images.unionByName(earlier.images()).dropDuplicates([*past.keys, "_seq"])
    return key_changes.suppressed_deletes(known, images, held, past.keys)


def _drop_redelivered(changes: DataFrame, held: DataFrame, past: Past) -> DataFrame:
    """Without what a row of silver is, or was before: a redelivery. What has the place of that row is one up to where
    it says the same: behind that, other changes of a transaction may have that place, too.
    """
    columns, keys = key_changes.registers(changes, past.keys), list(past.keys)
    is_gone = F.when(F.col("_deleted"), "")
    then = is_gone.otherwise(key_changes.stored_image(columns)).alias("_before")
    there = held.select(*map(names.quote_spark, keys), F.col("_seq").alias("_there"), then)
    said = changes.withColumn("_image", is_gone.otherwise(key_changes.change_image(columns)))
    joined = said.join(there, keys, how="left")
    own, same_place = (
        position.transaction_lsn(F.col("_seq"), F.col("_tx")),
        position.is_duplicate(F.col("_seq"), F.col("_there")),
    )
    says_same = same_place & (F.col("_image") == F.col("_before"))
    upto = F.max(F.when(says_same, F.col("_seq"))).over(Window.partitionBy(*map(names.quote_spark, keys)))
    unknown = F.col("_image").isNull() | F.col("_before").isNull()
    is_copy = same_place & (unknown | F.coalesce(F.col("_seq") <= F.col("_cut"), F.lit(False)))
    is_again = F.coalesce(own == position.transaction_lsn(F.col("_there"), F.col("_tx")), F.lit(False))
    newer = (F.col("_seq") > F.col("_there")) & ~is_again & ~is_copy
    found = joined.withColumn("_cut", upto).where(F.coalesce(newer, F.lit(True)))
    return found.drop("_there", "_before", "_image", "_cut")


def _keys_to_look_up(changes: DataFrame, past: Past) -> DataFrame:
    """Keys that are contested among these changes, and in other rows ``_old_text`` of departures of which bronze has to
    tell more: one query for both.
    """
    contested = key_changes.contested_keys(changes, past.keys).withColumn("_old_text", F.lit(None).cast("string"))
    if past.stored is None:
        return contested
    return contested.unionByName(_unclear(changes, past.stored, past.keys), allowMissingColumns=True)


def _unclear(changes: DataFrame, stored: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Departures of which bronze has to tell more: their row in silver came earlier in what may be the same
    transaction, or left in a transaction with one place, so that other rows may have come since; or silver has none,
    where a condition (`where`, `apply_as_deletes`) may have taken out of the table what held its key at the source.
    """
    left = changes.where("_left").select(key_changes.key_struct(keys), F.col("_seq").alias("_q"), "_old_text")
    here = stored.select(key_changes.key_struct(keys), "_seq", F.col("_deleted").alias("_gone"))
    same = ~position.is_by_offset(F.col("_q")) & (position.major(F.col("_seq")) == position.major(F.col("_q")))
    gone = F.coalesce("_gone", F.lit(True))
    older = F.coalesce(F.col("_seq") < F.col("_q"), F.lit(True))
    hidden = gone if PASSES in changes.columns else F.lit(False)
    told = hidden | (same & (~gone | position.is_duplicate(F.col("_seq"), F.col("_q"))))
    return left.join(here, "_key", "left").where(older & told).select("_old_text").distinct()


def _inherit_values(
    changes: DataFrame, told: Counts, left: DataFrame, past: Past, kept: ExitStack
) -> tuple[DataFrame, Counts]:
    """From the batch and from silver; what is still missing then from bronze. The rows that ``left`` are all of the
    batch's.
    """
    truncates = past.truncated().places
    batch, told = _propagate(KeyHistory(changes, left, truncates, past.stored), told, past.keys, kept)
    wanted = change_counts.missing_by_column(told)
    history = _whole_history(batch.changes, wanted, past, kept) if wanted else None
    if history is None:
        return batch.changes, told
    return _fill(batch.changes, history, wanted, past.keys, kept)


def _propagate(known: KeyHistory, told: Counts, keys: Sequence[str], kept: ExitStack) -> tuple[KeyHistory, Counts]:
    """Values handed on from row to row until nothing more is found, and what is counted then."""
    while wanted := change_counts.missing_by_column(told):
        filled, now = _fill(known.changes, known, wanted, keys, kept)
        if change_counts.missing_by_column(now) == wanted:
            break
        known, told = replace(known, changes=filled), now
    return known, told


def _fill(
    changes: DataFrame, known: KeyHistory, wanted: Collection[str], keys: Sequence[str], kept: ExitStack
) -> tuple[DataFrame, Counts]:
    """Changes with what is known of the wanted columns, and what is counted then."""
    found = key_changes.inherited_values(changes, known, keys, wanted)
    adopted = key_changes.fill_inherited(changes, found, keys, wanted)
    return kept.enter_context(tuning.persist_and_count(adopted, change_counts.moved(wanted)))


def _whole_history(changes: DataFrame, wanted: Collection[str], past: Past, kept: ExitStack) -> KeyHistory | None:
    """Every change in bronze of the keys that rows without a value came from, and of those before them."""
    keys = _origins(changes, past)
    found = past.history(keys, wanted)
    for _ in range(1, _CHAIN):
        if found is None or not change_counts.missing_by_column(found.told):
            break
        more = _origins(found.changes, past).subtract(keys)
        if more.isEmpty():
            break
        keys = keys.union(more)
        found = past.history(keys, wanted)
    if found is None:
        return None
    left = key_changes.departures(found.changes, past.keys)
    return _propagate(KeyHistory(found.changes, left, past.truncated().places), found.told, past.keys, kept)[0]


def _origins(changes: DataFrame, past: Past) -> DataFrame:
    """The keys that rows without a value came from."""
    return key_changes.incomplete_arrivals(changes, past.keys).select("_old_text", "_old").distinct()
