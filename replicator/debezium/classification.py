"""Sorting of records into ignored ones, dead letters and changes of rows, by their envelope (debezium.md R3, R4).

The expressions use columns that :mod:`replicator.debezium.envelope` has added before.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator.debezium.surrogates import has_lone_surrogate

ROW_OPERATIONS = ("c", "u", "r", "d", "t")

TOMBSTONE = "tombstone"
"""The rule by which a record without a value is ignored (A1)."""

_JSON_SPACE = " \t\r\n"


def ignore_rule() -> Column:
    """The rule by which a record is not a change of a row (R3); NULL if it may be one."""
    body = F.col("_body")
    no_row = body["op"].isNull()
    return (
        F.when(_is_null_value(), TOMBSTONE)
        .when(F.col("topic").startswith("__debezium-heartbeat"), "heartbeat")
        .when(_is_transaction_marker(body), "transaction")
        .when(no_row & body["ddl"].isNotNull() & body["source"].isNotNull(), "schema_change")
        .when(no_row & body["aggregate_type"].isNotNull() & body["additional_data"].isNotNull(), "notification")
        .when(body["op"] == "m", "message")
    )


def dead_letter_reason() -> Column:
    """Why a record can never be applied (R4), as far as its envelope shows; NULL if nothing is wrong so far."""
    scalar = F.get_json_object("value", "$").isNotNull()
    return (
        F.when(F.col("undecodable").isNotNull(), "invalid_utf8")
        .when(~F.col("_object"), F.when(scalar, "unknown_shape").otherwise("malformed_json"))
        .when(~is_one_object(F.col("value")), "malformed_json")
        .when(has_lone_surrogate(F.col("value")) | has_lone_surrogate(F.col("key")), "invalid_utf8")
        .when(~F.col("op").isin(*ROW_OPERATIONS) | F.col("op").isNull(), "unknown_op")
        .when(F.col("table").isNull(), "unknown_table")
    )


def is_one_object(text: Column) -> Column:
    """Whether text that begins like an object is a single object: ``from_json`` ignores what follows the first."""
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    return F.coalesce(alone, F.lit(False)) & (text.endswith("}") | _trimmed(text).endswith("}"))


def is_object(text: Column) -> Column:
    """Whether the text begins like an object; nearly all do without trimming, which is expensive."""
    return text.startswith("{") | _trimmed(text).startswith("{")


def _trimmed(text: Column) -> Column:
    """The text without JSON white space around it; ``trim`` removes spaces only."""
    return F.btrim(text, F.lit(_JSON_SPACE))


def _is_null_value() -> Column:
    """Whether the value is absent, empty, the JSON text null, or a wrapper around nothing (A1; measured Z1.4)."""
    nothing = F.col("value").isNull() | (~F.col("_object") & _trimmed(F.col("value")).isin("", "null"))
    empty_wrapper = F.col("value").contains('"payload"') & F.col("value").rlike(
        r'^\s*\{\s*"schema"\s*:.*"payload"\s*:\s*null\s*\}\s*$'
    )
    return F.col("undecodable").isNull() & (nothing | (empty_wrapper & F.col("_payloadless")))


def _is_transaction_marker(body: Column) -> Column:
    """Whether the record marks the begin or end of a transaction (H3); a table named ``transaction`` may have a column
    ``status``, too.
    """
    has_marker = body["status"].isin("BEGIN", "END") & F.col("value").contains('"data_collections"')
    return F.col("topic").endswith(".transaction") & has_marker
