"""How records write the values of a column, which its type at rest does not tell: a BIGINT may be a number, or a time
in milliseconds or in nanoseconds; the bytes of a DECIMAL do not have its scale.

Kept by stored name and family of types as short forms (``type_parser.py``), for records that come without any type
(debezium.md A3). What was written in several ways cannot be read in those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from replicator import names
from replicator.debezium.logical_types import GUESSED_DOUBLE, LogicalType, spark_type
from replicator.debezium.schema import Form
from replicator.debezium.type_parser import parse_type
from replicator.debezium.types import TEXT_TYPES
from replicator.errors import ConfigError
from replicator.transforms.columns.draft import stored_type
from replicator.transforms.columns.layout import index_by_case, normalize_type, resolve_name, stored_name, type_family

Encodings = Mapping[tuple[str, str], str]

_AMBIGUOUS = ""
_SIZES = (("smallint", "int", "bigint"), ("float", "double"))
_SILENT = ("bigint", "decimal")


def from_forms(forms: Iterable[Form]) -> dict[tuple[str, str], str]:
    """How forms write the columns that they know the types of."""
    found: dict[tuple[str, str], str] = {}
    for form in forms:
        for each in form.fields:
            if each.name not in form.raw and each.logical != GUESSED_DOUBLE:
                told = "string" if each.logical.name in TEXT_TYPES else str(each.logical)
                found = combine(found, {(stored_name(each.name), type_family(stored_type(each))): told})
    return found


def combine(known: Encodings, told: Encodings) -> dict[tuple[str, str], str]:
    """Both, in whichever order they come."""
    return {**known, **{place: _combine_forms(known.get(place, form), form) for place, form in told.items()}}


def unify_case(told: Encodings, stored: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """The same by columns as the table has them, or as they are told first: a source may change the case of a name, and
    means the same column (G4).
    """
    spelling = index_by_case([*stored, *(name for name, _ in told)])
    found: dict[tuple[str, str], str] = {}
    for (name, family), form in told.items():
        found = combine(found, {(resolve_name(names.decode(name), spelling), family): form})
    return found


def resolve_type(told: str | None, kind: str) -> LogicalType | None:
    """What a stored column of this type means where that is how it is written; None where nobody can tell.

    ``told`` is None for a column of which nothing is kept: then the type itself has to tell.
    """
    logical = parse(kind if told is None else told)
    if logical is None or (told is None and (logical.element or logical).name in _SILENT):
        return None
    if told is None and logical == LogicalType("double"):
        return GUESSED_DOUBLE
    return logical if normalize_type(spark_type(logical)) == kind else None


def parse(told: str) -> LogicalType | None:
    """The type of a short form; None for several, and for a struct, which has none."""
    try:
        return parse_type(told)
    except ConfigError:
        return None


def _combine_forms(one: str, other: str) -> str:
    if one == other:
        return one
    left, right = parse(one), parse(other)
    if left is None or right is None:
        return _AMBIGUOUS
    if left.precision and right.precision and replace(left, precision=right.precision) == right:
        return str(max(left, right, key=lambda each: each.precision or 0))
    for sizes in _SIZES:
        if {str(left), str(right)} <= set(sizes):
            return max(str(left), str(right), key=sizes.index)
    return _AMBIGUOUS
