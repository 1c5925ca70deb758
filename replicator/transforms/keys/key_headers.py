"""Key changes from record headers, as columns of a change (debezium.md C3).

- ``_old STRUCT`` of key columns: the key that the row had before.
- ``_left BOOLEAN``: the delete of a row that moved to another key.
- ``_stays BOOLEAN``: such a delete whose row keeps its key here, since the table's key is only a part of Kafka's.
- ``_old_text``: for all of these the key that was left, as JSON.
- ``_tx STRING``: the transaction, or else the major part of the position (C5); NULL if there are only offsets.
- ``_inserted BOOLEAN``: the row is new under its key.
- ``_at STRUCT<topic, topic_id, partition, offset>``: the coordinates of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.debezium import headers, position
from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Form
from replicator.transforms import cells
from replicator.transforms.columns.layout import Layout
from replicator.transforms.structs import Struct

MOVE_COLUMNS = ("_old", "_old_text", "_left", "_stays", "_tx", "_inserted", "_at")
"""The additional columns of changes where keys change."""

_OLD_KEY, _NEW_KEY = "_old_key", "_new_key"


def with_header_keys(records: DataFrame) -> DataFrame:
    """Add the old and new keys from the headers of records."""
    old = F.when(F.col("op") != "d", headers.old_key(F.col("headers")))
    new = F.when(F.col("op") == "d", headers.new_key(F.col("headers")))
    return records.withColumn(_OLD_KEY, old).withColumn(_NEW_KEY, new)


def structs(form: Form, layout: Layout) -> list[Struct]:
    """The structs to parse from header keys: the new key only if a row may keep its table key."""
    fields = _header_fields(form.key_fields)
    new = [Struct("_new_row", _NEW_KEY, (), fields)] if is_partial_key(form, layout) else []
    return [Struct("_old_row", _OLD_KEY, (), fields), *new]


def parsed_columns() -> list[Column]:
    """The columns of records with keys from :func:`with_header_keys`."""
    left, came = F.col(_NEW_KEY).isNotNull(), F.col(_OLD_KEY)
    by_place = F.when(~position.is_by_offset(F.col("_seq")), position.major(F.col("_seq")))
    return [
        F.when(left, headers.key_text(F.col("key"))).otherwise(headers.compact(came)).alias("_old_text"),
        left.alias("_left"),
        F.coalesce("transaction", by_place).alias("_tx"),
        ((F.col("op") == "c") | came.isNotNull()).alias("_inserted"),
    ]


def columns(form: Form, layout: Layout) -> list[Column]:
    """MOVE_COLUMNS without ``_at``."""
    in_headers = _header_fields(form.key_fields)
    came = F.col("_old_text").isNotNull() & ~F.col("_left")
    old = F.when(came, _key_in("_old_row", layout, in_headers))  # NULL for a row that came from no other key
    stays = F.lit(False)
    if is_partial_key(form, layout):
        own, new = _key_in("_key", layout, form.key_fields), _key_in("_new_row", layout, in_headers)
        stays = F.coalesce(F.col("_left") & (own == new), F.lit(False))
    told = map(F.col, ("_tx", "_inserted"))
    return [old.alias("_old"), F.col("_old_text"), F.col("_left"), stays.alias("_stays"), *told]


def is_partial_key(form: Form, layout: Layout) -> bool:
    """Whether the table's key is a proper part of Kafka's, so that a row may keep it when Kafka's changes."""
    return set(layout.keys) < {layout.stored_name(field.name) for field in form.key_fields}


def with_sent_key(records: DataFrame, forms: Sequence[Form], layout: Layout) -> DataFrame | None:
    """Records with their key in the table's types (``_sent_key``), by the first of the forms that can read it; None if
    the key's text can be compared with that in headers (measured Z2.4).
    """
    odd = [form for form in forms if _header_fields(form.key_fields) != list(form.key_fields)]
    if not odd:
        return None
    keys = [Struct(f"_key{number}", "key", form.key_path, form.key_fields) for number, form in enumerate(odd)]
    bare = {name: column for key in keys for name, column in key.unquoted().items()}
    parsed = records.withColumns({key.name: key.parsed() for key in keys}).withColumns(bare)
    read = [_key_in(f"_key{number}", layout, form.key_fields) for number, form in enumerate(odd)]
    known = [F.when(reduce(and_, [each[key].isNotNull() for key in layout.keys]), each) for each in read]
    return parsed.withColumn("_sent_key", F.coalesce(*known)).drop(*[key.name for key in keys], *bare)


def _key_in(source: str, layout: Layout, fields: Sequence[Field]) -> Column:
    """The key in ``source`` as a struct of the table's key columns."""
    parts = {
        layout.stored_name(field.name): cells.decode_key_column(source, field.name, field.logical) for field in fields
    }
    return F.struct(*[parts.get(key, F.lit(None)).cast(layout.types[key]).alias(key) for key in layout.keys])


def _header_fields(fields: Sequence[Field]) -> list[Field]:
    """The fields as headers write them: decimals as numbers, whatever the record does (measured Z2.4)."""
    return [
        replace(field, logical=replace(field.logical, encoding="number"))
        if field.logical.name == "decimal" and field.logical.encoding != "text"
        else field
        for field in fields
    ]
