"""Encodings: how records write the values of a column, which its stored type does not tell. A BIGINT may be a number,
or a time in milliseconds or nanoseconds; the bytes of a DECIMAL do not contain its scale.

Kept by stored name and type family as short forms (``type_parser.py``), for records that come without types
(debezium.md A3). A column that was written in several encodings cannot be read from those.
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
    """The encodings of the columns whose types the forms know."""
    found: dict[tuple[str, str], str] = {}
    for form in forms:
        for each in form.fields:
            if each.name not in form.raw and each.logical != GUESSED_DOUBLE:
                short = "string" if each.logical.name in TEXT_TYPES else str(each.logical)
                found = combine(found, {(stored_name(each.name), type_family(stored_type(each))): short})
    return found


def combine(known: Encodings, others: Encodings) -> dict[tuple[str, str], str]:
    """Both together; the order does not matter."""
    return {**known, **{place: _combine_forms(known.get(place, form), form) for place, form in others.items()}}


def unify_case(encodings: Encodings, stored: Iterable[str] = ()) -> dict[tuple[str, str], str]:
    """The same with names spelled as in the table, or as they occur first: a source may change the case of a name,
    which is still the same column (G4).
    """
    spelling = index_by_case([*stored, *(name for name, _ in encodings)])
    found: dict[tuple[str, str], str] = {}
    for (name, family), form in encodings.items():
        found = combine(found, {(resolve_name(names.decode(name), spelling), family): form})
    return found


def resolve_type(encoding: str | None, kind: str) -> LogicalType | None:
    """The logical type of a stored column of type ``kind`` with this encoding; None if it is ambiguous.

    ``encoding`` is None for a column without a recorded encoding: it is then derived from the type alone.
    """
    logical = parse(kind if encoding is None else encoding)
    if logical is None or (encoding is None and (logical.element or logical).name in _SILENT):
        return None
    if encoding is None and logical == LogicalType("double"):
        return GUESSED_DOUBLE
    return logical if normalize_type(spark_type(logical)) == kind else None


def parse(short_form: str) -> LogicalType | None:
    """The type of a short form; None for several encodings, and for a struct, which has no short form."""
    try:
        return parse_type(short_form)
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
