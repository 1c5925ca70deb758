"""The key of a change: from Kafka's key (C1), where that lacks a declared one from the row, and of a delete that has no
other from the row ``before`` (debezium.md B4).

A declared key may be *wider* than the key of the records, which may have none: that does not tell which row a delete
takes, nor that an update gave its row another key. ``before`` tells both, where it is the row. What becomes of such an
update is told in ``departures.py``.
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
from replicator.jvm import expressions
from replicator.transforms import cells
from replicator.transforms.columns.layout import Layout
from replicator.transforms.structs import Struct

CAME_FROM = "_came_from"
"""Of a change: STRUCT of the key that an update took its row from; NULL where it did not, or nothing tells."""

_FILLERS = ("", "0", "false", "0.0", "AA==")
"""What PostgreSQL has for a value that it does not know of the former row (E9), as records write it."""

_BEFORE, _IS_IMAGE = "_before", "_is_image"


def is_wider(form: Form, layout: Layout) -> bool:
    """Whether the records of a form do not have all of the declared key in Kafka's."""
    return layout.keys_from_row and not set(layout.keys) <= {layout.named(field.name) for field in form.key_fields}


@dataclass(frozen=True)
class RowKeys:
    """How the records of a form tell the key of their row, in a ``layout``. ``by_image``: deletes may have it in the
    row before alone.
    """

    form: Form
    layout: Layout
    by_image: bool

    @property
    def _reads_before(self) -> bool:
        return self.by_image and not self.form.is_flat

    def structs(self) -> list[Struct]:
        """What of a record is parsed for it."""
        found = [Struct("_key", "key", self.form.key_path, self.form.key_fields)]
        if self._reads_before:
            fields = self.form.image_fields if is_wider(self.form, self.layout) else self._fields_before()
            found.append(Struct(_BEFORE, "value", (*self.form.path[:-1], "before"), fields))
        return found

    def columns(self) -> dict[str, Column]:
        """Of what was parsed, by short names: ``_k`` of the record's key, ``_b`` of the one in the row before, and
        whether that is one.
        """
        fields = enumerate(self.form.key_fields)
        found = {f"_k{i}": cells.decode_key_column("_key", field.name, field.logical) for i, field in fields}
        if self._reads_before:
            gone = enumerate(self._fields_before())
            found |= {f"_b{i}": cells.decode_key_column(_BEFORE, field.name, field.logical) for i, field in gone}
        return found | ({_IS_IMAGE: self._is_image()} if self.by_image else {})

    def of_row(self, row: Mapping[str, Column]) -> tuple[dict[str, Column], Column]:
        """The key, over these columns and the values of the ``row`` by stored name; what is wrong with it."""
        layout, wider = self.layout, is_wider(self.form, self.layout)
        in_key = {layout.named(field.name): F.col(f"_k{i}") for i, field in enumerate(self.form.key_fields)}
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
        told = {column: F.when(is_taken, taken[column]).otherwise(key) for column, key in keys.items()}
        return told, F.when(is_taken, nowhere).otherwise(problem)

    def came_from(self, now: Mapping[str, Column]) -> Column:
        """FROM of a change whose columns are ``now``."""
        old, new = (self._struct(columns) for columns in (self._before(), now))
        if not (self._reads_before and is_wider(self.form, self.layout)):
            return F.when(F.lit(False), self._struct({}))
        is_known = (F.col("op") == "u") & F.col(_IS_IMAGE) & _complete(old.getField(key) for key in self.layout.keys)
        return F.when(is_known & (old != new), old)

    def _is_image(self) -> Column:
        """Whether the row before is one: not just its key and filler, as PostgreSQL sends it where rows are identified
        by their keys (E9). Without a key in Kafka it always is.
        """
        form = self.form
        if not (form.key_fields and is_wider(form, self.layout)):
            return F.lit(True)
        source, fields = (cells.ROW, form.fields) if form.is_flat else (_BEFORE, form.image_fields)
        in_key = {field.name for field in form.key_fields}
        told = [
            ~F.coalesce(F.col(source).getField(field.name).cast("string"), F.lit("")).isin(*_FILLERS)
            for field in fields
            if field.name not in in_key and "<" not in types.wire_type(field.logical)
        ]
        return expressions.any_of(told)

    def _fields_before(self) -> list[Field]:
        return [field for field in self.form.image_fields if self.layout.named(field.name) in self.layout.keys]

    def _before(self) -> dict[str, Column]:
        return {self.layout.named(field.name): F.col(f"_b{i}") for i, field in enumerate(self._fields_before())}

    def _named(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        return {key: columns.get(key, F.lit(None)) for key in self.layout.keys}

    def _struct(self, columns: Mapping[str, Column]) -> Column:
        kinds = self.layout.types
        return F.struct(*[column.cast(kinds[key]).alias(key) for key, column in self._named(columns).items()])


def _complete(keys: Iterable[Column]) -> Column:
    return reduce(lambda so_far, key: so_far & key.isNotNull(), keys, F.lit(True))
