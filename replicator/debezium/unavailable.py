"""Detection of values that Debezium left out, by the placeholder in every spelling (debezium.md section E).

The whole value is compared, before it is decoded (types.md Y4), and by the type of the column, so that a user's own
text can collide in text columns only (E6).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.placeholder import Placeholder, escape_json


def may_hold_placeholder(value: Column, placeholder: Placeholder) -> Column:
    """Whether a record's text may contain a placeholder at all."""
    found = F.lit(False)
    for mark in map(escape_json, placeholder.marks()):
        found = found | F.coalesce(value.contains(mark), F.lit(False))
    return found


def is_unavailable(text: Column, placeholder: Placeholder) -> Column:
    """Whether one column's text, as ``from_json`` gives it for STRING, is the placeholder. Never NULL."""
    return F.coalesce(text.isin(*placeholder.spellings()), F.lit(False))
