"""Descriptions of all reasons for dead letters and rules for ignored records (debezium.md R3, R4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Reason:
    """One sentence on what is wrong with a dead letter, and ``mend``, one on what to do about it."""

    meaning: str
    mend: str


_RETRY = "then `replicator dead-letters retry`"
_PRODUCER = "Mend whatever wrote it; a record that is no change can be dropped."
_AGAIN = "of what came before take a snapshot of the table again"
_WHOLE = "Set REPLICA IDENTITY FULL at the source, take a snapshot of the table again, then drop the letter; or"
_DECLARE = f"Declare a type that holds it, {_RETRY}."

REASONS: Mapping[str, Reason] = {
    "invalid_utf8": Reason("The bytes of the key or the value are not UTF-8 text.", _PRODUCER),
    "malformed_json": Reason("The value is not JSON.", _PRODUCER),
    "too_deep": Reason("The value is nested deeper than a thousand levels.", _PRODUCER),
    "unknown_shape": Reason(
        "The value is JSON, but none of the shapes that Debezium writes, or not that of its topic's other records.",
        f"{_PRODUCER} What records cannot show of their shape is declared (docs/shapes.md).",
    ),
    "unknown_op": Reason(
        "The operation is none of c, u, r, d, t, m.",
        f"Of rows with a column `op` declare `shape: flattened` for their table, {_RETRY}; of CloudEvents let the "
        "connector send its attributes. A record that is no change can be dropped.",
    ),
    "unknown_table": Reason(
        "The record does not say which table it belongs to, or its topic carries several.",
        f"Let Debezium add the table's name to flattened records or give each table a topic of its own; {_AGAIN} "
        "(`connect snapshot --remove-missing` finds deletes as well), then drop the letters.",
    ),
    "after_missing": Reason("An insert, update or snapshot row without the row.", _PRODUCER),
    "incompatible_schema": Reason(
        "The type of a column became one that the table does not follow (`schema_changes: freeze`).",
        f"Say `schema_changes: evolve` for it, or declare the column where its records have no types, {_RETRY}.",
    ),
    "key_missing": Reason(
        "The record has no key, so no row can be found for it.",
        f"Declare the table's `keys` if its columns hold them, or `append_only: true` if none do, {_RETRY}.",
    ),
    "key_undecodable": Reason(
        "A part of the key is NULL or does not fit the type of its column.",
        f"Declare the key's type as it is sent, {_RETRY}.",
    ),
    "append_only": Reason(
        "An update or a delete in a table that is declared append-only: nothing tells which row it is about.",
        "Drop it; `outbox: log` beside `append_only` ignores what comes from now on.",
    ),
    "place_missing": Reason(
        "The record does not say where its change happened, so that it cannot be told from what is sent again; or, if "
        "it is a flattened row, not whether it is an insert.",
        f"Let the connector add both to flattened records (`add.fields` with `op` and the place); {_AGAIN}, then "
        "drop the letters.",
    ),
    "key_swap_ambiguous": Reason(
        "Two rows swapped keys, and the delete does not hold the whole row that it took away.",
        "Set REPLICA IDENTITY FULL at the source, or take an incremental snapshot of the rows.",
    ),
    "position_missing": Reason(
        "The record has no place in the source's order, and other records of its topic do.",
        "Take an incremental snapshot of the row at the source, then drop the letter.",
    ),
    "position_malformed": Reason(
        "What the record says of its place in the source's order is no such place.",
        f"If the connector is right, report it; {_PRODUCER[0].lower()}{_PRODUCER[1:]}",
    ),
    "type_mismatch": Reason("A value is of another kind than its column.", _DECLARE),
    "invalid_base64": Reason("Bytes are not written in base64.", _DECLARE),
    "integer_overflow": Reason("A whole number is too large for its column.", _DECLARE),
    "decimal_overflow": Reason("A decimal has more digits before the point than its column.", _DECLARE),
    "decimal_scale": Reason("A decimal has more digits behind the point than its column.", _DECLARE),
    "temporal_range": Reason("A date or time is outside what its column can hold.", _DECLARE),
    "nul_character": Reason("A text holds U+0000, which PostgreSQL cannot store.", "Clean the text at the source."),
    "truncate_unordered": Reason(
        "A TRUNCATE in a topic of several partitions whose records have no position.",
        "Delete the rows at the source by DELETE, or give the topic one partition.",
    ),
    "below_purge_horizon": Reason(
        "The change is older than what was purged, and its row is not there.",
        "Drop it; or build the table again from bronze.",
    ),
    "filter_incomplete": Reason(
        "The table has a `where`, and the change does not hold the whole row.",
        f"{_WHOLE} leave the column out (`except_column_list`), and rebuild.",
    ),
    "delete_undecided": Reason(
        "The change did not send a column by which `apply_as_deletes` decides.",
        f"{_WHOLE} decide by a column that is always sent, and rebuild.",
    ),
    "mongodb_partial_update": Reason(
        "An update of a document that holds only what changed.",
        "Let the connector send whole documents (`capture.mode: change_streams_update_full`).",
    ),
}
"""Reasons by their name in the table of dead letters."""

RULES: Mapping[str, str] = {
    "tombstone": "a null that lets Kafka compact the topic; the delete stands before it",
    "message": "a logical message, no row",
    "heartbeat": "the connector's heartbeat",
    "transaction": "begin or end of a transaction",
    "schema_change": "DDL for the schema history",
    "notification": "a notification of the connector",
    "signal": "a signal to the connector",
    "key_swap": "it took away another row that had this key before",
    "truncate_of_no_table": "a TRUNCATE of a table that has had no row yet",
    "truncate_by_policy": "a TRUNCATE, and the table is configured with `truncate: ignore`",
    "outbox_update": "an update in an outbox that is a log (`outbox: log`): its events never change",
    "outbox_delete": "a delete or a TRUNCATE in an outbox that is a log (`outbox: log`): its events stay",
    "outbox_duplicate": "an event of the outbox router whose id has been there before",
}
"""Descriptions of ignored records, by the name of the rule."""


def describe(name: str) -> Reason:
    """The description of a reason; only its name for one that a newer release wrote."""
    return REASONS.get(name, Reason(name, "A newer release of replicator knows what it means."))
