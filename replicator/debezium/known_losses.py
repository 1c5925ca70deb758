"""Known losses between a source and silver that follow from types and connector settings (types.md Y6).

None of them is an error, and none can be recovered later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replicator.debezium.logical_types import LogicalType
from replicator.debezium.type_parser import parse_type
from replicator.spec import SourceSpec

_TYPES: Mapping[str, str] = {
    "nano_time": "truncated to microseconds",
    "nano_timestamp": "truncated to microseconds",
    "micro_duration": "the connector defines the length of its months and years",
    "nano_duration": "the connector defines the length of its months and years",
}
_SCALE = (
    "records without schemas do not show a change of its scale, with which the same bytes are other numbers: send "
    "schemas, or set decimal.handling.mode: string"
)
"""Of a decimal in bytes (debezium-measured.md Z1.1)."""
_SETTINGS: Mapping[tuple[str, str], str] = {
    ("decimal.handling.mode", "double"): "decimals keep about 15 digits",
    ("time.precision.mode", "connect"): (
        "times are truncated to milliseconds, and a TIME that is negative or exceeds a day is NULL"
    ),
    ("time.precision.mode", "nanoseconds"): "times before 1677 and after 2262 are NULL",
    ("time.precision.mode", "isostring"): (
        "24:00:00 becomes 00:00:00, and a TIME that is negative or exceeds a day is NULL"
    ),
    ("time.precision.mode", "structured"): "24:00:00 becomes NULL",
    ("interval.handling.mode", "numeric"): "the connector defines the length of an interval's months and years",
    ("value.converter.replace.null.with.default", "true"): "NULL becomes the column's default",
    ("transforms.unwrap.replace.null.with.default", "true"): "NULL becomes the column's default",
}
"""As real connectors were seen to do (debezium-measured.md 7, 9, 10)."""


def describe(source: SourceSpec) -> Iterator[str]:
    """One line per lossy setting of the source's connector and per lossy type of a declared column."""
    config = {**({} if source.connector is None else source.connector.config), **source.modes}
    for (key, value), loss in _SETTINGS.items():
        if config.get(key) == value:
            yield f"{source.name}: {key} is {value}: {loss}"
    has_schemas = source.connector is not None and source.connector.schemas
    for table in source.tables:
        for column in table.columns:
            for loss in _type_losses(parse_type(column.type, unsigned=column.unsigned), has_schemas=has_schemas):
                yield f"{source.name}/{table.table}.{column.name} is {column.type}: {loss}"


def _type_losses(logical: LogicalType, *, has_schemas: bool) -> Iterator[str]:
    if logical.element is not None:
        yield from _type_losses(logical.element, has_schemas=has_schemas)
    elif logical.name in _TYPES:
        yield _TYPES[logical.name]
    elif logical.name == "decimal" and logical.encoding == "base64" and not has_schemas:
        yield _SCALE
