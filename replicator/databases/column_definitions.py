"""Candidate types for declaring a column, by its definition in the database (types.md section 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from replicator.debezium.handling_modes import HandlingModes
from replicator.debezium.type_parser import name_in_mode, parse_type
from replicator.errors import ConfigError

_MILLIS = ("timestamp", "micro_timestamp", "nano_timestamp", "iso_timestamp", "structured_timestamp")
_MICROS = ("micro_timestamp", "timestamp", "nano_timestamp", "iso_timestamp", "structured_timestamp")
_ZONED = ("zoned_timestamp", "structured_zoned_timestamp")
_TIMES = ("micro_time", "nano_time", "iso_time", "structured_time")
_BYTES = ("bytes", "bytes_hex", "bytes_base64url")

_Forms = Mapping[str, Sequence[str]]

_EVERYWHERE: _Forms = {
    r"(?:numeric|decimal)\((\d+),(-?\d+)\).*": (
        r"decimal(\1,\2)", r"decimal_string(\1,\2)", r"decimal_number(\1,\2)", "double",
    ),
    r"date": ("date", "iso_date", "structured_date"),
    r"bytea|.*blob|(?:var)?binary(?:\(\d+\))?": _BYTES,
}  # fmt: skip
_POSTGRESQL: _Forms = {
    r"numeric": ("variable_decimal", "variable_decimal_string", "double"),
    r"money": ("decimal(19,2)", "decimal_string(19,2)", "double"),
    r"timestamp\([0-3]\) without time zone": _MILLIS,
    r"timestamp(?:\(\d\))? without time zone": _MICROS,
    r"timestamp(?:\(\d\))? with time zone": _ZONED,
    r"time\([0-3]\) without time zone": ("time", *_TIMES),
    r"time(?:\(\d\))? without time zone": (*_TIMES, "time"),
    r"time(?:\(\d\))? with time zone": ("zoned_time",),
    r"interval.*": ("micro_duration", "interval", "nano_duration"),
    r"(?:.+\.)?hstore": ("json", "map"),  # types of extensions are named with their schema
    r"(?:.+\.)?ltree": ("ltree",),
    r"(?:.+\.)?citext": ("string",),
    r"oid": ("bigint",),
    r"name|\"char\"|.*range|macaddr8": ("string",),
}
_BINLOG: _Forms = {
    r"datetime(?:\([0-3]\))?": _MILLIS,
    r"datetime\(\d\)": _MICROS,
    r"timestamp(?:\(\d\))?": _ZONED,
    r"time(?:\(\d\))?": (*_TIMES, "time"),
    r"bigint(?:\(\d+\))? unsigned.*": ("bigint unsigned", "decimal(20,0)", "decimal_string(20,0)"),
    r"enum\(.*": ("enum",),
    r"set\(.*": ("enum_set",),
    r"inet[46]": ("string",),
}
_OF_KIND: Mapping[str, _Forms] = {
    "postgresql": _POSTGRESQL,
    "mariadb": {r"tinyint\(1\)": ("smallint", "boolean"), **_BINLOG},
    "mysql": {r"tinyint\(1\)": ("boolean", "smallint"), **_BINLOG},
}


def candidate_types(kind: str, definition: str) -> tuple[str, ...]:
    """Declared types in short form: first what Debezium sends by default for such a column of that kind of database,
    then what it sends under other settings of the connector. Empty if the definition is unknown.
    """
    written = definition.lower()
    if written.endswith("[]"):
        return tuple(f"array<{each}>" for each in candidate_types(kind, written.removesuffix("[]")))
    for pattern, forms in {**_OF_KIND[kind], **_EVERYWHERE}.items():
        found = re.fullmatch(pattern, written, re.DOTALL)
        if found:
            return tuple(found.expand(form) for form in forms)
    try:
        return (str(parse_type(written)),)
    except ConfigError:
        return ()


def narrow_to_mode(forms: Sequence[str], modes: HandlingModes) -> Sequence[str]:
    """Of candidate types of a date or time the one that a connector with these modes sends; other candidates as they
    are. Old or far dates do not show their unit.
    """
    if forms and forms[0].startswith("array<"):
        return [f"array<{each}>" for each in narrow_to_mode([form[6:-1] for form in forms], modes)]
    if not forms or forms[0] not in ("date", "time", "micro_time", "timestamp", "micro_timestamp"):
        return forms
    sent = name_in_mode(forms[0], modes)
    return [sent] if sent in forms else forms
