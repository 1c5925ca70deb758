"""The records of one table's share as typed changes in the source's order, with what key changes mean for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator.debezium import headers
from replicator.debezium.schema import Form
from replicator.stages import forms as forms_of
from replicator.stages import moves, schema_change, truncates, tuning
from replicator.stages.schema_change import SchemaChange
from replicator.stages.share import Share
from replicator.stages.truncates import Truncated
from replicator.transforms import changes, decode, evolve, truncate
from replicator.transforms.decode import Needs
from replicator.transforms.layout import Layout


@dataclass(frozen=True)
class Decoded:
    """The records of one share with their ``_seq`` (``ordered``), the ``changes`` that they make, and what the table
    must become for them. ``guessed`` names columns whose types nobody described; ``swaps`` counts the records that
    were ignored as ``key_swap`` and are no changes; ``truncated`` tells of truncates, those of the batch included.
    """

    ordered: DataFrame
    changes: DataFrame
    schema: SchemaChange
    stored: StructType | None
    guessed: frozenset[str]
    swaps: int
    truncated: Callable[[], Truncated]


@contextmanager
def decoded(share: Share, records: DataFrame, *, places: bool = False) -> Iterator[Decoded]:
    """The share's changes, kept for the time of the block; with ``places`` they have ``_at``. Raises SchemaRefused
    where the table cannot follow.
    """
    rows = share.changes_in(records)
    stored = share.stored()
    forms, guessed = forms_of.read(share.rows, rows, share.declaration, stored)
    ordered = share.ordered(rows)
    schema = schema_change.foresee(share, ordered, forms, stored)
    evolve.refuse(share.name, schema.plan, schema.policy)
    layout = schema.plan.layout
    needs = replace(_needs(share), places=places)
    changed = decode.decode(ordered.where(F.col("op") != "t"), forms, layout, share.name, needs)
    truncated = cache(lambda: truncates.read(share, ordered))
    with ExitStack() as kept:
        made, swaps = kept.enter_context(tuning.kept(changed)), 0
        if needs.key_changes:
            past = _past(share, ordered, forms, layout, stored, truncated, kept)
            done = kept.enter_context(moves.settled(made, share.name, past))
            made, swaps = kept.enter_context(tuning.kept(done.changes)), done.swaps
        yield Decoded(ordered, made, schema, stored, frozenset(guessed), swaps, truncated)


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
    truncated: Callable[[], Truncated],
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
        found = share.routed(read)
        groups = tuple(changes.survey(found, at.placeholder).collect())
        then = replace(share, groups=groups)
        rows = then.changes_in(found)
        if not then.rows:
            return None
        past, _ = forms_of.read(then.rows, rows, share.declaration, stored)
        in_order = changes.ordered(rows, snapshots=then.any("has_snapshot"), running=None)
        decoded = decode.decode(in_order.where(F.col("op") != "t"), past, layout, share.name, needs)
        good = decoded.where(F.col("_reject").isNull())
        known = truncates.stored(share)
        return good if known is None else truncate.survivors(good, known)

    present = None if stored is None else share.at.silver.read(share.spark, share.table)
    return moves.Past(layout.keys, present, images, history, lambda: truncated().watermark)
