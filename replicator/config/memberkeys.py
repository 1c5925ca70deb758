"""``unknown_member`` of a gold model's file: the row that facts point to until their dimension arrives."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from pydantic import AfterValidator

from replicator.config.checkkeys import check_plain_value
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MemberValues = dict[str, Annotated[Any, AfterValidator(check_plain_value)]]

_WHOLE = {
    **dict.fromkeys(("smallint", "int2"), 16),
    **dict.fromkeys(("integer", "int", "int4"), 32),
    **dict.fromkeys(("bigint", "int8"), 64),
}
"""Bits of the types of whole numbers."""
_NUMBER = _WHOLE.keys() | {"numeric", "decimal", "real", "float4", "double precision", "float8"}
_TIMES = ("date", "timestamp")


class DeclaredColumn(Protocol):
    """The attributes of a column that the check needs."""

    @property
    def type(self) -> str:
        """Its Postgres type."""

    @property
    def nullable(self) -> bool:
        """Whether it may be NULL."""


def refuse_invalid_member(
    member: Mapping[str, object], columns: Mapping[str, DeclaredColumn], key: Sequence[str]
) -> None:
    """Raise ValueError for an unknown column, for a value that does not fit its column's type, and for a required
    column without a value.
    """
    for name, value in member.items():
        if name not in columns:
            raise ValueError(f"unknown_member: {name!r} is not a column{suggest(name, columns)}")
        if not _fits(value, columns[name].type):
            raise ValueError(f"unknown_member: the value of {name} is not a valid {columns[name].type}")
    for name, column in columns.items():
        if name not in member and (name in key or not column.nullable):
            raise ValueError(f"unknown_member: {name} cannot be NULL: give it a value")


def _fits(value: object, kind: str) -> bool:
    word = re.split(r"[(\[]", kind, maxsplit=1)[0].strip()
    if isinstance(value, bool) or word in ("boolean", "bool"):
        return isinstance(value, bool) and word in ("boolean", "bool")
    if word in _WHOLE and isinstance(value, int):
        return -(1 << _WHOLE[word] - 1) <= value < 1 << _WHOLE[word] - 1
    if word in _NUMBER:
        return isinstance(value, int) or (isinstance(value, float) and word not in _WHOLE)
    return isinstance(value, date if word.startswith(_TIMES) else str)
