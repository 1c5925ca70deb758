"""One table's share of a tick.

Effects, in this order: 1. dead letters (keyed by Kafka place), 2. schema ledger and evolution, 3. the truncate
watermark, 4. the history where one is kept, 5. the merge with the new progress in the same commit. Repeating 1 to 4
changes nothing, so a crash anywhere is repaired by the next run.
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
from replicator.stages import engine, tuning
from replicator.stages.account import Account, counted
from replicator.stages.table import batch as batches
from replicator.stages.table import (
    dead_letters,
    history_table,
    horizons,
    ordering,
    origins,
    overlaps,
    regained,
    schema_change,
    truncates,
)
from replicator.stages.table.batch import Batch
from replicator.stages.table.decoding import decoded
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick.share import Share
from replicator.transforms import changes, fold, horizon, truncate
from replicator.transforms.columns.layout import described
from replicator.transforms.evolve import Plan

_FEW_COLUMNS = 32


class ReadAnew(ReplicatorError):
    """A table that is not there gets its first row, behind records that all were dead letters: it is made of its topics
    as a whole, as another process would make it.
    """

    retry = True


def apply(share: Share, records: DataFrame) -> Account:
    """The account of one table; whatever goes wrong stops this table alone and is named in it. Raises NO_LAKE where
    it is the lake that does not answer, or refuses.
    """
    started = time.monotonic()
    account = counted(Account(share.table.name), share.groups)
    try:
        account = _apply(share, records, account)
    except ReplicatorError as error:
        account = replace(account, error=error)
    except FAILURES as error:
        account = replace(account, error=engine.failure(error, share.table.name))
    except engine.UNREADABLE as error:
        account = replace(account, error=engine.unreadable(error, share.table.name))
    return replace(account, seconds=time.monotonic() - started)


def foresee(share: Share, records: DataFrame) -> Plan | ReplicatorError:
    """What :func:`apply` would do to the schema, or what would stop the table there. Changes nothing."""
    rows = share.changes_in(records)
    try:
        known = origins.known(share, share.stored())
        forms, _ = forms_of.read(share.rows, rows, share.declaration, known, partial(schema_change.noted, share))
        return schema_change.foresee(share, ordering.ordered(share, rows), forms, known).plan
    except ReplicatorError as error:
        return error
    except engine.UNREADABLE as error:
        return engine.unreadable(error, share.table.name)


def _apply(share: Share, records: DataFrame, account: Account) -> Account:
    if not share.rows:
        return _without_rows(share, records, account)
    purged = horizons.load(share.spark, share.at, share.name, share.table)
    with ExitStack() as kept:
        read = kept.enter_context(
            decoded(share, records, places=purged is not None or share.tied, every=purged is not None)
        )
        truncated = read.truncated()
        made = kept.enter_context(horizons.judged(share, read, purged, truncated.watermark))
        told = batches.warnings(share, read, made, truncated)
        batch = batches.counted(read, made, truncated, purged)
        account = _settled(account.ignoring("key_swap", read.swaps).warning(*told), batch)
        _must_add_up(share, account, batch.good + batch.truncated.count)
        if account.dead_lettered:
            inside = made.where(F.col("_reject").isNotNull()).select("_reject.*")
            outside = changes.rejects(share.rejects_in(records), share.name)
            _bury(share, outside.unionByName(inside), account)
        return _written(share, batch, account)


def _without_rows(share: Share, records: DataFrame, account: Account) -> Account:
    """Of a share that makes no changes; it may have dead letters."""
    _must_add_up(share, account, 0)
    if account.dead_lettered:
        _bury(share, changes.rejects(share.rejects_in(records), share.name), account)
    _commit_progress(share)
    return account


def _settled(account: Account, batch: Batch) -> Account:
    """The account with the batch's own dead letters."""
    done = replace(account, dead_lettered=account.dead_lettered + sum(batch.rejected.values()))
    is_keyless = not batch.good and set(batch.rejected) == {"key_missing"}
    return done.warning(dead_letters.KEYLESS) if is_keyless else done


def _must_add_up(share: Share, account: Account, changes: int) -> None:
    """What the survey counted is changes, dead letters, or ignored by a rule (R1). Asked before anything is written: a
    table that stops has moved nothing. Raises Residue.
    """
    lost = account.residue - changes
    if lost:
        raise Residue(f"{lost} of {account.read} records are not accounted for", where=share.table.name)


def _bury(share: Share, letters: DataFrame, account: Account) -> None:
    """Effect 1, and the refusal of a batch with too many of them; a retry only takes note."""
    if share.again is not None:
        share.again.append(letters.localCheckpoint())
        return
    dead_letters.bury(share.spark, share.at, letters)
    dead_letters.refuse_too_many(account, share.at.dead_letter_share)


def _written(share: Share, batch: Batch, account: Account) -> Account:
    """Effects 2 to 5, and the rest of the account. Without a row there is no table yet, and nothing tells what it is to
    be: of such a batch its truncates alone are known (T4), and they empty nothing.
    """
    if batch.stored is None and not batch.good:
        _mark(share, batch)
        return account.ignoring(_by_policy(share) or "truncate_of_no_table", batch.truncated.count)
    at, table = share.at, share.target(batch.layout)
    if batch.stored is None:
        _begin(share)
    good = batch.changes.where(F.col("_reject").isNull()).drop("_reject", "_at")
    removed = 0
    if batch.departed is not None:
        left = batch.departed.drop("_reject", "_at").withColumn("_purged", F.lit(False))
        removed, good = left.count(), good.unionByName(left)
    _evolve(share, table, batch)
    _mark(share, batch)
    if share.declaration.has_history and batch.good + batch.truncated.count:
        whole = batch.truncated.count > 0 and share.declaration.truncate == "apply"
        history_table.keep(share, good.drop("_purged"), batch.layout, batch.truncated.every, whole=whole)
        failpoints.hit("silver.history_kept")
    good = good.where(~F.col("_purged")).drop("_purged")
    good, gone = _standing(share, table, good, batch)
    for deletes in gone:
        removed += deletes.persist().count()
        good = good.unionByName(deletes)
    if batch.good + removed == 0:
        _commit_progress(share)
        applied = 0
    else:
        folded = _folded(share, table, good, batch)
        failpoints.hit("silver.changes_folded")
        result = at.silver.apply(described(folded, batch.layout), table, share.progress)
        failpoints.hit("silver.merged")
        applied = min(batch.good, max(0, result.written - removed))
    return _settled_with(share, batch, account, applied)


def _begin(share: Share) -> None:
    """The batch has a table's first row. Raises ReadAnew where it is not to begin with this batch, and TableMissing."""
    if share.is_begun:
        raise ReadAnew("its first row came", where=share.table.name)
    share.at.reached.removed.pop(share.name, None)  # what a table before this one had done, it has not
    if share.again is not None:
        raise TableMissing(
            "the table was never written",
            where=share.table.name,
            mend="`replicator run silver` builds it from bronze, these records included.",
        )


def _mark(share: Share, batch: Batch) -> None:
    """Effect 3."""
    if batch.truncated.watermark is not None and batch.truncated.count:
        truncates.save(share, batch.truncated)
        failpoints.hit("silver.truncate_marked")


def _settled_with(share: Share, batch: Batch, account: Account, applied: int) -> Account:
    """The account of a batch of which so many changes were applied."""
    rule, count = _by_policy(share), batch.truncated.count
    done = replace(account, applied=applied + (0 if rule else count), superseded=batch.good - applied)
    return done.ignoring(rule, count) if rule else done


def _by_policy(share: Share) -> str | None:
    """The rule by which the table's truncates are ignored, if they are."""
    return "truncate_by_policy" if share.declaration.truncate == "ignore" else None


def _standing(share: Share, table: Table, good: DataFrame, batch: Batch) -> tuple[DataFrame, list[DataFrame]]:
    """The changes that no truncate, and no snapshot of an append-only table, supersedes; and deletes of the rows at
    rest that one of these takes away.
    """
    stored = None if batch.stored is None else share.at.silver.read(share.spark, table)
    gone, mark = [], batch.truncated.watermark
    if mark is not None:
        good = truncate.survivors(good, mark)
        if stored is not None and batch.truncated.count:
            gone.append(truncate.deletes(stored, batch.layout, mark))
            stored = truncate.survivors(stored, mark)
    if share.declaration.append_only and batch.good:
        met = overlaps.settled(good, stored, batch.layout)
        return met.changes, [*gone, *([] if met.replaced is None else [met.replaced])]
    return good, gone


def _folded(share: Share, table: Table, good: DataFrame, batch: Batch) -> DataFrame:
    """One change per key; what none of them knows of a row is not taken from before it was purged or truncated."""
    folded = fold.fold(good, batch.layout.keys, _unknown(share, good, batch) if batch.partial else ())
    if batch.purged is not None and batch.partial:
        stored = share.at.silver.read(share.spark, table)
        folded = horizon.cleared(folded, stored, batch.layout.keys, batch.purged)
    if batch.truncated.watermark is not None and batch.partial:
        folded = truncate.cleared(folded, batch.truncated.watermark)
    return folded


def _unknown(share: Share, good: DataFrame, batch: Batch) -> Collection[str]:
    """The columns that some change does not know; any may be one where a job that asks costs more than it saves."""
    every = batch.layout.types
    if tuning.is_small(share.spark) and len(every) <= _FEW_COLUMNS:
        return every
    return frozenset(good.agg(fold.unknown()).collect()[0][0])


def _evolve(share: Share, table: Table, batch: Batch) -> None:
    """Effect 2."""
    if batch.schema.ledger is not None:
        schema_change.save(share, batch.schema.ledger)
        failpoints.hit("silver.ledger_saved")
    if batch.stored is None or batch.schema.origin != origins.load(share):
        origins.save(share, batch.schema.origin)
    if batch.schema.plan.evolution:
        share.at.silver.evolve(share.spark, table, batch.schema.plan.evolution)
        failpoints.hit("silver.evolved")
    if share.regained:
        regained.forget(share, batch.layout)


def _commit_progress(share: Share) -> None:
    """The range held nothing for this table: say in the table that it was read."""
    at = share.at
    if share.again is not None or at.silver.version(share.spark, share.table) is None:
        return
    if share.declaration.has_history:
        history_table.commit_progress(share)
        failpoints.hit("silver.history_kept")
    nothing = at.silver.read(share.spark, share.table).limit(0)
    at.silver.append(nothing, share.table, share.progress)
