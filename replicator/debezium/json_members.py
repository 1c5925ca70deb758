"""Extraction of an object's members from JSON by ``Members.java``, a fast path for ``from_json``.

Spark's parser costs as much to start as to read a row: a buffer of 8 KiB for each text, however short (decision 0099).
What is extracted here is what ``from_json`` would read. Any other text yields nothing and is left to the parser: one
with a value of another kind, an exponent, more digits than its type surely holds, an escaped surrogate, white space
between its parts, a repeated name, or no object at the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.jvm import expressions, java_udfs

_KINDS = {"STRING": "s", "BOOLEAN": "b", "SMALLINT": "2", "INT": "4", "BIGINT": "8", "FLOAT": "d", "DOUBLE": "d"}
_NAME, _LIST = "\x1f", "\x1e"
"""Separators for ``Members.java``: of names, and of the path, the kinds and the members' names."""


def is_supported(path: Iterable[str], kinds: Mapping[str, str]) -> bool:
    """Whether members of these names and wire types can be extracted; FALSE without any."""
    is_printable = all(name and name.isprintable() for name in (*path, *kinds))
    return bool(kinds) and is_printable and all(kind in _KINDS for kind in kinds.values())


def extract(records: DataFrame, text: str, path: Iterable[str], kinds: Mapping[str, str]) -> Column:
    """ARRAY<BINARY>: the members of the object in the records' column ``text``, in the order of ``kinds``, each NULL if
    it is null or missing; NULL for a text that is left to the parser. The text must be valid UTF-8; ``kinds`` are wire
    types by name.
    """
    letters = "".join(_KINDS[kind] for kind in kinds.values())
    spelled = _LIST.join((_NAME.join(path), letters, _NAME.join(kinds)))
    name, spark = "replicator.debezium.Members", records.sparkSession
    of = java_udfs.create(spark, name, "array<binary>", spelled, uses=java_udfs.JSON)
    return of(F.col(text).cast("binary"))


def to_struct(found: Column, kinds: Mapping[str, str]) -> Column:
    """The result of :func:`extract` as a struct of the members in their wire types."""
    each = {name: F.get(found, F.lit(at)).cast("string").cast(kind) for at, (name, kind) in enumerate(kinds.items())}
    return expressions.struct(each)
