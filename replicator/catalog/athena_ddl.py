"""The statements that create an entry in Athena, for users who maintain their catalog by scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from replicator.catalog import presto_view
from replicator.catalog.columns import Column
from replicator.catalog.entries import Entry, Kind, Partition
from replicator.catalog.storage import storage

PARTITIONS = 100
"""Partitions per statement: Athena accepts 256 KiB of text."""

_FIELD = re.compile(r"(\w+):", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d+)?")
"""A number that a partition's value may be: Hive's grammar has no sign there."""

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def statements(entry: Entry, database: str) -> list[str]:
    """Return the statements, in their order, without a semicolon. Running them again changes nothing."""
    if entry.kind is Kind.view:
        return [f"CREATE OR REPLACE VIEW {presto_view.quote(database, entry.name)} AS\n{entry.sql}"]
    if entry.kind is Kind.delta:
        return [_delta(entry, database)]
    return [_hudi(entry, database), *_add_partitions(entry, database)]


def _delta(entry: Entry, database: str) -> str:
    """Athena allows no other clauses for Delta: the columns are in its log."""
    return (
        f"CREATE EXTERNAL TABLE IF NOT EXISTS {_quote(database, entry.name)}\n"
        f"LOCATION {_text(entry.location)}\n"
        "TBLPROPERTIES ('table_type' = 'DELTA')"
    )


def _hudi(entry: Entry, database: str) -> str:
    hive = storage(entry)
    # the statement itself says EXTERNAL
    properties = {name: value for name, value in hive.parameters.items() if name != "EXTERNAL"}
    lines = [f"CREATE EXTERNAL TABLE IF NOT EXISTS {_quote(database, entry.name)} (\n{_columns(entry.columns)}\n)"]
    if entry.description:
        lines.append(f"COMMENT {_text(entry.description)}")
    if entry.partition_keys:
        lines.append(f"PARTITIONED BY (\n{_columns(entry.partition_keys)}\n)")
    return "\n".join(
        [
            *lines,
            f"ROW FORMAT SERDE {_text(hive.serde)}",
            f"WITH SERDEPROPERTIES ({_properties(hive.serde_parameters)})",
            f"STORED AS INPUTFORMAT {_text(hive.input_format)}",
            f"OUTPUTFORMAT {_text(hive.output_format)}",
            f"LOCATION {_text(entry.location)}",
            f"TBLPROPERTIES ({_properties(properties)})",
        ]
    )


def _add_partitions(entry: Entry, database: str) -> Iterable[str]:
    """Athena does not discover Hudi's partitions itself (``MSCK REPAIR TABLE`` does not support them)."""
    head = f"ALTER TABLE {_quote(database, entry.name)} ADD IF NOT EXISTS"
    for start in range(0, len(entry.partitions), PARTITIONS):
        clauses = (_partition(each, entry.partition_keys) for each in entry.partitions[start : start + PARTITIONS])
        yield "\n".join([head, *clauses])


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
    """Hive's name of the type, with its fields quoted as columns are: the statement is parsed by Hive's grammar, while
    Glue's API accepts any name.
    """
    return _FIELD.sub(r"`\1`:", column.hive)


def _properties(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())


def _quote(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
