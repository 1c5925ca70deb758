"""Tables whose declared key is more than the key of their records, which may have none: that does not tell which row a
delete takes (debezium.md B4), nor that an update gave its row another key. ``before`` tells both, where it is the row.

What becomes of such an update is told in ``departures.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium import types
from replicator.debezium.schema import Form
from replicator.transforms.layout import Layout

FROM = "_came_from"
"""Of a change: STRUCT of the key that an update took its row from; NULL where it did not, or nothing tells."""

_FILLERS = ("", "0", "false", "0.0", "AA==")
"""What PostgreSQL has for a value that it does not know of the former row (E9), as records write it."""


def is_wider(form: Form, layout: Layout) -> bool:
    """Whether the records of a form do not have all of the declared key in Kafka's."""
    return layout.keys_from_row and not set(layout.keys) <= {layout.named(field.name) for field in form.key_fields}


def is_image(form: Form, layout: Layout) -> Column:
    """Whether the former row is one, over ``_before`` (of a flattened delete ``_row``): not just its key and filler, as
    PostgreSQL sends it where rows are identified by their keys (E9). Without a key in Kafka it always is.
    """
    if not (form.key_fields and is_wider(form, layout)):
        return F.lit(True)
    source, fields = ("_row", form.fields) if form.is_flat else ("_before", form.image_fields)
    in_key = {field.name for field in form.key_fields}
    told = [
        ~F.coalesce(F.col(source).getField(field.name).cast("string"), F.lit("")).isin(*_FILLERS)
        for field in fields
        if field.name not in in_key and "<" not in types.wire_type(field.logical)
    ]
    return reduce(or_, told, F.lit(False))


def left(before: Mapping[str, Column], now: Mapping[str, Column], layout: Layout, is_image: Column) -> Column:
    """FROM of a record, of the columns ``before`` and ``now``."""
    old, new = key(before, layout), key(now, layout)
    whole = [old.getField(name).isNotNull() for name in layout.keys]
    is_known = reduce(lambda so_far, each: so_far & each, whole, (F.col("op") == "u") & is_image)
    return F.when(is_known & (old != new), old)


def key(columns: Mapping[str, Column], layout: Layout) -> Column:
    """A struct of the key, as the table has it."""
    return F.struct(*[columns.get(k, F.lit(None)).cast(layout.types[k]).alias(k) for k in layout.keys])
