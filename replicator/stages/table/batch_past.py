"""What rows of a batch that changed their key are compared with, or inherit from: silver, the rows before the batch's
own records, and bronze.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import headers
from replicator.debezium.schema import Form
from replicator.stages.table import counted_changes, key_moves, schema_change
from replicator.stages.table.batch_reading import BatchReading
from replicator.stages.table.former_keys import FormerKeyInputs
from replicator.stages.tick import forms as forms_of
from replicator.transforms import change_counts, changes, decode
from replicator.transforms.dead_letters import COORDINATES
from replicator.transforms.decode import DecodeOptions
from replicator.transforms.keys import key_headers


def of_departures(reading: BatchReading) -> FormerKeyInputs:
    """Return the inputs for updates that gave their row another key."""

    def images() -> DataFrame:
        updates = reading.ordered.where(F.col("op") == "u")
        name, needs = reading.share.name, reading.needs
        return reading.transform.apply(decode.decode_before(updates, reading.forms, reading.layout, name, needs))

    return FormerKeyInputs(reading.layout, reading.transform, images, reading.silver())


def of_moves(reading: BatchReading, stack: ExitStack) -> key_moves.Past:
    """Return what rows that changed their key may have to be compared with, or inherit from; what is read of it is
    persisted as long as ``stack`` is open.
    """
    share, declaration = reading.share, reading.share.declaration
    needs = replace(
        reading.needs,
        # older records may contain the placeholder even if the batch does not
        placeholder=share.at.placeholder if declaration.unavailable else None,
        key_changes=True,
        places=declaration.transform is not None,
        departures=False,
    )
    past = _Past(reading, needs, stack)
    return key_moves.Past(
        reading.transform.layout.keys,
        reading.silver(),
        partial(past.images, reading.ordered, reading.forms),
        past.history,
        lambda: reading.truncated,
    )


@dataclass(frozen=True)
class _Past:
    """Older changes of a batch's keys, decoded as ``needs`` says and persisted as long as ``stack`` is open."""

    reading: BatchReading
    needs: DecodeOptions
    stack: ExitStack

    def images(self, ordered: DataFrame, forms: Sequence[Form]) -> DataFrame:
        """Return the rows that the deletes among ordered records removed."""
        decoded = partial(decode.decode_before, ordered.where(F.col("op") == "d"))
        return self._compute(decoded, forms, change_counts.by_outcome())[0]

    def history(self, keys: DataFrame, wanted: Collection[str]) -> key_moves.History | None:
        """Return the changes of these keys in bronze, with counts of the ``wanted`` columns; None if it has none."""
        share, reading = self.reading.share, self.reading
        bronze = share.at.bronze.read(share.spark, share.at.lake.bronze(share.at.source.name), share.upto)
        of_table = bronze.where(F.col("topic").isin(*share.routes.topics(share.name)))
        found = share.routed(self.stack.enter_context(share.described(_records_with_keys(of_table, keys, reading))))
        then = replace(share, groups=tuple(changes.survey(found).collect()))
        rows = then.changes_in(found)
        if not then.rows:
            return None
        noted = partial(schema_change.load_written, share)
        forms, _ = forms_of.from_groups(then.rows, rows, share.declaration, reading.known, noted)
        ordered = changes.with_seq(rows, snapshots=then.any("has_snapshot"), running=None)
        decoded = partial(decode.decode, ordered.where(F.col("op") != "t"))
        every, counts = self._compute(decoded, forms, change_counts.moved(wanted))
        return key_moves.History(every.where(F.col("_reject").isNull()), counts, partial(self.images, ordered, forms))

    def _compute(
        self, decoded: Callable[..., DataFrame], forms: Sequence[Form], conditions: Mapping[str, Column]
    ) -> tuple[DataFrame, Mapping[str, int]]:
        reading = self.reading
        options = forms, reading.layout, reading.share.name, self.needs
        return counted_changes.compute(
            lambda reasons: decoded(*options, reasons=reasons), forms, reading.transform, conditions, self.stack
        )


def _records_with_keys(records: DataFrame, keys: DataFrame, reading: BatchReading) -> DataFrame:
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
