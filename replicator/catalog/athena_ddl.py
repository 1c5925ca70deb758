"""The statements that make an entry in Athena, for those who keep their catalog by scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from replicator.catalog import presto_view
from replicator.catalog.columns import Column
from replicator.catalog.entries import Entry, Kind, Partition
from replicator.catalog.storage import storage

PARTITIONS = 100
"""So many to a statement: Athena takes 256 KiB of text."""

_FIELD = re.compile(r"(\w+):", re.ASCII)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def statements(entry: Entry, database: str) -> list[str]:
    """The statements, in their order, without a semicolon. A second run changes nothing that is there."""
    if entry.kind is Kind.view:
        return [f"CREATE OR REPLACE VIEW {presto_view.quote(database, entry.name)} AS\n{entry.sql}"]
    if entry.kind is Kind.delta:
        return [_delta(entry, database)]
    return [_hudi(entry, database), *_add_partitions(entry, database)]


def _delta(entry: Entry, database: str) -> str:
    """Athena allows nothing else for Delta: columns are in its log."""
    return (
        f"CREATE EXTERNAL TABLE IF NOT EXISTS {_quote(database, entry.name)}\n"
        f"LOCATION {_text(entry.location)}\n"
        "TBLPROPERTIES ('table_type' = 'DELTA')"
    )


def _hudi(entry: Entry, database: str) -> str:
    told = storage(entry)
    properties = {name: value for name, value in told.parameters.items() if name != "EXTERNAL"}  # the statement says it
    lines = [f"CREATE EXTERNAL TABLE IF NOT EXISTS {_quote(database, entry.name)} (\n{_columns(entry.columns)}\n)"]
    if entry.description:
        lines.append(f"COMMENT {_text(entry.description)}")
    if entry.partition_keys:
        lines.append(f"PARTITIONED BY (\n{_columns(entry.partition_keys)}\n)")
    return "\n".join(
        [
            *lines,
            f"ROW FORMAT SERDE {_text(told.serde)}",
            f"WITH SERDEPROPERTIES ({_properties(told.serde_parameters)})",
            f"STORED AS INPUTFORMAT {_text(told.input_format)}",
            f"OUTPUTFORMAT {_text(told.output_format)}",
            f"LOCATION {_text(entry.location)}",
            f"TBLPROPERTIES ({_properties(properties)})",
        ]
    )


def _add_partitions(entry: Entry, database: str) -> Iterable[str]:
    """Athena does not find Hudi's partitions by itself (``MSCK REPAIR TABLE`` is not for it)."""
    head = f"ALTER TABLE {_quote(database, entry.name)} ADD IF NOT EXISTS"
    for at in range(0, len(entry.partitions), PARTITIONS):
        told = (_partition(each, entry.partition_keys) for each in entry.partitions[at : at + PARTITIONS])
        yield "\n".join([head, *told])


def _partition(partition: Partition, keys: Iterable[Column]) -> str:
    values = (f"{_quote(key.name)} = {_value(value, key)}" for key, value in zip(keys, partition.values, strict=True))
    return f"PARTITION ({', '.join(values)}) LOCATION {_text(partition.location)}"


def _value(value: str, key: Column) -> str:
    is_number = key.hive.startswith(_NUMBERS) and _NUMBER.fullmatch(value)
    return value if is_number else _text(value)


def _columns(columns: Iterable[Column]) -> str:
    return ",\n".join(
        f"  {_quote(each.name)} {_type(each)}" + (f" COMMENT {_text(each.comment)}" if each.comment else "")
        for each in columns
    )


def _type(column: Column) -> str:
    """Hive's word for the type, its fields quoted as columns are: the statement is read by Hive's grammar, Glue's API
    takes any name.
    """
    return _FIELD.sub(r"`\1`:", column.hive)


def _properties(told: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in told.items())


def _quote(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
