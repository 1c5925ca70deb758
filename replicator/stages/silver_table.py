"""One table's share of a tick.

Effects, in this order: 1. dead letters (keyed by Kafka place), 2. schema ledger and evolution, 3. the truncate
watermark, 4. the history where one is kept, 5. the merge with the new progress in the same commit. Repeating 1 to 4
changes nothing, so a crash anywhere is repaired by the next run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator.debezium import headers
from replicator.debezium.schema import Form
from replicator.errors import ReplicatorError, Residue, TableMissing, TableStopped
from replicator.spec import Declaration, Progress, Table
from replicator.stages import (
    dead_letters,
    history_table,
    horizons,
    moves,
    routing,
    schema_change,
    shaping,
    truncates,
    tuning,
)
from replicator.stages import forms as forms_of
from replicator.stages.account import Account, counted
from replicator.stages.epochs import Epochs
from replicator.stages.refinement import Refinement
from replicator.stages.routing import BEGINNING, News, Routes
from replicator.stages.schema_change import SchemaChange
from replicator.stages.truncates import Truncated
from replicator.transforms import changes, decode, evolve, fold, horizon, truncate
from replicator.transforms.decode import Needs
from replicator.transforms.evolve import Plan
from replicator.transforms.horizon import Horizon
from replicator.transforms.layout import Layout, described


@dataclass(frozen=True)
class Share:
    """What one table does in one tick: its groups of the survey, and bronze up to which version.

    ``again`` is given where the records are no news but some of what was read before, such as dead letters that are
    tried once more: then bronze's progress stays as it is, and what still cannot be applied is put into it, one frame
    per call.
    """

    spark: SparkSession
    at: Refinement
    routes: Routes
    news: News
    name: str
    groups: tuple[Row, ...]
    again: list[DataFrame] | None = None
    epochs: Epochs = field(default_factory=Epochs)

    @property
    def upto(self) -> int:
        """The version of bronze that the table reaches with this tick."""
        return self.news.upto

    @property
    def progress(self) -> Progress:
        """What the table's commit records. A retry counts for itself and moves nothing that a tick relies on."""
        if self.again is None:
            return Progress(self.routes.bronze, self.upto)
        version = self.at.silver.version(self.spark, self.table)
        return Progress(f"{self.routes.bronze}/dead letters", 0 if version is None else version + 1)

    @property
    def whole(self) -> bool:
        """Whether every topic of the table is read from its beginning."""
        starts = (self.news.after.get(topic, BEGINNING) for topic in self.routes.topics(self.name))
        return self.again is None and all(start == BEGINNING for start in starts)

    @property
    def table(self) -> Table:
        """The silver table, without its keys."""
        return self.at.lake.silver(self.at.source.name, self.name)

    @property
    def declaration(self) -> Declaration:
        """What the user declared about it."""
        return self.at.source.declaration(self.name)

    @property
    def rows(self) -> list[Row]:
        """Groups of records that may change a row."""
        return [group for group in self.groups if group["rule"] is None and group["reason"] is None]

    def described(self, records: DataFrame) -> AbstractContextManager[DataFrame]:
        """Bronze records of the table's topics with what they say about themselves, and their epoch; kept for the time
        of the block.
        """
        topics = self.routes.topics(self.name)
        with_epoch = records.withColumn("epoch", self.epochs.column(topics))
        return shaping.read(with_epoch, self.at.source, is_unusual=self.any("shape"))

    def any(self, flag: str) -> bool:
        """Whether some group of rows has the flag."""
        return any(group[flag] for group in self.rows)


@dataclass(frozen=True)
class Decoded:
    """The records of one share with their ``_seq`` (``ordered``), the ``changes`` that they make, and what the table
    must become for them. ``guessed`` names columns whose types nobody described; ``swaps`` counts the records that
    were ignored as ``key_swap`` and are no changes.
    """

    ordered: DataFrame
    changes: DataFrame
    schema: SchemaChange
    stored: StructType | None
    guessed: frozenset[str]
    swaps: int


@dataclass(frozen=True)
class Batch:
    """Decoded changes (persisted) of one table with what was counted in them; ``purged`` is how far deleted rows are
    gone from it.
    """

    changes: DataFrame
    schema: SchemaChange
    stored: StructType | None
    good: int
    partial: bool
    truncated: Truncated
    purged: Horizon | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        """The columns of the changes."""
        return self.schema.plan.layout


def apply(share: Share, records: DataFrame) -> Account:
    """The account of one table; whatever goes wrong stops this table alone and is named in it."""
    started = time.monotonic()
    account = counted(Account(share.table.name), share.groups)
    try:
        account = _apply(share, records, account)
    except ReplicatorError as error:
        account = replace(account, error=error)
    except (PySparkException, Py4JJavaError) as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        stopped = TableStopped(f"the engine failed: {reason}", where=share.table.name)
        stopped.__cause__ = error
        account = replace(account, error=stopped)
    return replace(account, seconds=time.monotonic() - started)


def foresee(share: Share, records: DataFrame) -> Plan | ReplicatorError:
    """What :func:`apply` would do to the schema, or what would stop the table there. Changes nothing."""
    rows, stored = _rows(share, records), _stored(share)
    try:
        forms, _ = forms_of.read(share.rows, rows, share.declaration, stored)
        return schema_change.foresee(share, _ordered(share, rows), forms, stored).plan
    except ReplicatorError as error:
        return error


def _apply(share: Share, records: DataFrame, account: Account) -> Account:
    if not share.rows:
        if account.dead_lettered:
            _bury(share, changes.rejects(_outside(share, records), share.name), account)
        _commit_progress(share)
        return account
    purged = horizons.load(share.spark, share.at, share.name, share.table)
    with ExitStack() as kept:
        read = kept.enter_context(decoded(share, records, places=purged is not None))
        truncated = truncates.read(share, read.ordered)
        made = kept.enter_context(horizons.judged(share, read, purged, truncated.watermark))
        if read.guessed:
            warning = f"no types are known for {', '.join(sorted(read.guessed))}: they were inferred; declare them"
            account = replace(account, warnings=(*account.warnings, warning))
        account = account.ignoring("key_swap", read.swaps)
        account = replace(account, warnings=(*account.warnings, *read.schema.plan.warnings))
        batch = _counted(read, made, truncated, purged)
        account = _settled(account, batch)
        if account.dead_lettered:
            inside = made.where(F.col("_reject").isNotNull()).select("_reject.*")
            outside = changes.rejects(_outside(share, records), share.name)
            _bury(share, outside.unionByName(inside), account)
        account = _written(share, batch, account)
    if account.residue:
        raise Residue(f"{account.residue} of {account.read} records are not accounted for", where=share.table.name)
    return account


@contextmanager
def decoded(share: Share, records: DataFrame, *, places: bool = False) -> Iterator[Decoded]:
    """The share's changes, kept for the time of the block; with ``places`` they have ``_at``. Raises SchemaRefused
    where the table cannot follow.
    """
    rows = _rows(share, records)
    stored = _stored(share)
    forms, guessed = forms_of.read(share.rows, rows, share.declaration, stored)
    ordered = _ordered(share, rows)
    schema = schema_change.foresee(share, ordered, forms, stored)
    evolve.refuse(share.name, schema.plan, schema.policy)
    layout = schema.plan.layout
    needs = replace(_needs(share), places=places)
    changed = decode.decode(ordered.where(F.col("op") != "t"), forms, layout, share.name, needs)
    with ExitStack() as kept:
        made, swaps = kept.enter_context(tuning.kept(changed)), 0
        if needs.key_changes:
            past = _past(share, ordered, forms, layout, stored, kept)
            done = kept.enter_context(moves.settled(made, share.name, past))
            made, swaps = kept.enter_context(tuning.kept(done.changes)), done.swaps
        yield Decoded(ordered, made, schema, stored, frozenset(guessed), swaps)


def _bury(share: Share, letters: DataFrame, account: Account) -> None:
    """Effect 1, and the refusal of a batch with too many of them; a retry only takes note."""
    if share.again is not None:
        share.again.append(letters.localCheckpoint())
        return
    dead_letters.bury(share.spark, share.at, letters)
    dead_letters.refuse_too_many(account, share.at.dead_letter_share)


def _needs(share: Share) -> Needs:
    """What the survey saw in some record of the batch."""
    held = share.at.placeholder if share.any("has_placeholder") and share.declaration.unavailable else None
    flags = share.any("has_keyless_delete"), share.any("has_key_change")
    return Needs(held, *flags, generated=share.declaration.generated)


def _past(
    share: Share,
    ordered: DataFrame,
    forms: Sequence[Form],
    layout: Layout,
    stored: StructType | None,
    kept: ExitStack,
) -> moves.Past:
    """What rows that changed their key may have to be compared with, or inherit from.

    Older records may hold the placeholder where the batch has none.
    """
    held = share.at.placeholder if share.declaration.unavailable else None
    needs = replace(_needs(share), placeholder=held, key_changes=True)

    def images() -> DataFrame:
        return decode.befores(ordered.where(F.col("op") == "d"), forms, layout, share.name, needs)

    def history(keys: DataFrame) -> DataFrame | None:
        at = share.at
        bronze = at.bronze.read(share.spark, at.lake.bronze(at.source.name), share.upto)
        of_table = bronze.where(F.col("topic").isin(*share.routes.topics(share.name)))
        same = headers.key_text(of_table["key"]) == keys["_old_text"]
        read = kept.enter_context(share.described(of_table.join(keys, same, how="left_semi")))
        by_time = [share.name] if at.source.by_time(share.name) else []
        found = routing.as_routed(read, share.routes, at.source, by_time=by_time)
        groups = tuple(changes.survey(found, at.placeholder).collect())
        then = replace(share, groups=groups)
        rows = _rows(then, found)
        if not then.rows:
            return None
        past, _ = forms_of.read(then.rows, rows, share.declaration, stored)
        in_order = changes.ordered(rows, snapshots=then.any("has_snapshot"), running=None)
        decoded = decode.decode(in_order.where(F.col("op") != "t"), past, layout, share.name, needs)
        good = decoded.where(F.col("_reject").isNull())
        known = truncates.stored(share)
        return good if known is None else truncate.survivors(good, known)

    def mark() -> str | None:
        return truncates.read(share, ordered).watermark

    present = None if stored is None else share.at.silver.read(share.spark, share.table)
    return moves.Past(layout.keys, present, images, history, mark)


def _rows(share: Share, records: DataFrame) -> DataFrame:
    """Records that may change a row of this table."""
    usable = F.col("rule").isNull() & F.col("reason").isNull()
    return records.where(
        F.col("topic").isin(*share.routes.topics(share.name)) & usable & (F.col("table") == share.name)
    )


def _outside(share: Share, records: DataFrame) -> DataFrame:
    """Records without a table that this one answers for."""
    homes = [topic for topic in share.routes.topics(share.name) if share.routes.home(topic) == share.name]
    return records.where(F.col("topic").isin(*homes) & F.col("reason").isNotNull())


def _stored(share: Share) -> StructType | None:
    silver = share.at.silver
    if silver.version(share.spark, share.table) is None:
        return None
    return silver.read(share.spark, share.table).schema


def _ordered(share: Share, rows: DataFrame) -> DataFrame:
    """Records that may change a row, in the source's order."""
    snapshots = share.any("has_snapshot")
    running = _running(share, rows) if snapshots and not share.whole else None
    return changes.ordered(rows, snapshots=snapshots, running=running)


def _running(share: Share, rows: DataFrame) -> DataFrame:
    """The greatest position below the range, per (topic, partition, epoch): snapshot rows rank above it (Q5)."""
    at, spark = share.at, share.spark
    topics = share.routes.topics(share.name)
    lowest = rows.groupBy("topic", "partition").agg(F.min("offset").alias("lowest"))
    bronze = at.bronze.read(spark, at.lake.bronze(at.source.name), share.upto).where(F.col("topic").isin(*topics))
    before = bronze.join(F.broadcast(lowest), ["topic", "partition"], how="inner").where(
        F.col("offset") < F.col("lowest")
    )
    with share.described(before.drop("lowest")) as placed:
        highest = placed.groupBy("topic", "partition", "epoch").agg(F.max("position").alias("maximum"))
        return highest.localCheckpoint()


def _counted(read: Decoded, made: DataFrame, truncated: Truncated, purged: Horizon | None) -> Batch:
    incomplete = F.size(decode.unsent()) > 0
    tally = made.groupBy(F.col("_reject.reason").alias("reason")).agg(
        F.count("*").alias("count"), F.max(incomplete).alias("partial")
    )
    counts = {row["reason"]: row for row in tally.collect()}
    good = counts.pop(None, None)
    return Batch(
        made,
        read.schema,
        read.stored,
        good=0 if good is None else good["count"],
        partial=good is not None and bool(good["partial"]),
        truncated=truncated,
        purged=purged,
        rejected={reason: row["count"] for reason, row in counts.items()},
    )


def _settled(account: Account, batch: Batch) -> Account:
    return replace(account, dead_lettered=account.dead_lettered + sum(batch.rejected.values()))


def _written(share: Share, batch: Batch, account: Account) -> Account:
    """Effects 2 to 5, and the rest of the account."""
    at, spark = share.at, share.spark
    complete = share.name not in share.routes.partial
    by_time = (("replicator.sequence_by", "source.ts_ms"),) if share.at.source.by_time(share.name) else ()
    table = replace(share.table, keys=batch.layout.keys, complete=complete, properties=by_time)
    good = batch.changes.where(F.col("_reject").isNull()).drop("_reject", "_at")
    removed = 0
    if share.again is not None and batch.stored is None and batch.good:
        raise TableMissing(
            "the table was never written",
            where=share.table.name,
            mend="`replicator run silver` builds it from bronze, these records included.",
        )
    if batch.schema.ledger is not None:
        schema_change.save(share, batch.schema.ledger)
    if batch.schema.plan.evolution:
        at.silver.evolve(spark, table, batch.schema.plan.evolution)
    if batch.truncated.watermark is not None and batch.truncated.count:
        truncates.save(share, batch.truncated)
    if share.declaration.has_history and batch.good + batch.truncated.count:
        whole = batch.truncated.count > 0 and share.declaration.truncate == "apply"
        history_table.keep(share, good.drop("_purged"), batch.layout, batch.truncated.every, whole=whole)
    good = good.where(~F.col("_purged")).drop("_purged")
    if batch.truncated.watermark is not None:
        good = truncate.survivors(good, batch.truncated.watermark)
        if batch.stored is not None and batch.truncated.count:
            gone = truncate.deletes(at.silver.read(spark, table), batch.layout, batch.truncated.watermark).persist()
            removed = gone.count()
            good = good.unionByName(gone)
    if batch.good + removed == 0:
        _commit_progress(share)
        applied = 0
    else:
        folded = fold.fold(good, batch.layout.keys, partial=batch.partial)
        if batch.purged is not None and batch.partial:
            stored = at.silver.read(spark, table)
            folded = horizon.cleared(folded, stored, batch.layout.keys, batch.purged)
        result = at.silver.apply(described(folded, batch.layout), table, share.progress)
        applied = min(batch.good, max(0, result.written - removed))
    by_policy = batch.truncated.count if share.declaration.truncate == "ignore" else 0
    done = replace(account, applied=applied + batch.truncated.count - by_policy, superseded=batch.good - applied)
    return done.ignoring("truncate_by_policy", by_policy)


def _commit_progress(share: Share) -> None:
    """The range held nothing for this table: say in the table that it was read."""
    at = share.at
    if share.again is not None or at.silver.version(share.spark, share.table) is None:
        return
    if share.declaration.has_history:
        history_table.commit_progress(share)
    nothing = at.silver.read(share.spark, share.table).limit(0)
    at.silver.append(nothing, share.table, share.progress)
