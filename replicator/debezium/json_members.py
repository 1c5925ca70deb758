"""The members of an object within a JSON text, told by ``Members.java`` where each is one value of its kind, as
``from_json`` reads it.

A parser of Spark's costs as much to begin as to read a row: a buffer of 8 KiB for each text, however short (decision
0099). What is told here it would read alike; of any other text nothing is told, and it is for the parser: with a
value of another kind, an exponent, more digits than its type surely holds, half of a pair of surrogates, white space
between its parts, a name twice, no object where the path leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator.jvm import expressions, java_udfs

_KINDS = {"STRING": "s", "BOOLEAN": "b", "SMALLINT": "2", "INT": "4", "BIGINT": "8", "FLOAT": "d", "DOUBLE": "d"}
_NAME, _LIST = "\x1f", "\x1e"
"""Between names, and between the path, the kinds and the members' names: what ``Members.java`` parts them by."""


def is_supported(path: Iterable[str], kinds: Mapping[str, str]) -> bool:
    """Whether there are members of these names and wire types that can be told."""
    spelled = all(name and name.isprintable() for name in (*path, *kinds))
    return bool(kinds) and spelled and all(kind in _KINDS for kind in kinds.values())


def extract(records: DataFrame, text: str, path: Iterable[str], kinds: Mapping[str, str]) -> Column:
    """ARRAY<BINARY> for records: what each member of the object in their column ``text`` is, in their order, NULL where
    it is null or missing; NULL where that cannot be told. A text is valid UTF-8; ``kinds`` are wire types by name.
    """
    letters = "".join(_KINDS[kind] for kind in kinds.values())
    spelled = _LIST.join((_NAME.join(path), letters, _NAME.join(kinds)))
    name, spark = "replicator.debezium.Members", records.sparkSession
    of = java_udfs.create(spark, name, "array<binary>", spelled, uses=java_udfs.JSON)
    return of(F.col(text).cast("binary"))


def to_struct(found: Column, kinds: Mapping[str, str]) -> Column:
    """What was :func:`extract` in the members' wire types."""
    each = {name: F.get(found, F.lit(at)).cast("string").cast(kind) for at, (name, kind) in enumerate(kinds.items())}
    return expressions.struct(each)
