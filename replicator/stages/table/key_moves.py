"""Resolve rows that changed their key in one table's batch (debezium.md C5, M7).

Such rows are few, and the cost is mostly that of planning queries. So the needed counts are taken while the rows are
computed, silver is read once, for the affected keys, and only columns that some row lacks are looked up.
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
"""The number of former keys that a row is traced back through, besides the batch."""

Counts = Mapping[str, int]
"""Counts of changes: see ``change_counts.moved``."""


@dataclass(frozen=True)
class History:
    """The good changes in bronze of some keys, with their counts (``counts``), which include those of the requested
    columns; ``images`` decodes the rows that their deletes removed.
    """

    changes: DataFrame
    counts: Counts
    images: Callable[[], DataFrame]


@dataclass(frozen=True)
class Past:
    """Sources besides the batch's own changes: ``stored`` is silver (None: no table yet); ``images`` decodes the rows
    that the deletes of the batch removed; ``history`` reads the changes of keys (``_old_text``, ``_old``) from bronze,
    None if it has none. The results of both functions are persisted as long as the batch is. ``truncated`` returns the
    known truncates, including those of the batch.
    """

    keys: Sequence[str]
    stored: DataFrame | None
    images: Callable[[], DataFrame]
    history: Callable[[DataFrame, Collection[str]], History | None]
    truncated: Callable[[], TruncateState]


@dataclass(frozen=True)
class ResolvedMoves:
    """Changes ready for the fold, without MOVE_COLUMNS, their counts (``counts``), and how many were ignored as
    ``key_swap``.
    """

    changes: DataFrame
    counts: Counts
    swaps: int


@contextmanager
def resolve(changes: DataFrame, told: Counts, table: str, past: Past) -> Iterator[ResolvedMoves]:
    """Resolve key changes in persisted changes with MOVE_COLUMNS: undo swaps and fill moved rows with the values they
    inherit; persisted while the context is open. ``told`` are the counts of the changes, with all columns.
    """
    with ExitStack() as stack:
        past = replace(past, stored=_stored_under_moved_keys(changes, told, past, stack))
        gone = changes.where(~F.col("_stays")) if told["stays"] else changes
        judged, counts, swaps = _drop_swaps(gone, told, table, past, stack)
        departed = key_changes.departures(changes, past.keys)
        done, counts = _inherit_values(judged, counts, departed, past, stack)
        yield ResolvedMoves(key_changes.drop_move_columns(done), counts, told["stays"] + swaps)


def _stored_under_moved_keys(changes: DataFrame, counts: Counts, past: Past, stack: ExitStack) -> DataFrame | None:
    """Return silver; if few rows moved, only what it has under their keys."""
    if past.stored is None or counts["moved"] > tuning.MAX_BROADCAST_KEYS:
        return past.stored
    keys = F.broadcast(key_changes.affected_keys(changes, past.keys))
    found = past.stored.join(keys, list(past.keys), how="left_semi")
    return stack.enter_context(tuning.persist(found)) if change_counts.missing_by_column(counts) else found


def _drop_swaps(
    changes: DataFrame, counts: Counts, table: str, past: Past, stack: ExitStack
) -> tuple[DataFrame, Counts, int]:
    """Return the changes without the deletes that must not be applied, their counts, and the number of those
    deletes.
    """
    known = _find_contested(changes, past, stack) if counts["took"] else None
    if known is None:
        return changes, counts, 0
    verdicts = stack.enter_context(tuning.persist(_judge_contested(*known, past)))
    marked = _mark_verdicts(changes, verdicts, table, past.keys)
    counted = tuning.persist_and_count(
        marked, change_counts.moved(change_counts.missing_by_column(counts)), ~F.col("_stays")
    )
    judged, new_counts = stack.enter_context(counted)
    return judged, new_counts, new_counts["stays"]


def _find_contested(changes: DataFrame, past: Past, stack: ExitStack) -> tuple[DataFrame, History | None] | None:
    """Return all known changes of contested keys, and what bronze returned if it was queried; None if no key is
    contested.
    """
    known, is_unclear = changes.where(F.col("_reject").isNull()), F.col("_old_text").isNotNull()
    conditions = {"contested": ~is_unclear, "unclear": is_unclear}
    to_look_up, counts = stack.enter_context(tuning.persist_and_count(_keys_to_look_up(known, past), conditions))
    keys, past_changes = to_look_up.where(~is_unclear).select(*map(names.quote_spark, past.keys)), None
    if counts["unclear"]:
        nowhere = F.lit(None).cast(changes.schema["_old"].dataType).alias("_old")
        past_changes = past.history(to_look_up.where(is_unclear).select("_old_text", nowhere), ())
    if past_changes is not None:
        known = known.unionByName(past_changes.changes).where(~F.col("_stays"))
        contested = key_changes.contested_keys(known, past.keys)
        keys, counts = stack.enter_context(tuning.persist_and_count(contested, {"contested": F.lit(True)}))
    if not counts["contested"]:
        return None
    return known.join(keys, list(past.keys)), past_changes


def _mark_verdicts(changes: DataFrame, verdicts: DataFrame, table: str, keys: Sequence[str]) -> DataFrame:
    """Mark the changes: swaps as ``_stays``, ambiguous ones as rejected."""
    marked = changes.join(F.broadcast(verdicts), [*keys, "_seq"], how="left")
    is_swap, is_ambiguous = (F.col("_action") == each for each in (key_swaps.SWAP, key_swaps.AMBIGUOUS))
    swapped = to_dead_letter(table, F.col("_action"), detail=F.lit(None), seq=F.col("_seq"), at="_at.")
    replaced = {
        "_stays": F.coalesce(is_swap, F.lit(False)),
        "_reject": F.coalesce("_reject", F.when(is_ambiguous, swapped)),
    }
    return marked.select(*[replaced.get(c, F.col(names.quote_spark(c))).alias(c) for c in changes.columns])


def _judge_contested(known: DataFrame, earlier: History | None, past: Past) -> DataFrame:
    """Return the verdicts on the known changes of contested keys, starting from the rows that silver had before. For
    keys that were read from bronze, the result contains those rows already. A truncate leaves no earlier row.
    """
    mark = past.truncated().watermark
    if mark is not None:
        known = truncate.survivors(known, mark)
    stored = past.stored
    if stored is not None:
        if mark is not None:
            stored = truncate.survivors(stored, mark)
        if earlier is not None:
            stored = stored.join(earlier.changes, list(past.keys), how="left_anti")
        known = _drop_redelivered(known, stored, past)
        stored = stored.where(~F.col("_deleted"))
    images = past.images()
    if earlier is not None:
        images = images.unionByName(earlier.images()).dropDuplicates([*past.keys, "_seq"])
    return key_changes.suppressed_deletes(known, images, stored, past.keys)


def _drop_redelivered(changes: DataFrame, stored: DataFrame, past: Past) -> DataFrame:
    """Drop redelivered changes: those at or below the position of the key's row in silver. Changes at the same place as
    the row are redeliveries up to the last one with the row's content; later ones may be other changes of a transaction
    whose changes all have one place.
    """
    columns, keys = key_changes.registers(changes, past.keys), list(past.keys)
    is_gone = F.when(F.col("_deleted"), "")
    then = is_gone.otherwise(key_changes.stored_image(columns)).alias("_before")
    stored_images = stored.select(*map(names.quote_spark, keys), F.col("_seq").alias("_there"), then)
    with_image = changes.withColumn("_image", is_gone.otherwise(key_changes.change_image(columns)))
    joined = with_image.join(stored_images, keys, how="left")
    own, same_place = (
        position.transaction_lsn(F.col("_seq"), F.col("_tx")),
        position.is_duplicate(F.col("_seq"), F.col("_there")),
    )
    says_same = same_place & (F.col("_image") == F.col("_before"))
    upto = F.max(F.when(says_same, F.col("_seq"))).over(Window.partitionBy(*map(names.quote_spark, keys)))
    unknown = F.col("_image").isNull() | F.col("_before").isNull()
    is_copy = same_place & (unknown | F.coalesce(F.col("_seq") <= F.col("_cut"), F.lit(False)))
    is_same_record = F.coalesce(own == position.transaction_lsn(F.col("_there"), F.col("_tx")), F.lit(False))
    newer = (F.col("_seq") > F.col("_there")) & ~is_same_record & ~is_copy
    found = joined.withColumn("_cut", upto).where(F.coalesce(newer, F.lit(True)))
    return found.drop("_there", "_before", "_image", "_cut")


def _keys_to_look_up(changes: DataFrame, past: Past) -> DataFrame:
    """Return the keys that are contested among these changes, and in other rows the ``_old_text`` of departures for
    which bronze must be queried: one query for both.
    """
    contested = key_changes.contested_keys(changes, past.keys).withColumn("_old_text", F.lit(None).cast("string"))
    if past.stored is None:
        return contested
    return contested.unionByName(_unclear(changes, past.stored, past.keys), allowMissingColumns=True)


def _unclear(changes: DataFrame, stored: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the departures for which bronze must be queried. Either their row in silver came earlier in what may be
    the same transaction, or left in a transaction whose changes all have one place, so that other rows may have come
    since; or silver has no row where a condition (`where`, `apply_as_deletes`) may have excluded the row that held the
    key at the source.
    """
    departed = changes.where("_left").select(key_changes.key_struct(keys), F.col("_seq").alias("_q"), "_old_text")
    current = stored.select(key_changes.key_struct(keys), "_seq", F.col("_deleted").alias("_gone"))
    same_transaction = ~position.is_by_offset(F.col("_q")) & (
        position.major(F.col("_seq")) == position.major(F.col("_q"))
    )
    gone = F.coalesce("_gone", F.lit(True))
    older = F.coalesce(F.col("_seq") < F.col("_q"), F.lit(True))
    may_be_hidden = gone if PASSES in changes.columns else F.lit(False)
    is_uncertain = may_be_hidden | (same_transaction & (~gone | position.is_duplicate(F.col("_seq"), F.col("_q"))))
    return departed.join(current, "_key", "left").where(older & is_uncertain).select("_old_text").distinct()


def _inherit_values(
    changes: DataFrame, counts: Counts, left: DataFrame, past: Past, stack: ExitStack
) -> tuple[DataFrame, Counts]:
    """Fill inherited values from the batch and from silver, and what is still missing then from bronze. ``left`` are
    all departures of the batch.
    """
    truncates = past.truncated().places
    batch, counts = _propagate(KeyHistory(changes, left, truncates, past.stored), counts, past.keys, stack)
    wanted = change_counts.missing_by_column(counts)
    history = _whole_history(batch.changes, wanted, past, stack) if wanted else None
    if history is None:
        return batch.changes, counts
    return _fill(batch.changes, history, wanted, past.keys, stack)


def _propagate(known: KeyHistory, counts: Counts, keys: Sequence[str], stack: ExitStack) -> tuple[KeyHistory, Counts]:
    """Pass values on from row to row until nothing more is found; returns the final counts, too."""
    while wanted := change_counts.missing_by_column(counts):
        filled, new_counts = _fill(known.changes, known, wanted, keys, stack)
        if change_counts.missing_by_column(new_counts) == wanted:
            break
        known, counts = replace(known, changes=filled), new_counts
    return known, counts


def _fill(
    changes: DataFrame, known: KeyHistory, wanted: Collection[str], keys: Sequence[str], stack: ExitStack
) -> tuple[DataFrame, Counts]:
    """Fill the wanted columns of changes with known values; returns the new counts, too."""
    found = key_changes.inherited_values(changes, known, keys, wanted)
    adopted = key_changes.fill_inherited(changes, found, keys, wanted)
    return stack.enter_context(tuning.persist_and_count(adopted, change_counts.moved(wanted)))


def _whole_history(changes: DataFrame, wanted: Collection[str], past: Past, stack: ExitStack) -> KeyHistory | None:
    """Return every change in bronze of the keys that rows with missing values came from, and of the keys before
    those.
    """
    keys = _origins(changes, past)
    found = past.history(keys, wanted)
    for _ in range(1, _CHAIN):
        if found is None or not change_counts.missing_by_column(found.counts):
            break
        more = _origins(found.changes, past).subtract(keys)
        if more.isEmpty():
            break
        keys = keys.union(more)
        found = past.history(keys, wanted)
    if found is None:
        return None
    departed = key_changes.departures(found.changes, past.keys)
    return _propagate(KeyHistory(found.changes, departed, past.truncated().places), found.counts, past.keys, stack)[0]


def _origins(changes: DataFrame, past: Past) -> DataFrame:
    """Return the keys that rows with missing values came from."""
    return key_changes.incomplete_arrivals(changes, past.keys).select("_old_text", "_old").distinct()
