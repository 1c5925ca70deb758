"""How the records of one table's share are read: their forms, what the table needs for them, and its transform."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator.debezium.schema import Form
from replicator.stages import tuning
from replicator.stages.table import ordering, schema_change, transform_origins, transforming, truncates
from replicator.stages.table.schema_change import PlannedChange
from replicator.stages.table.transforming import BatchTransform
from replicator.stages.table.truncates import TruncateState
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import decode, evolve
from replicator.transforms.columns.layout import Layout
from replicator.transforms.columns.reshape import apply_evolution
from replicator.transforms.decode import DecodeOptions
from replicator.transforms.keys import row_keys


@dataclass(frozen=True)
class BatchReading:
    """The ``rows`` of a share, also in the source's order (``ordered``, with ``_seq``), their ``forms``, the columns
    ``known`` from earlier batches and those of the table (``stored``; None: a new one), the ``schema`` that the source
    needs, and what decoding has to look for (``needs``). ``guessed`` are columns whose types nothing describes.
    """

    share: TableShare
    rows: DataFrame
    ordered: DataFrame
    forms: Sequence[Form]
    guessed: Collection[str]
    known: StructType | None
    stored: StructType | None
    schema: PlannedChange
    needs: DecodeOptions

    @property
    def layout(self) -> Layout:
        """The columns of the source."""
        return self.schema.plan.layout

    @property
    def of_rows(self) -> DataFrame:
        """The records of single rows: all but truncates."""
        return self.ordered.where(F.col("op") != "t")

    @cached_property
    def typed(self) -> DataFrame:
        """The records of single rows, decoded, before a transform."""
        return decode.decode(self.of_rows, self.forms, self.layout, self.share.name, self.needs)

    @cached_property
    def transform(self) -> BatchTransform:
        """The transform of the batch. A truncate alone has no columns to bind it to, but those of an existing table are
        known.
        """
        has_rows = self.share.count > sum(group["truncates"] or 0 for group in self.share.rows)
        if has_rows or self.stored is not None:
            return transforming.prepare(self.share, self.schema, self.stored, lambda: self.typed)
        return BatchTransform(self.schema)

    @cached_property
    def truncated(self) -> TruncateState:
        """The known truncates, including those of the batch."""
        return truncates.read(self.share, self.ordered)

    def silver(self) -> DataFrame | None:
        """Read silver in the columns that it will have; None for a new table."""
        if self.stored is None:
            return None
        share = self.share
        rows = share.at.silver.read(share.spark, share.table)
        return apply_evolution(rows, self.transform.schema.plan.evolution)


def read_batch(share: TableShare, records: DataFrame, *, places: bool) -> BatchReading:
    """Return how the share of these records is read; decoded changes have ``_at`` with ``places``, or where they need
    it. Raises SchemaRefused if the table cannot follow.
    """
    rows, stored = share.changes_in(records), share.stored()
    known = transform_origins.source_columns(share, stored)
    found, guessed = forms_of.from_groups(
        share.rows, rows, share.declaration, known, partial(schema_change.load_written, share)
    )
    forms = _with_declared(share, found) if stored is None else found
    ordered = ordering.order_records(share, rows)
    schema = schema_change.plan_change(share, ordered, forms, known)
    evolve.refuse_withheld(share.name, schema.plan, schema.policy)
    needs = decode_options(share, forms, schema.plan.layout)
    needs = replace(needs, places=places or needs.departures or share.declaration.transform is not None)
    return BatchReading(share, rows, ordered, forms, guessed, known, stored, schema, needs)


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


def _with_declared(share: TableShare, forms: Sequence[Form]) -> Sequence[Form]:
    """Return the forms of a first batch. If it has only deletes, which have no columns, a transform is bound to the
    declared columns.
    """
    if share.declaration.transform is None or any(form.fields for form in forms):
        return forms
    return [replace(form, fields=form.image_fields) for form in forms]
