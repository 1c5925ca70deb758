"""Records from the lines of landing objects.

``objects`` have the fields of ``landing_objects.LandingObject`` and ``content BINARY``; one row per object.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import landing_objects

# One character per byte, whatever the encoding: Spark's `split` would replace invalid UTF-8 by U+FFFD.
_BYTES = "ISO-8859-1"
_BLANKS = " \t\r\n"
_BOM = "^\u00ef\u00bb\u00bf"  # some editors begin a UTF-8 file with it: not part of its first line


def records(objects: DataFrame) -> DataFrame:
    """The columns of ``Source.read``, one row per non-blank line: ``key`` NULL, ``offset`` composed of the object's
    offset and the line number, ``timestamp`` the object's time, and ``headers`` naming the object and line.
    """
    lines = objects.select("*", F.posexplode(_lines()).alias("line", "text")).where(
        F.btrim("text", F.lit(_BLANKS)) != ""
    )
    place = F.shiftleft("offset", landing_objects.LINE_BITS).bitwiseOR(F.col("line").cast("bigint"))
    origin = {
        landing_objects.OBJECT: F.col("path"),
        landing_objects.LINE: F.col("line"),
        landing_objects.SIZE: F.col("size"),
    }
    headers = [
        F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
        for name, value in origin.items()
    ]
    return lines.select(
        "topic",
        "partition",
        place.alias("offset"),
        F.timestamp_millis("modified").alias("timestamp"),
        F.lit(None).cast("binary").alias("key"),
        F.encode("text", _BYTES).alias("value"),
        F.array(*headers).alias("headers"),
    )


def is_unfinished() -> Column:
    """Whether an object's last line is neither terminated nor JSON: it may still be being written."""
    last = F.encode(F.element_at(_lines(), -1), _BYTES).cast("string")
    return (last != "") & F.get_json_object(last, "$").isNull()


def is_growing() -> Column:
    """Whether an object's size differed between listing and reading; unknown, so false, for compressed objects."""
    return ~F.col("path").endswith(".gz") & (F.length("content") != F.col("size"))


def is_blank() -> Column:
    """Whether all lines of an object are blank."""
    return F.btrim(_text(), F.lit(_BLANKS)) == ""


def is_too_long() -> Column:
    """Whether an object has more lines than an offset can number."""
    return F.size(_lines()) > landing_objects.MAX_LINES


def known_objects(bronze: DataFrame) -> DataFrame:
    """The objects in bronze: ``topic, partition, offset, path, size, modified``, one row per object; and one row with a
    NULL path per topic and partition with records from elsewhere.
    """
    path = _header(landing_objects.OBJECT)
    records = bronze.select(
        "topic",
        "partition",
        F.when(path.isNotNull(), F.shiftright("offset", landing_objects.LINE_BITS)).alias("offset"),
        path.alias("path"),
        _header(landing_objects.SIZE).cast("bigint").alias("size"),
        F.unix_millis("timestamp").alias("modified"),
    )
    return records.groupBy("topic", "partition", "offset").agg(
        *[F.first(name).alias(name) for name in ("path", "size", "modified")]
    )


def _header(name: str) -> Column:
    """The value of a header; NULL if there is none of that name."""
    return F.get(F.filter("headers", lambda header: header["key"] == name)["value"], F.lit(0)).cast("string")


def _lines() -> Column:
    return F.split(_text(), "\n")


def _text() -> Column:
    return F.regexp_replace(F.decode("content", _BYTES), _BOM, "")
