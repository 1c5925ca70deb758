"""Detection of lone surrogates, which JSON can escape but no text can hold (types.md section 4).

Spark's parser replaces one by ``?``, which could make two different keys equal.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F]"
_HALF = rf"(?<!\\)(?:\\\\)*(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""An escaped surrogate without its other half; after an even number of backslashes it still is an escape."""


def has_lone_surrogate(json: Column) -> Column:
    """Whether a JSON text contains a lone surrogate. Surrogate escapes are rare: a cheap test for any comes first."""
    may = json.contains("\\ud") | json.contains("\\uD")
    return F.coalesce(may & json.rlike(_HALF), F.lit(False))
