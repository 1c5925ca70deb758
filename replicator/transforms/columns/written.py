"""How records write the values of a column, which its type at rest does not tell: a BIGINT may be a number, or a time
in milliseconds or in nanoseconds; the bytes of a DECIMAL do not have its scale.

Kept by stored name and family of types as short forms (``short_forms.py``), for records that come without any type
(debezium.md A3). What was written in several ways cannot be read in those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from replicator import names
from replicator.debezium.logical import GUESSED_DOUBLE, Logical, spark_type
from replicator.debezium.schema import Form
from replicator.debezium.short_forms import parse_logical
from replicator.debezium.types import TEXTS
from replicator.errors import ConfigError
from replicator.transforms.columns.draft import kind_of
from replicator.transforms.columns.layout import by_case, kin, normal, spelled, stored_name

Written = Mapping[tuple[str, str], str]

_SEVERAL = ""
_SIZES = (("smallint", "int", "bigint"), ("float", "double"))
_SILENT = ("bigint", "decimal")


def of(forms: Iterable[Form]) -> dict[tuple[str, str], str]:
    """How forms write the columns that they know the types of."""
    found: dict[tuple[str, str], str] = {}
    for form in forms:
        for each in form.fields:
            if each.name not in form.raw and each.logical != GUESSED_DOUBLE:
                told = "string" if each.logical.name in TEXTS else str(each.logical)
                found = together(found, {(stored_name(each.name), kin(kind_of(each))): told})
    return found


def together(known: Written, told: Written) -> dict[tuple[str, str], str]:
    """Both, in whichever order they come."""
    return {**known, **{place: _both(known.get(place, form), form) for place, form in told.items()}}


def in_one_case(told: Written, stored: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """The same by columns as the table has them, or as they are told first: a source may change the case of a name, and
    means the same column (G4).
    """
    spelling = by_case([*stored, *(name for name, _ in told)])
    found: dict[tuple[str, str], str] = {}
    for (name, family), form in told.items():
        found = together(found, {(spelled(names.decode(name), spelling), family): form})
    return found


def meant(told: str | None, kind: str) -> Logical | None:
    """What a stored column of this type means where that is how it is written; None where nobody can tell.

    ``told`` is None for a column of which nothing is kept: then the type itself has to tell.
    """
    logical = parsed(kind if told is None else told)
    if logical is None or (told is None and (logical.element or logical).name in _SILENT):
        return None
    if told is None and logical == Logical("double"):
        return GUESSED_DOUBLE
    return logical if normal(spark_type(logical)) == kind else None


def parsed(told: str) -> Logical | None:
    """The type of a short form; None for several, and for a struct, which has none."""
    try:
        return parse_logical(told)
    except ConfigError:
        return None


def _both(one: str, other: str) -> str:
    if one == other:
        return one
    left, right = parsed(one), parsed(other)
    if left is None or right is None:
        return _SEVERAL
    if left.precision and right.precision and replace(left, precision=right.precision) == right:
        return str(max(left, right, key=lambda each: each.precision or 0))
    for sizes in _SIZES:
        if {str(left), str(right)} <= set(sizes):
            return max(str(left), str(right), key=sizes.index)
    return _SEVERAL
