"""An entry as Glue's ``TableInput``, merged into the existing one: only owned properties change,
everything else stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replicator.catalog import presto_view
from replicator.catalog.columns import Column
from replicator.catalog.entries import Entry, Kind, Partition
from replicator.catalog.storage import storage

LAKE, TABLE = "replicator.lake", "replicator.table"
"""Parameters that mark an owned entry: the lake it shows, and the table of that lake."""

_OWNED = ("EXTERNAL", "table_type", "spark.sql.sources.provider", "presto_view", "comment", LAKE, TABLE)
_OWNED_BEFORE = "spark.sql.sources.schema."
_OWNED_BY_SERDE = ("serialization.format", "path", "hoodie.query.as.ro.table")
_OF_VIEWS = ("ViewOriginalText", "ViewExpandedText")
_DUMMY_SERDE = {"Name": "-", "SerializationLibrary": "-"}
"""For a view: Athena refuses one without a SerDe, but does not evaluate it."""


@dataclass(frozen=True)
class Change:
    """One difference: ``what`` (``column total``, ``location``), with its value before and after; None where it is
    missing.
    """

    what: str
    before: str | None
    after: str | None


def table_input(entry: Entry, database: str, lake: str, present: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the desired ``TableInput``. *present* is the existing one (``Table`` of ``GetTable``): parameters,
    comments and everything else that is not owned are taken over from it.
    """
    present = present or {}
    place = present.get("StorageDescriptor", {})
    ours = _view(entry, database) if entry.kind is Kind.view else _table(entry)
    parameters = {LAKE: lake, TABLE: entry.title, **ours["Parameters"]}
    descriptor = {
        **place,
        **ours["StorageDescriptor"],
        "Columns": _columns(entry.columns, place.get("Columns", [])),
        "SerdeInfo": _serde(place.get("SerdeInfo", {}), ours["StorageDescriptor"]["SerdeInfo"]),
    }
    return {
        **{key: value for key, value in present.items() if key not in _OF_VIEWS},
        **ours,
        "Name": entry.name,
        **({"Description": entry.description} if entry.description else {}),
        "StorageDescriptor": descriptor,
        "PartitionKeys": _columns(entry.partition_keys, present.get("PartitionKeys", [])),
        "Parameters": {**_foreign_parameters(present.get("Parameters", {})), **parameters},
    }


def partition_input(partition: Partition, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a partition of the table that a ``TableInput`` describes: read as the table is, at its own location."""
    place = {**table["StorageDescriptor"], "Location": partition.location}
    return {"Values": list(partition.values), "StorageDescriptor": place}


def differences(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    """Yield what an update from one to the other changes, column by column."""
    yield from _column_changes("column", _stored_columns(present), _stored_columns(wanted))
    yield from _column_changes("partition column", present.get("PartitionKeys", []), wanted["PartitionKeys"])
    for what, key in (("description", "Description"), ("type", "TableType")):
        yield from _value_changes(what, present.get(key), wanted.get(key))
    before, after = (_query(each) for each in (present, wanted))
    yield from _value_changes("query", before, after)
    yield from _location_changes(present.get("StorageDescriptor", {}), wanted["StorageDescriptor"])
    old, new = present.get("Parameters", {}), wanted["Parameters"]
    for name in sorted({*old, *new}):
        yield from _value_changes(f"parameter {name}", old.get(name), new.get(name))


def is_same_location(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two partitions are read in the same way, from the same location."""
    return not any(_location_changes(one, other)) and _plain(one.get("Columns", [])) == _plain(other.get("Columns", []))


def _table(entry: Entry) -> dict[str, Any]:
    hive = storage(entry)
    return {
        "TableType": "EXTERNAL_TABLE",
        "Parameters": hive.parameters,
        "StorageDescriptor": {
            "Location": entry.location,
            "InputFormat": hive.input_format,
            "OutputFormat": hive.output_format,
            "SerdeInfo": {"SerializationLibrary": hive.serde, "Parameters": hive.serde_parameters},
        },
    }


def _view(entry: Entry, database: str) -> dict[str, Any]:
    return {
        "TableType": "VIRTUAL_VIEW",
        "Parameters": {"presto_view": "true", "comment": "Presto View"},
        "ViewOriginalText": presto_view.encode(entry.sql, database, entry.columns),
        "ViewExpandedText": presto_view.EXPANDED,
        "StorageDescriptor": {"Location": "", "SerdeInfo": _DUMMY_SERDE},
    }


def _foreign_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in parameters.items() if k not in _OWNED and not k.startswith(_OWNED_BEFORE)}


def _serde(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    foreign = {k: v for k, v in present.get("Parameters", {}).items() if k not in _OWNED_BY_SERDE}
    return {**present, **wanted, "Parameters": {**foreign, **wanted.get("Parameters", {})}}


def _columns(columns: Sequence[Column], present: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    known = {each["Name"]: each for each in present}
    merged = []
    for each in columns:
        comment = {} if each.comment is None else {"Comment": each.comment}
        merged.append({**known.get(each.name, {}), "Name": each.name, "Type": each.hive, **comment})
    return merged


def _column_changes(
    what: str, present: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
) -> Iterator[Change]:
    before, after = ({each["Name"]: each for each in columns} for columns in (present, wanted))
    for name in (*after, *(each for each in before if each not in after)):
        old, new = before.get(name), after.get(name)
        yield from _value_changes(f"{what} {name}", _value_of(old, "Type"), _value_of(new, "Type"))
        if old is not None and new is not None:
            yield from _value_changes(f"comment of {name}", _value_of(old, "Comment"), _value_of(new, "Comment"))
    if list(before) != list(after) and sorted(before) == sorted(after):
        yield Change(f"order of {what}s", ", ".join(before), ", ".join(after))


def _location_changes(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[Change]:
    for what, key in (("location", "Location"), ("input format", "InputFormat"), ("output format", "OutputFormat")):
        yield from _value_changes(what, present.get(key) or None, wanted.get(key) or None)
    old, new = present.get("SerdeInfo", {}), wanted.get("SerdeInfo", {})
    yield from _value_changes("serde", old.get("SerializationLibrary"), new.get("SerializationLibrary"))
    before, after = old.get("Parameters", {}), new.get("Parameters", {})
    for name in sorted({*before, *after}):
        yield from _value_changes(f"serde parameter {name}", before.get(name), after.get(name))


def _value_changes(what: str, before: str | None, after: str | None) -> Iterator[Change]:
    if before != after:
        yield Change(what, before, after)


def _value_of(column: Mapping[str, Any] | None, key: str) -> str | None:
    return None if column is None else column.get(key) or None


def _stored_columns(table: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = table.get("StorageDescriptor", {}).get("Columns", [])
    return found


def _query(table: Mapping[str, Any]) -> str | None:
    text = table.get("ViewOriginalText")
    return presto_view.decode(text) if text else None


def _plain(columns: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(each["Name"], each.get("Type", "")) for each in columns]
