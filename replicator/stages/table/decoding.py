"""Decode the records of one table's share into typed changes in the source's order, and resolve key changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator.debezium import headers
from replicator.debezium.schema import Form, overridden_columns
from replicator.stages import tuning
from replicator.stages.table import (
    former_keys,
    key_moves,
    ordering,
    schema_change,
    transform_origins,
    transforming,
    truncates,
)
from replicator.stages.table.former_keys import FormerKeyInputs
from replicator.stages.table.schema_change import PlannedChange
from replicator.stages.table.transforming import BatchTransform
from replicator.stages.table.truncates import TruncateState
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import change_counts, changes, decode, evolve
from replicator.transforms.columns.layout import Layout
from replicator.transforms.columns.reshape import apply_evolution
from replicator.transforms.dead_letters import COORDINATES
from replicator.transforms.decode import DecodeOptions
from replicator.transforms.keys import key_headers, row_keys
from replicator.transforms.keys.row_keys import CAME_FROM
from replicator.transforms.superseded import drop_superseded
from replicator.transforms.table_transform import execution

_WORTH_IT = 1.5
"""The minimum number of records per key at which searching for the newest ones before parsing pays."""


@dataclass(frozen=True)
class Decoded:
    """The records of one share with their ``_seq`` (``ordered``), their ``changes``, and the schema that the table
    needs for them.

    ``guessed`` are columns whose types nothing describes, ``overruled`` columns of a new table whose declared type
    differs from that of the records; ``swaps`` is the number of records that were ignored as ``key_swap`` and are no
    changes; ``truncated`` returns the known truncates, including those of the batch. ``tally`` has the numbers of
    changes that are ``good``, ``partial`` (of the good ones) and ``rejected``; None if they were not counted.
    ``replaced`` is the number of records that are no changes because a newer one of their key replaces them.
    ``departed`` are deletes besides the changes, under the former keys of updated rows (None: none).
    """

    ordered: DataFrame
    changes: DataFrame
    schema: PlannedChange
    stored: StructType | None
    guessed: frozenset[str]
    overruled: frozenset[str]
    swaps: int
    truncated: Callable[[], TruncateState]
    tally: Mapping[str, int] | None = None
    replaced: int = 0
    departed: DataFrame | None = None


@dataclass(frozen=True)
class _Reading:
    """How the batch is read: its ``forms`` in the ``layout`` of the source's columns, the columns ``known`` from
    earlier batches, and the transform.
    """

    ordered: DataFrame
    forms: Sequence[Form]
    layout: Layout
    known: StructType | None
    transform: BatchTransform


@contextmanager
def decode_share(
    share: TableShare, records: DataFrame, *, places: bool = False, every: bool = True
) -> Iterator[Decoded]:
    """Yield the share's decoded changes; persisted while the context is open. With ``places`` they have ``_at``.
    Without ``every``, changes that a newer one of their key replaces may be left out. Raises SchemaRefused if the table
    cannot follow.
    """
    rows = share.changes_in(records)
    stored = share.stored()
    known = transform_origins.source_columns(share, stored)
    found, guessed = forms_of.from_groups(
        share.rows, rows, share.declaration, known, partial(schema_change.load_written, share)
    )
    forms = _with_declared(share, found) if stored is None else found
    ordered = ordering.order_records(share, rows)
    schema = schema_change.plan_change(share, ordered, forms, known)
    evolve.refuse_withheld(share.name, schema.plan, schema.policy)
    layout = schema.plan.layout
    needs = decode_options(share, forms, layout)
    needs = replace(needs, places=places or needs.departures or share.declaration.transform is not None)
    of_rows = ordered.where(F.col("op") != "t")
    typed = cache(lambda: decode.decode(of_rows, forms, layout, share.name, needs))
    has_rows = share.count > sum(group["truncates"] or 0 for group in share.rows)
    is_made = (
        has_rows or stored is not None
    )  # a TRUNCATE alone has no columns, but those of an existing table are known
    transform = transforming.prepare(share, schema, stored, typed) if is_made else BatchTransform(schema)
    truncated = cache(lambda: truncates.read(share, ordered))
    with ExitStack() as stack:
        quick, newest = None, None
        if not every and _can_skip_replaced(share, forms, layout, needs):
            keys = sum(group["keys"] for group in share.rows)
            newest = drop_superseded(
                rows, ordered, tied=share.has_place_ties, held=needs.placeholder is not None, keys=keys
            )
        if transform.transform is None and not any(map(layout.find_misfit, forms)):
            wanted = of_rows if newest is None else newest
            quick = decode.decode(wanted, forms, layout, share.name, needs, reasons=False)
        conditions = (
            change_counts.moved(_may_lack(needs, transform)) if needs.key_changes else change_counts.by_outcome()
        )
        conditions |= change_counts.departed() if needs.departures else {}
        made, tally = _compute(lambda: transform.apply(typed()), quick, conditions, stack)
        replaced = 0 if newest is None else share.count - tally["good"] - tally["rejected"]
        swaps, departed = 0, None
        reading = _Reading(ordered, forms, layout, known, transform)
        if needs.departures:
            if tally["departed"]:
                past_rows = _former_key_inputs(share, reading, needs, is_new=stored is None)
                departed = stack.enter_context(former_keys.build_deletes(made, past_rows))
            made = made.drop(CAME_FROM)
        if needs.key_changes:
            past = _past(share, reading, truncated, stack, is_new=stored is None)
            done = stack.enter_context(key_moves.resolve(made, tally, share.name, past))
            made, tally, swaps = done.changes, done.counts, done.swaps
        passed = execution.apply_filter(made)
        counts = tally if passed is made else None
        other = overridden_columns(forms, share.declaration) if stored is None else frozenset[str]()
        named = frozenset(guessed), other
        yield Decoded(ordered, passed, transform.schema, stored, *named, swaps, truncated, counts, replaced, departed)


def _compute(
    changed: Callable[[], DataFrame], quick: DataFrame | None, conditions: Mapping[str, Column], stack: ExitStack
) -> tuple[DataFrame, Mapping[str, int]]:
    """Compute the changes and count those that meet each condition. If one of the ``quick`` changes would be rejected,
    which were decoded without reasons, all are decoded again with reasons, and no record counts as replaced.
    """
    if quick is not None:
        with ExitStack() as tried:
            made, counts = tried.enter_context(tuning.persist_and_count(tuning.in_one_task(quick), conditions))
            if not counts["rejected"]:
                stack.enter_context(tried.pop_all())
                return made, counts
    return stack.enter_context(tuning.persist_and_count(tuning.in_one_task(changed()), conditions))


def _with_declared(share: TableShare, forms: Sequence[Form]) -> Sequence[Form]:
    """Return the forms of a first batch. If it has only deletes, which have no columns, a transform is bound to the
    declared columns.
    """
    if share.declaration.transform is None or any(form.fields for form in forms):
        return forms
    return [replace(form, fields=form.image_fields) for form in forms]


def _may_lack(needs: DecodeOptions, transform: BatchTransform) -> list[str]:
    """Return the columns that some change may not know and that a row may inherit from its former key; columns made
    from the key are excluded.
    """
    is_whole = needs.placeholder is None and not needs.generated
    layout, making = transform.layout, transform.transform
    own = set() if making is None else {name for name, of in making.sources.items() if of.intersection(making.keys)}
    return [] if is_whole else [column for column in layout.types if column not in {*layout.keys, *own}]


def _can_skip_replaced(share: TableShare, forms: Sequence[Form], layout: Layout, needs: DecodeOptions) -> bool:
    """Return whether the newest record of each key in Kafka replaces all earlier ones, and there are enough of those:
    the record's key contains the row's key, a change has the whole row, and nothing needs the changes in between.
    """
    in_key = all(
        {layout.stored_name(field.name) for field in form.key_fields}.issuperset(layout.keys) for form in forms
    )
    declared = share.declaration
    is_plain = not (
        needs.keyless_deletes or needs.key_changes or needs.generated or declared.transform or declared.append_only
    )
    is_apart = any(map(share.any, ("truncates", "has_null_key"))) or declared.has_history
    keys = sum(group["keys"] for group in share.rows)
    return bool(layout.keys) and in_key and is_plain and not is_apart and share.count >= _WORTH_IT * keys


def decode_options(share: TableShare, forms: Sequence[Form], layout: Layout) -> DecodeOptions:
    """Return the decode options: what the survey found in some record of the batch, and what the declared key
    requires.
    """
    placeholder = share.at.placeholder if share.any("has_placeholder") and share.declaration.unavailable else None
    is_keyed = not share.declaration.append_only
    is_wider = is_keyed and any(row_keys.is_wider(form, layout) for form in forms)
    flags = is_wider or share.any("has_keyless_delete"), is_keyed and share.any("has_key_change")
    many = not tuning.is_small(share.spark)
    return DecodeOptions(placeholder, *flags, generated=share.declaration.generated, departures=is_wider, many=many)


def _past(
    share: TableShare, reading: _Reading, truncated: Callable[[], TruncateState], stack: ExitStack, *, is_new: bool
) -> key_moves.Past:
    """Return what rows that changed their key may have to be compared with, or inherit from; silver is given in the
    columns that it will have.

    Older records may contain the placeholder even if the batch does not.
    """
    placeholder = share.at.placeholder if share.declaration.unavailable else None
    places = share.declaration.transform is not None
    layout, transform = reading.layout, reading.transform
    read = decode_options(share, reading.forms, layout)
    needs = replace(read, placeholder=placeholder, key_changes=True, places=places, departures=False)

    def made(
        decoded: Callable[..., DataFrame], forms: Sequence[Form], conditions: Mapping[str, Column]
    ) -> tuple[DataFrame, Mapping[str, int]]:
        is_plain = transform.transform is None and not any(map(layout.find_misfit, forms))
        quick = decoded(reasons=False) if is_plain else None
        return _compute(lambda: transform.apply(decoded(reasons=True)), quick, conditions, stack)

    def images(ordered: DataFrame, forms: Sequence[Form]) -> DataFrame:
        deletes = ordered.where(F.col("op") == "d")
        decoded = partial(decode.decode_before, deletes, forms, layout, share.name, needs)
        return made(decoded, forms, change_counts.by_outcome())[0]

    def history(keys: DataFrame, wanted: Collection[str]) -> key_moves.History | None:
        at = share.at
        bronze = at.bronze.read(share.spark, at.lake.bronze(at.source.name), share.upto)
        of_table = bronze.where(F.col("topic").isin(*share.routes.topics(share.name)))
        read = stack.enter_context(share.described(_records_with_keys(of_table, keys, reading)))
        found = share.routed(read)
        groups = tuple(changes.survey(found).collect())
        then = replace(share, groups=groups)
        rows = then.changes_in(found)
        if not then.rows:
            return None
        noted = partial(schema_change.load_written, share)
        past, _ = forms_of.from_groups(then.rows, rows, share.declaration, reading.known, noted)
        in_order = changes.with_seq(rows, snapshots=then.any("has_snapshot"), running=None)
        of_rows = in_order.where(F.col("op") != "t")
        decoded = partial(decode.decode, of_rows, past, layout, share.name, needs)
        every, told = made(decoded, past, change_counts.moved(wanted))
        return key_moves.History(every.where(F.col("_reject").isNull()), told, partial(images, in_order, past))

    stored, of_batch = _read_stored(share, transform, is_new=is_new), partial(images, reading.ordered, reading.forms)
    return key_moves.Past(transform.layout.keys, stored, of_batch, history, truncated)


def _former_key_inputs(share: TableShare, reading: _Reading, needs: DecodeOptions, *, is_new: bool) -> FormerKeyInputs:
    """Return the inputs for updates that gave their row another key."""

    def images() -> DataFrame:
        updates = reading.ordered.where(F.col("op") == "u")
        return reading.transform.apply(decode.decode_before(updates, reading.forms, reading.layout, share.name, needs))

    return FormerKeyInputs(
        reading.layout, reading.transform, images, _read_stored(share, reading.transform, is_new=is_new)
    )


def _read_stored(share: TableShare, transform: BatchTransform, *, is_new: bool) -> DataFrame | None:
    """Read silver in the columns that it will have; None for a new table."""
    evolution = transform.schema.plan.evolution
    return None if is_new else apply_evolution(share.at.silver.read(share.spark, share.table), evolution)


def _records_with_keys(records: DataFrame, keys: DataFrame, reading: _Reading) -> DataFrame:
    """Return the records with one of these keys. Headers may spell a key differently from the record's key (measured
    Z2.4); such records are found by value, except after a transform, which may have made other keys of them.
    """
    same = headers.key_text(records["key"]) == keys["_old_text"]
    found = records.join(keys, same, how="left_semi")
    is_as_sent = reading.transform.transform is None
    read = key_headers.with_sent_key(records, reading.forms, reading.layout) if is_as_sent else None
    if read is None:
        return found
    parsed = keys.where(F.col("_old").isNotNull())
    by_value = read.join(parsed, read["_sent_key"] == parsed["_old"], how="left_semi").select(found.columns)
    return found.unionByName(by_value).dropDuplicates(list(COORDINATES))
