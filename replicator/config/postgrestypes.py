"""PostgreSQL types and names in a model's file: errors that the server would report later are reported here."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from replicator.spelling import suggest

_POSTGRES_TYPES = frozenset(
    {
        "smallint", "int2", "integer", "int", "int4", "bigint", "int8", "numeric", "decimal", "real", "float4",
        "double precision", "float8", "boolean", "bool", "text", "varchar", "character varying", "char", "character",
        "bytea", "date", "time", "time without time zone", "timetz", "time with time zone", "timestamp",
        "timestamp without time zone", "timestamptz", "timestamp with time zone", "interval", "uuid", "json", "jsonb",
        "inet", "cidr", "macaddr", "macaddr8",
    }
)  # fmt: skip
_POSTGRES_TYPE = re.compile(
    r"([a-z]+[248]?(?: [a-z]+)*)(?: ?\((\d+(?:, ?\d+)?)\))?((?<=\)) with(?:out)? time zone)?(?:\[\])?"
)
_LENGTH, _DIGITS, _OF_A_SECOND = ((1, 10_485_760),), ((1, 1000), (0, 1000)), ((0, 6),)
_NUMBERS = {
    **dict.fromkeys(("varchar", "character varying", "char", "character"), _LENGTH),
    **dict.fromkeys(("numeric", "decimal"), _DIGITS),
    **dict.fromkeys(("time", "timetz", "timestamp", "timestamptz"), _OF_A_SECOND),
}
"""The numbers in a type's parentheses: the minimum and maximum of each. Other types take none."""
_POSTGRES_NAME_BYTES = 63


def _check_type(text: str) -> str:
    match = _POSTGRES_TYPE.fullmatch(text)
    if match is None or match.group(1) + (match.group(3) or "") not in _POSTGRES_TYPES:
        word = re.split(r"[(\[]", text, maxsplit=1)[0]
        raise ValueError(f"{text!r} is not a known Postgres type{suggest(word, _POSTGRES_TYPES)}")
    word = match.group(1).partition(" with")[0]
    given, bounds = [int(each) for each in (match.group(2) or "").split(",") if each], _NUMBERS.get(word, ())
    if len(given) > len(bounds):
        takes = f"takes {len(bounds)} number in parentheses" if bounds else "must be written without numbers"
        raise ValueError(f"{text!r} is not a Postgres type that is supported: {word} {takes}")
    for number, (least, most) in zip(given, bounds, strict=False):
        if not least <= number <= most:
            raise ValueError(f"{text!r} is not a Postgres type: {number} is not between {least} and {most:,}")
    return text


def _check_name(name: str) -> str:
    if not 0 < len(name.encode()) <= _POSTGRES_NAME_BYTES or "\0" in name:
        raise ValueError(
            f"a name in Postgres must have 1 to {_POSTGRES_NAME_BYTES} bytes; longer ones are truncated silently"
        )
    return name


PostgresType = Annotated[str, AfterValidator(_check_type)]
PostgresName = Annotated[str, AfterValidator(_check_name)]
