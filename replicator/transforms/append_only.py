"""Append-only tables, whose rows have no key: which change inserted each row, and which rows a later snapshot has read
again (debezium.md C1, D4).

The generated key of such a row (``spec.CHANGE``) is one string: ``c`` or ``r``, the epoch, the place at which the
change happened in the source, a part that distinguishes rows of one place, and the MD5 of the row. So a redelivered
change is the same row, and equal rows of two changes are two rows. All rows of a snapshot have one place: the time of
the table's scan distinguishes scans (D3), and the connector's time the rows of one scan; if an older Debezium does not
have that, their coordinates in Kafka do.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import position
from replicator.debezium.logical_types import spark_type
from replicator.jvm import expressions
from replicator.transforms.cells import Cells
from replicator.transforms.user_view import JSON_OPTIONS

STREAMED, READ = "c", "r"
_EPOCH, _DIGITS, _CONTENT = len(position.FIRST_EPOCH), 16, 32
_JSON = {**JSON_OPTIONS, "ignoreNullFields": "true"}

PLACE_LENGTH = _EPOCH + position.POSITION_DIGITS
"""Length of epoch and place in characters."""

SCAN_LENGTH = PLACE_LENGTH + _DIGITS
"""Length of epoch, place and scan time in characters."""


def build_key(row: Cells) -> Column:
    """The key of a decoded record that inserts a row: ``c`` or ``r``, with ``happened`` (``position.change_identity``).

    The row's hash covers the record's own columns that are not NULL, sorted by name: neither their order nor a column
    that was added later makes it another row.
    """
    columns = {
        field.name: _lossless(row.value(at), spark_type(field.logical)) for at, field in enumerate(row.form.fields)
    }
    values = expressions.struct(dict(sorted(columns.items()))) if columns else F.struct()
    epoch, place = F.substring("_seq", 1, _EPOCH), F.substring("happened", 1, position.POSITION_DIGITS)
    apart = F.substring("happened", position.POSITION_DIGITS + 1, position.POSITION_DIGITS)
    row_of_scan = F.when(apart != "", apart).otherwise(F.concat(_hex("partition"), _hex("offset")))
    scan = F.concat(_hex(F.coalesce("_source_ts_ms", F.lit(0))), row_of_scan)
    return F.concat(
        F.when(F.col("op") == READ, READ).otherwise(STREAMED),
        epoch,
        place,
        F.when(F.col("op") == READ, scan).otherwise(apart),
        F.md5(F.to_json(values, _JSON)),
    )


def reject_reason() -> Column:
    """Why a record cannot be a row of such a table, NULL if it can. A record without ``_seq`` gets another reason. A
    flattened row without its operation may be an update.
    """
    unknown = F.col("happened").isNull() & F.col("_seq").isNotNull()
    of_change, no_place = "append_only", "place_missing"
    return F.when(F.col("op") == "d", of_change).when(unknown, no_place).when(F.col("op") == "u", of_change)


def scan_of_key(key: Column) -> Column:
    """The scan of a snapshot row, from its key: greater is later."""
    return F.substring(key, 2, SCAN_LENGTH)


def latest_scans(keys: DataFrame) -> DataFrame:
    """``content STRING, scan STRING``: the latest scan per content of the snapshot rows among these ``key``."""
    read = keys.where(F.col("key").startswith(READ))
    return read.groupBy(_content("key").alias("content")).agg(F.max(scan_of_key(F.col("key"))).alias("scan"))


def filter_by_content(rows: DataFrame, key: str, contents: DataFrame) -> DataFrame:
    """The rows whose content is one of ``contents`` (column ``content``)."""
    return rows.join(contents, _content(names.quote_spark(key)) == contents["content"], how="left_semi")


def distinct_contents(rows: DataFrame, key: str) -> DataFrame:
    """The distinct ``content STRING`` of rows."""
    return rows.select(_content(names.quote_spark(key)).alias("content")).distinct()


def join_later_scans(rows: DataFrame, key: str, latest: DataFrame, *, how: str) -> DataFrame:
    """Rows that a later scan has read again (``left_semi``), or the others (``left_anti``). Read again are streamed
    rows below the place of the latest scan (:func:`latest_scans`) with the same content, and rows of an earlier scan.
    """
    own = F.col(names.quote_spark(key))
    below = F.substring(own, 2, PLACE_LENGTH) < F.substring(latest["scan"], 1, PLACE_LENGTH)
    earlier = F.when(own.startswith(READ), scan_of_key(own) < latest["scan"]).otherwise(below)
    return rows.join(latest, (_content(names.quote_spark(key)) == latest["content"]) & earlier, how=how)


def _lossless(value: Column, kind: str) -> Column:
    """The value in a form that JSON keeps completely: dates and timestamps in JSON have no era."""
    return value.cast("string") if kind.startswith(("date", "timestamp")) else value


def _content(column: str) -> Column:
    return F.substring(column, -_CONTENT, _CONTENT)


def _hex(number: str | Column) -> Column:
    return F.lpad(F.lower(F.hex(number)), _DIGITS, "0")
