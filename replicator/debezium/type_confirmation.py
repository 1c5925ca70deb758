"""Choice among a column's candidate types, given its definition at the source and its values (types.md Y14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from replicator.debezium.type_guesses import LONG_NUMBER, UNITS_PER_SECOND, ColumnProfile, Guess, guess_type

_WHOLE = frozenset({"bigint"})
_NUMBERS = frozenset({"bigint", "double", LONG_NUMBER})
_TEXTS = frozenset({"string"})
_KINDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("smallint", "int", "bigint", "year", "date", "time", "micro_time", "nano_time"), _WHOLE),
    **dict.fromkeys(("timestamp", "micro_timestamp", "nano_timestamp", "micro_duration", "nano_duration"), _WHOLE),
    **dict.fromkeys(("float", "double", "decimal_number"), _NUMBERS),
    "boolean": frozenset({"boolean", "bigint"}),
    **dict.fromkeys(("structured_date", "structured_time", "structured_timestamp"), frozenset({"object"})),
    **dict.fromkeys(
        ("structured_zoned_timestamp", "variable_decimal", "point", "geometry", "map"), frozenset({"object"})
    ),
}
"""JSON kinds of the values of a type; values of all other types are texts."""

_TIMES = tuple(name for name in UNITS_PER_SECOND if name != "date")
"""Types whose numbers differ by a factor of a thousand; the likeliest gives recent times for most values."""

_DAY_MILLIS, _LONGEST_MICROS = 86_400_000, 839 * 3_600_000_000
"""The largest time of day in milliseconds, and the largest TIME of MySQL in microseconds."""


_CHECKS: Mapping[str, Callable[[ColumnProfile], bool]] = {
    "time": lambda values: values.largest <= _DAY_MILLIS,
    "micro_time": lambda values: values.largest <= _LONGEST_MICROS,
    "decimal": lambda values: not values.kinds or "numeral" not in values.shapes,
    "decimal_string": lambda values: "numeral" in values.shapes,
    "variable_decimal_string": lambda values: "numeral" in values.shapes,
    "bytes": lambda values: "base64" in values.shapes and not (values.filled and "hex" in values.shapes),
    "bytes_hex": lambda values: "hex" in values.shapes,
    "bytes_base64url": lambda values: "base64url" in values.shapes,
}
"""Further checks on the values, for types that JSON writes alike."""


def confirm_type(values: ColumnProfile, forms: Sequence[str], definition: str) -> Guess:
    """The first of the candidate ``forms`` that all values fit; if none does, a guess by the values alone. The remark
    has the definition.
    """
    found = next((form for form in forms if _fits(form, values, forms)), None)
    if found is not None:
        return Guess(found, f"{definition} at the source")
    alone = guess_type(values)
    remark = f"{definition} at the source{', which these values do not match' if forms else ''}"
    return Guess(alone.type, f"{remark}; {alone.remark}" if alone.remark else remark)


def _fits(form: str, values: ColumnProfile, forms: Sequence[str]) -> bool:
    if form.startswith("array<"):
        elements = [each[6:-1] for each in forms]
        return values.kinds <= {"list"} and (values.items is None or _fits(form[6:-1], values.items, elements))
    name = re.split(r"[(]| unsigned", form, maxsplit=1)[0]
    if name in _TIMES and any(values.likely[each] > values.likely[name] for each in forms):
        return False
    return values.kinds <= _KINDS.get(name, _TEXTS) and (name not in _CHECKS or _CHECKS[name](values))
