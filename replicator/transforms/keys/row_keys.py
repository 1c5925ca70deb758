"""Row keys: the key of a change from Kafka's key (C1); from the row, for declared columns that Kafka's key lacks; and
for a delete without either, from the row ``before`` (debezium.md B4).

A declared key may be *wider* than Kafka's, which may be missing: that neither identifies the row of a delete, nor shows
that an update changed its row's key. ``before`` does both, if it is the complete row. ``departures.py`` handles such
updates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium import types
from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Form
from replicator.transforms import cells
from replicator.transforms.columns.layout import Layout
from replicator.transforms.keys import fillers
from replicator.transforms.structs import Struct

CAME_FROM = "_came_from"
"""The column with the former key of an update that changed it, as STRUCT; NULL if it did not, or that is unknown."""

_BEFORE, _IS_IMAGE = "_before", "_is_image"


def is_wider(form: Form, layout: Layout) -> bool:
    """Whether Kafka's key lacks a part of the declared key in the records of a form."""
    return layout.keys_from_row and not set(layout.keys) <= {
        layout.stored_name(field.name) for field in form.key_fields
    }


@dataclass(frozen=True)
class RowKeys:
    """The row keys of the records of a form, in a ``layout``. ``by_image``: deletes may have theirs only in the row
    before.
    """

    form: Form
    layout: Layout
    by_image: bool

    @property
    def _reads_before(self) -> bool:
        return self.by_image and not self.form.is_flat

    def structs(self) -> list[Struct]:
        """The structs to parse for the key."""
        found = [Struct("_key", "key", self.form.key_path, self.form.key_fields)]
        if self._reads_before:
            fields = self.form.image_fields if is_wider(self.form, self.layout) else self._fields_before()
            found.append(Struct(_BEFORE, "value", (*self.form.path[:-1], "before"), fields))
        return found

    def columns(self) -> dict[str, Column]:
        """Columns over the parsed structs: ``_k<i>`` of the record's key, ``_b<i>`` of the key in the row before, and
        whether that is a real row image.
        """
        fields = enumerate(self.form.key_fields)
        found = {f"_k{i}": cells.decode_key_column("_key", field.name, field.logical) for i, field in fields}
        if self._reads_before:
            gone = enumerate(self._fields_before())
            found |= {f"_b{i}": cells.decode_key_column(_BEFORE, field.name, field.logical) for i, field in gone}
        return found | ({_IS_IMAGE: self._is_image()} if self.by_image else {})

    def from_row(self, row: Mapping[str, Column]) -> tuple[dict[str, Column], Column]:
        """The key, over :meth:`columns` and the values of the ``row`` by stored name, and its problem, if any."""
        layout, wider = self.layout, is_wider(self.form, self.layout)
        in_key = {layout.stored_name(field.name): F.col(f"_k{i}") for i, field in enumerate(self.form.key_fields)}
        known = {**row, **in_key} if wider else in_key
        missing = F.lit(not set(layout.keys) <= set(known)) if wider else F.col("key").isNull() | F.lit(not layout.keys)
        keys = self._named(known)
        problem = F.coalesce(F.when(missing, "key_missing"), F.when(~_complete(keys.values()), "key_undecodable"))
        if not (self.by_image and layout.keys):
            return keys, problem
        # a flattened delete is the row before itself (F3)
        taken = self._named(in_key | (dict(row) if self.form.is_flat else self._before()))
        nowhere = F.when(~(_complete(taken.values()) & F.col(_IS_IMAGE)), "key_missing")
        is_taken = (F.col("op") == "d") & (F.col("key").isNull() | F.lit(wider))
        found = {column: F.when(is_taken, taken[column]).otherwise(key) for column, key in keys.items()}
        return found, F.when(is_taken, nowhere).otherwise(problem)

    def came_from(self, now: Mapping[str, Column]) -> Column:
        """CAME_FROM of a change whose columns are ``now``."""
        old, new = (self._struct(columns) for columns in (self._before(), now))
        if not (self._reads_before and is_wider(self.form, self.layout)):
            return F.when(F.lit(False), self._struct({}))
        is_known = (F.col("op") == "u") & F.col(_IS_IMAGE) & _complete(old.getField(key) for key in self.layout.keys)
        return F.when(is_known & (old != new), old)

    def _is_image(self) -> Column:
        """Whether the row before is a real image: not just its key and filler, as PostgreSQL sends it where rows are
        identified by their keys (E9). Without a Kafka key it always is.
        """
        form = self.form
        if not (form.key_fields and is_wider(form, self.layout)):
            return F.lit(True)
        source, fields = (cells.ROW, form.fields) if form.is_flat else (_BEFORE, form.image_fields)
        in_key = {field.name for field in form.key_fields}
        return fillers.has_other(
            F.col(source).getField(field.name)
            for field in fields
            if field.name not in in_key and "<" not in types.wire_type(field.logical)
        )

    def _fields_before(self) -> list[Field]:
        return [field for field in self.form.image_fields if self.layout.stored_name(field.name) in self.layout.keys]

    def _before(self) -> dict[str, Column]:
        return {self.layout.stored_name(field.name): F.col(f"_b{i}") for i, field in enumerate(self._fields_before())}

    def _named(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        return {key: columns.get(key, F.lit(None)) for key in self.layout.keys}

    def _struct(self, columns: Mapping[str, Column]) -> Column:
        kinds = self.layout.types
        return F.struct(*[column.cast(kinds[key]).alias(key) for key, column in self._named(columns).items()])


def _complete(keys: Iterable[Column]) -> Column:
    return reduce(lambda so_far, key: so_far & key.isNotNull(), keys, F.lit(True))
