"""Halves of surrogate pairs, which JSON can name by an escape and no text can hold: Spark's parser writes ``?`` for
one, so that two keys become the same (types.md section 4).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F]"
_HALF = rf"(?<!\\)(?:\\\\)*(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""An escape of one without the other; an even number of backslashes before it leaves it one."""


def has_lone_surrogate(json: Column) -> Column:
    """Whether some text of a JSON text has half a pair. Escapes of surrogates are rare, and looked for first."""
    may = json.contains("\\ud") | json.contains("\\uD")
    return F.coalesce(may & json.rlike(_HALF), F.lit(False))
