"""Descriptions of all reasons for dead letters and rules for ignored records (debezium.md R3, R4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """One sentence on what is wrong with a dead letter, and ``fix``, one on what to do about it."""

    meaning: str
    fix: str


_RETRY = "then `replicator dead-letters retry`"
_PRODUCER = "Fix its producer; a record that is not a change can be dropped."
_AGAIN = "for earlier changes take a new snapshot of the table"
_WHOLE = "Set REPLICA IDENTITY FULL at the source, take a new snapshot of the table, then drop the letter; or"
_DECLARE = f"Declare a type that holds it, {_RETRY}."

REASONS: Mapping[str, Reason] = {
    "invalid_utf8": Reason("The bytes of the key or the value are not UTF-8 text.", _PRODUCER),
    "malformed_json": Reason("The value is not JSON.", _PRODUCER),
    "too_deep": Reason("The value is nested more than a thousand levels deep.", _PRODUCER),
    "unknown_shape": Reason(
        "The value is JSON, but has none of the shapes that Debezium writes, or not that of its topic's other records.",
        f"{_PRODUCER} A shape that records do not show must be declared (docs/shapes.md).",
    ),
    "unknown_op": Reason(
        "The operation is not one of c, u, r, d, t, m.",
        f"For rows with a column `op` declare `shape: flattened` for their table, {_RETRY}; for CloudEvents make the "
        "connector send its attributes. A record that is not a change can be dropped.",
    ),
    "unknown_table": Reason(
        "The record does not say which table it belongs to, or its topic carries several.",
        f"Make Debezium add the table's name to flattened records or give each table its own topic; {_AGAIN} "
        "(`connect snapshot --remove-missing` also finds deletes), then drop the letters.",
    ),
    "after_missing": Reason("An insert, update or snapshot record without the row.", _PRODUCER),
    "incompatible_schema": Reason(
        "The type of a column changed to one that the table does not follow (`schema_changes: freeze`).",
        f"Set `schema_changes: evolve` for the table, or declare the column if its records have no types, {_RETRY}.",
    ),
    "key_missing": Reason(
        "The record has no key, so its row cannot be found.",
        f"Declare the table's `keys` if its columns hold them, or `append_only: true` if none do, {_RETRY}.",
    ),
    "key_undecodable": Reason(
        "A column of the key is NULL or does not fit its type.",
        f"Declare the key's type as sent, {_RETRY}.",
    ),
    "append_only": Reason(
        "An update or a delete in a table that is declared append-only: its row cannot be determined.",
        "Drop it; `outbox: log` together with `append_only` ignores future ones.",
    ),
    "place_missing": Reason(
        "The record has no source position, so that a repeated delivery cannot be recognized; or, if it is a "
        "flattened row, it does not say whether it is an insert.",
        f"Make the connector add both to flattened records (`add.fields` with `op` and the position); {_AGAIN}, then "
        "drop the letters.",
    ),
    "key_swap_ambiguous": Reason(
        "Two rows swapped keys, and the delete does not contain the whole deleted row.",
        "Set REPLICA IDENTITY FULL at the source, or take an incremental snapshot of the rows.",
    ),
    "position_missing": Reason(
        "The record has no position in the source's order, but other records of its topic do.",
        "Take an incremental snapshot of the row at the source, then drop the letter.",
    ),
    "position_malformed": Reason(
        "The record's position in the source's order is malformed.",
        f"If the connector is right, report it; {_PRODUCER[0].lower()}{_PRODUCER[1:]}",
    ),
    "type_mismatch": Reason("A value is of another type than its column.", _DECLARE),
    "invalid_base64": Reason("Bytes are not valid base64.", _DECLARE),
    "integer_overflow": Reason("An integer is too large for its column.", _DECLARE),
    "decimal_overflow": Reason("A decimal has more digits before the decimal point than its column allows.", _DECLARE),
    "decimal_scale": Reason("A decimal has more digits after the decimal point than its column allows.", _DECLARE),
    "temporal_range": Reason("A date or time is out of range for its column.", _DECLARE),
    "nul_character": Reason(
        "A string contains U+0000, which PostgreSQL cannot store.", "Clean the string at the source."
    ),
    "truncate_unordered": Reason(
        "A TRUNCATE in a topic with several partitions whose records have no position.",
        "Delete the rows at the source with DELETE, or give the topic one partition.",
    ),
    "below_purge_horizon": Reason(
        "The change is older than what was purged, and its row does not exist.",
        "Drop it, or rebuild the table from bronze.",
    ),
    "filter_incomplete": Reason(
        "The table has a `where`, and the change does not contain the whole row.",
        f"{_WHOLE} leave the column out (`except_column_list`), and rebuild.",
    ),
    "delete_undecided": Reason(
        "The change does not contain a column that `apply_as_deletes` reads.",
        f"{_WHOLE} use a column that is always sent, and rebuild.",
    ),
    "mongodb_partial_update": Reason(
        "A document update that contains only the changed fields.",
        "Make the connector send whole documents (`capture.mode: change_streams_update_full`).",
    ),
}
"""Reasons by their name in the table of dead letters."""

RULES: Mapping[str, str] = {
    "tombstone": "a null for Kafka's log compaction; the delete precedes it",
    "message": "a logical message, not a row",
    "heartbeat": "the connector's heartbeat",
    "transaction": "begin or end of a transaction",
    "schema_change": "DDL for the schema history",
    "notification": "a notification of the connector",
    "signal": "a signal to the connector",
    "key_swap": "it deleted another row that had this key before",
    "truncate_of_no_table": "a TRUNCATE of a table that has had no rows yet",
    "truncate_by_policy": "a TRUNCATE of a table configured with `truncate: ignore`",
    "outbox_update": "an update in an outbox declared as a log (`outbox: log`), whose events never change",
    "outbox_delete": "a delete or a TRUNCATE in an outbox declared as a log (`outbox: log`), whose events are kept",
    "outbox_duplicate": "an event of the outbox router whose id was received before",
}
"""Descriptions of ignored records, by the name of the rule."""


def describe(name: str) -> Reason:
    """The description of a reason; only its name for one that a newer release wrote."""
    return REASONS.get(name, Reason(name, "Written by a newer release of replicator, which can describe it."))
