"""Type widening: which Spark type holds the values of two (types.md section 8). Pure Python."""

from __future__ import annotations

import re

from replicator.debezium.logical_types import MAX_PRECISION

_DECIMAL_TYPE = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_INTEGER_DIGITS = {"SMALLINT": 5, "INT": 10, "BIGINT": 19}


def widen(stored: str, incoming: str) -> str | None:
    """The one of two Spark DDL types that holds every value of both, None if neither does (types.md section 8).

    SMALLINT -> INT -> BIGINT -> DECIMAL with enough digits before the point; FLOAT -> DOUBLE; DECIMAL to more digits
    with neither side of the point shrinking. Nothing becomes STRING, no date becomes a timestamp: see debezium.md G3.
    """
    left, right = _canonical(stored), _canonical(incoming)
    if _holds(left, right):
        return left
    return right if _holds(right, left) else None


def common_type(left: str, right: str) -> str | None:
    """The smallest Spark DDL type that holds every value of both exactly, None if there is none.

    If neither type holds the other, two exact numbers may still have a common type: DECIMAL(12,4) for DECIMAL(10,2)
    and DECIMAL(10,4). Within one :func:`family_of_type` the result does not depend on the order of the types.
    """
    wider = widen(left, right)
    one, other = _digits(_canonical(left)), _digits(_canonical(right))
    if wider is not None or one is None or other is None:
        return wider
    whole, scale = max(one[0], other[0]), max(one[1], other[1])
    return f"DECIMAL({whole + scale},{scale})" if whole + scale <= MAX_PRECISION else None


def family_of_type(ddl: str) -> str:
    """The family of a type: ``number`` (integers, DECIMAL), ``float``, else the type itself. Only types of one family
    can have a :func:`common_type`.
    """
    kind = _canonical(ddl)
    if _digits(kind) is not None:
        return "number"
    return "float" if kind in ("FLOAT", "DOUBLE") else kind


def _holds(wide: str, narrow: str) -> bool:
    if wide == narrow or (wide, narrow) == ("DOUBLE", "FLOAT"):
        return True
    if wide in _INTEGER_DIGITS:
        return narrow in _INTEGER_DIGITS and _INTEGER_DIGITS[wide] > _INTEGER_DIGITS[narrow]
    room, need = _digits(wide), _digits(narrow)
    return bool(room and need and room[0] >= need[0] and room[1] >= need[1])


def _digits(ddl: str) -> tuple[int, int] | None:
    """Digits before and after the point; None for a type that is not an exact number."""
    if ddl in _INTEGER_DIGITS:
        return _INTEGER_DIGITS[ddl], 0
    match = _DECIMAL_TYPE.fullmatch(ddl)
    return (int(match.group(1)) - int(match.group(2)), int(match.group(2))) if match else None


def _canonical(ddl: str) -> str:
    """The type in this module's spelling; field names of structs keep their case."""
    compact = re.sub(r"\s*([(),])\s*", r"\1", ddl.strip())
    if "<" in compact:
        return ddl.strip()
    upper = compact.upper()
    return {"INTEGER": "INT", "LONG": "BIGINT", "SHORT": "SMALLINT", "REAL": "FLOAT"}.get(upper, upper)
