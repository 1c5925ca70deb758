"""Apply one table's share of a tick.

Effects, in this order: 1. dead letters (keyed by Kafka place), 2. schema ledger and evolution, 3. the truncate
watermark, 4. the history if one is kept, 5. the merge with the new progress in the same commit. Repeating 1 to 4
changes nothing, so a crash at any point is repaired by the next run.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import ReplicatorError, Residue, TableMissing
from replicator.jvm.failures import FAILURES
from replicator.spec import Table
from replicator.stages import engine_errors, tuning
from replicator.stages.account import Account, count_groups
from replicator.stages.table import batch as batches
from replicator.stages.table import (
    column_backfill,
    dead_letters,
    history_table,
    ordering,
    purge_horizons,
    schema_change,
    snapshot_overlaps,
    transform_origins,
    truncates,
)
from replicator.stages.table.batch import Batch
from replicator.stages.table.decoding import decode_share
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import changes, fold, purge_horizon, truncate
from replicator.transforms.columns.layout import with_column_metadata
from replicator.transforms.evolve import Plan

_FEW_COLUMNS = 32


class ReloadNeeded(ReplicatorError):
    """A table that does not exist gets its first row after records that were all dead letters or truncates: it must be
    built from its topics as a whole, as another process would do.
    """

    retry = True


def apply(share: TableShare, records: DataFrame) -> Account:
    """Apply the share of one table and return its account. An error stops only this table and is stored in the account.
    Raises NO_LAKE if the lake itself does not answer, or refuses access.
    """
    started = time.monotonic()
    account = count_groups(Account(share.table.name), share.groups)
    try:
        account = _apply(share, records, account)
    except ReplicatorError as error:
        account = replace(account, error=error)
    except FAILURES as error:
        account = replace(account, error=engine_errors.to_table_error(error, share.table.name))
    except engine_errors.SCHEMA_FAILURES as error:
        account = replace(account, error=engine_errors.to_schema_error(error, share.table.name))
    return replace(account, seconds=time.monotonic() - started)


def plan_schema(share: TableShare, records: DataFrame) -> Plan | ReplicatorError:
    """Return what :func:`apply` would do to the schema, or the error that would stop the table there. Changes
    nothing.
    """
    rows = share.changes_in(records)
    try:
        known = transform_origins.source_columns(share, share.stored())
        forms, _ = forms_of.from_groups(
            share.rows, rows, share.declaration, known, partial(schema_change.load_written, share)
        )
        return schema_change.plan_change(share, ordering.order_records(share, rows), forms, known).plan
    except ReplicatorError as error:
        return error
    except engine_errors.SCHEMA_FAILURES as error:
        return engine_errors.to_schema_error(error, share.table.name)


def _apply(share: TableShare, records: DataFrame, account: Account) -> Account:
    if not share.rows:
        return _without_rows(share, records, account)
    purged = purge_horizons.load(share.spark, share.at, share.name, share.table)
    with ExitStack() as stack:
        read = stack.enter_context(
            decode_share(share, records, places=purged is not None or share.has_place_ties, every=purged is not None)
        )
        truncated = read.truncated()
        made = stack.enter_context(purge_horizons.mark_purged(share, read, purged, truncated.watermark))
        texts = batches.warnings(share, read, made, truncated)
        batch = batches.build(read, made, truncated, purged)
        account = _add_dead_letters(account.with_ignored("key_swap", read.swaps).warning(*texts), batch)
        _must_add_up(share, account, batch.good + batch.truncated.count)
        if account.dead_lettered:
            inside = made.where(F.col("_reject").isNotNull()).select("_reject.*")
            outside = changes.dead_letters_of(share.rejects_in(records), share.name)
            _write_dead_letters(share, outside.unionByName(inside), account)
        return _write(share, batch, account)


def _without_rows(share: TableShare, records: DataFrame, account: Account) -> Account:
    """Finish a share that makes no changes; it may have dead letters."""
    _must_add_up(share, account, 0)
    if account.dead_lettered:
        _write_dead_letters(share, changes.dead_letters_of(share.rejects_in(records), share.name), account)
    _commit_progress(share)
    return account


def _add_dead_letters(account: Account, batch: Batch) -> Account:
    """Return the account with the batch's own dead letters."""
    done = replace(account, dead_lettered=account.dead_lettered + sum(batch.rejected.values()))
    is_keyless = not batch.good and set(batch.rejected) == {"key_missing"}
    return done.warning(dead_letters.KEYLESS) if is_keyless else done


def _must_add_up(share: TableShare, account: Account, changes: int) -> None:
    """Raise Residue unless every record that the survey counted is a change, a dead letter, or ignored by a rule (R1).
    Checked before anything is written, so that a table that stops is unchanged.
    """
    unaccounted = account.residue - changes
    if unaccounted:
        raise Residue(f"{unaccounted} of {account.read} records are not accounted for", where=share.table.name)


def _write_dead_letters(share: TableShare, letters: DataFrame, account: Account) -> None:
    """Effect 1, and the error if a batch has too many of them. A retry only collects them."""
    if share.retried_rejects is not None:
        share.retried_rejects.append(letters.localCheckpoint())
        return
    dead_letters.write(share.spark, share.at, letters)
    dead_letters.refuse_too_many(account, share.at.dead_letter_share)


def _write(share: TableShare, batch: Batch, account: Account) -> Account:
    """Effects 2 to 5; returns the complete account. Without a row there is no table yet and nothing defines its
    columns: of such a batch only the truncates are recorded (T4), and they have no rows to delete.
    """
    if batch.stored is None and not batch.good:
        _mark(share, batch)
        return account.with_ignored(_by_policy(share) or "truncate_of_no_table", batch.truncated.count)
    at, table = share.at, share.target(batch.layout)
    if batch.stored is None:
        _begin(share)
    good = batch.changes.where(F.col("_reject").isNull()).drop("_reject", "_at")
    removed = 0
    if batch.departed is not None:
        departed = batch.departed.drop("_reject", "_at").withColumn("_purged", F.lit(False))
        removed, good = departed.count(), good.unionByName(departed)
    _evolve(share, table, batch)
    _mark(share, batch)
    if share.declaration.has_history and batch.good + batch.truncated.count:
        is_truncated = batch.truncated.count > 0 and share.declaration.truncate == "apply"
        history_table.merge_changes(
            share, good.drop("_purged"), batch.layout, batch.truncated.every, whole=is_truncated
        )
        failpoints.hit("silver.history_kept")
    good = good.where(~F.col("_purged")).drop("_purged")
    good, gone = _drop_superseded(share, table, good, batch)
    for deletes in gone:
        removed += deletes.persist().count()
        good = good.unionByName(deletes)
    if batch.good + removed == 0:
        _commit_progress(share)
        applied = 0
    else:
        folded = _fold_changes(share, table, good, batch)
        failpoints.hit("silver.changes_folded")
        result = at.silver.apply(with_column_metadata(folded, batch.layout), table, share.progress)
        failpoints.hit("silver.merged")
        applied = min(batch.good, max(0, result.written - removed))
    return _add_applied(share, batch, account, applied)


def _begin(share: TableShare) -> None:
    """Prepare for a table's first row. Raises ReloadNeeded if the table must not begin with this batch, and
    TableMissing for a retry.
    """
    if share.is_begun:
        raise ReloadNeeded("its first row arrived", where=share.table.name)
    share.at.state.removed.pop(share.name, None)  # this state was of an earlier table of that name
    if share.retried_rejects is not None:
        raise TableMissing(
            "the table was never written",
            where=share.table.name,
            fix="`replicator run silver` builds it from bronze, including these records.",
        )


def _mark(share: TableShare, batch: Batch) -> None:
    """Effect 3."""
    if batch.truncated.watermark is not None and batch.truncated.count:
        truncates.save(share, batch.truncated)
        failpoints.hit("silver.truncate_marked")


def _add_applied(share: TableShare, batch: Batch, account: Account, applied: int) -> Account:
    """Return the account of a batch of which so many changes were applied."""
    rule, count = _by_policy(share), batch.truncated.count
    done = replace(account, applied=applied + (0 if rule else count), superseded=batch.good - applied)
    return done.with_ignored(rule, count) if rule else done


def _by_policy(share: TableShare) -> str | None:
    """Return the rule by which the table's truncates are ignored; None if they are not."""
    return "truncate_by_policy" if share.declaration.truncate == "ignore" else None


def _drop_superseded(
    share: TableShare, table: Table, good: DataFrame, batch: Batch
) -> tuple[DataFrame, list[DataFrame]]:
    """Return the changes that no truncate, and no snapshot of an append-only table, supersedes; and the deletes of
    stored rows that one of these removes.
    """
    stored = None if batch.stored is None else share.at.silver.read(share.spark, table)
    gone, mark = [], batch.truncated.watermark
    if mark is not None:
        good = truncate.survivors(good, mark)
        if stored is not None and batch.truncated.count:
            gone.append(truncate.deletes(stored, batch.layout, mark))
            stored = truncate.survivors(stored, mark)
    if share.declaration.append_only and batch.good:
        overlaps = snapshot_overlaps.resolve(good, stored, batch.layout)
        return overlaps.changes, [*gone, *([] if overlaps.replaced is None else [overlaps.replaced])]
    return good, gone


def _fold_changes(share: TableShare, table: Table, good: DataFrame, batch: Batch) -> DataFrame:
    """Fold the changes into one per key. Values that no change of a key knows are not taken from before the row was
    purged or truncated.
    """
    folded = fold.fold(good, batch.layout.keys, _unknown(share, good, batch) if batch.partial else ())
    if batch.purged is not None and batch.partial:
        stored = share.at.silver.read(share.spark, table)
        folded = purge_horizon.clear_unknown(folded, stored, batch.layout.keys, batch.purged)
    if batch.truncated.watermark is not None and batch.partial:
        folded = truncate.clear_unknown(folded, batch.truncated.watermark)
    return folded


def _unknown(share: TableShare, good: DataFrame, batch: Batch) -> Collection[str]:
    """Return the columns that some change may not know: all columns where a job to find out would cost more than it
    saves.
    """
    types = batch.layout.types
    if tuning.is_small(share.spark) and len(types) <= _FEW_COLUMNS:
        return types
    return frozenset(good.agg(fold.unknown_columns()).collect()[0][0])


def _evolve(share: TableShare, table: Table, batch: Batch) -> None:
    """Effect 2."""
    if batch.schema.ledger is not None:
        schema_change.save(share, batch.schema.ledger)
        failpoints.hit("silver.ledger_saved")
    if batch.stored is None or batch.schema.origin != transform_origins.load(share):
        transform_origins.save(share, batch.schema.origin)
    if batch.schema.plan.evolution:
        share.at.silver.evolve(share.spark, table, batch.schema.plan.evolution)
        failpoints.hit("silver.evolved")
    if share.regained:
        column_backfill.flag_unknown(share, batch.layout)


def _commit_progress(share: TableShare) -> None:
    """Record in the table that the range was read, although it contained nothing for it."""
    at = share.at
    if share.retried_rejects is not None or at.silver.version(share.spark, share.table) is None:
        return
    if share.declaration.has_history:
        history_table.commit_progress(share)
        failpoints.hit("silver.history_kept")
    nothing = at.silver.read(share.spark, share.table).limit(0)
    at.silver.append(nothing, share.table, share.progress)
