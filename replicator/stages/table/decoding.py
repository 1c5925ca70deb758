"""Decode the records of one table's share into typed changes in the source's order, and resolve key changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from replicator.debezium.schema import overridden_columns
from replicator.stages.table import batch_past, batch_reading, counted_changes, former_keys, key_moves
from replicator.stages.table.batch_reading import BatchReading
from replicator.stages.table.schema_change import PlannedChange
from replicator.stages.table.truncates import TruncateState
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import change_counts, decode
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


@contextmanager
def decode_share(
    share: TableShare, records: DataFrame, *, places: bool = False, every: bool = True
) -> Iterator[Decoded]:
    """Yield the share's decoded changes; persisted while the context is open. With ``places`` they have ``_at``.
    Without ``every``, changes that a newer one of their key replaces may be left out. Raises SchemaRefused if the table
    cannot follow.
    """
    reading = batch_reading.read_batch(share, records, places=places)
    with ExitStack() as stack:
        newest = None if every or not _can_skip_replaced(reading) else _newest_of_keys(reading)
        made, tally = _compute(reading, newest, stack)
        replaced = 0 if newest is None else share.count - tally["good"] - tally["rejected"]
        swaps, departed = 0, None
        if reading.needs.departures:
            if tally["departed"]:
                departed = stack.enter_context(former_keys.build_deletes(made, batch_past.of_departures(reading)))
            made = made.drop(CAME_FROM)
        if reading.needs.key_changes:
            past = batch_past.of_moves(reading, stack)
            done = stack.enter_context(key_moves.resolve(made, tally, share.name, past))
            made, tally, swaps = done.changes, done.counts, done.swaps
        passed = execution.apply_filter(made)
        yield Decoded(
            reading.ordered,
            passed,
            reading.transform.schema,
            reading.stored,
            frozenset(reading.guessed),
            overridden_columns(reading.forms, share.declaration) if reading.stored is None else frozenset(),
            swaps,
            lambda: reading.truncated,
            tally if passed is made else None,
            replaced,
            departed,
        )


def _compute(reading: BatchReading, newest: DataFrame | None, stack: ExitStack) -> tuple[DataFrame, Mapping[str, int]]:
    """Compute and count the changes: those of the ``newest`` records, or of all if one of them is rejected."""

    def decoded(reasons: bool) -> DataFrame:
        if reasons:
            return reading.typed
        records = reading.of_rows if newest is None else newest
        return decode.decode(records, reading.forms, reading.layout, reading.share.name, reading.needs, reasons=False)

    needs = reading.needs
    conditions = change_counts.moved(_may_lack(reading)) if needs.key_changes else change_counts.by_outcome()
    conditions |= change_counts.departed() if needs.departures else {}
    return counted_changes.compute(decoded, reading.forms, reading.transform, conditions, stack)


def _may_lack(reading: BatchReading) -> list[str]:
    """Return the columns that some change may not know and that a row may inherit from its former key; columns made
    from the key are excluded.
    """
    if reading.needs.placeholder is None and not reading.needs.generated:
        return []
    layout, making = reading.transform.layout, reading.transform.transform
    own = set() if making is None else {name for name, of in making.sources.items() if of.intersection(making.keys)}
    return [column for column in layout.types if column not in {*layout.keys, *own}]


def _can_skip_replaced(reading: BatchReading) -> bool:
    """Return whether the newest record of each key in Kafka replaces all earlier ones, and there are enough of those:
    the record's key contains the row's key, a change has the whole row, and nothing needs the changes in between.
    """
    share, layout, needs, declared = reading.share, reading.layout, reading.needs, reading.share.declaration
    in_key = all(
        {layout.stored_name(field.name) for field in form.key_fields}.issuperset(layout.keys) for form in reading.forms
    )
    is_plain = not (
        needs.keyless_deletes or needs.key_changes or needs.generated or declared.transform or declared.append_only
    )
    is_apart = any(map(share.any, ("truncates", "has_null_key"))) or declared.has_history
    is_worth_it = share.count >= _WORTH_IT * _count_keys(share)
    return bool(layout.keys) and in_key and is_plain and not is_apart and is_worth_it


def _newest_of_keys(reading: BatchReading) -> DataFrame:
    """Return the records that no newer one of their key in Kafka replaces."""
    share = reading.share
    is_held = reading.needs.placeholder is not None
    return drop_superseded(
        reading.rows, reading.ordered, tied=share.has_place_ties, held=is_held, keys=_count_keys(share)
    )


def _count_keys(share: TableShare) -> int:
    return sum(group["keys"] for group in share.rows)
