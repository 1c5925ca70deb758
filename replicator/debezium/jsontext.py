"""JSON that is read and written again without touching a number (types.md Y1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Number:
    """A number as the record writes it: ``1.50`` stays ``1.50``."""

    text: str


def loads(text: str) -> Any:
    """The value, numbers as :class:`Number`. Raises ValueError, or RecursionError where it is nested too deep."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def dumps(value: Any) -> str:
    """The value as compact JSON; a lone surrogate stays an escape, since it has no UTF-8."""
    match value:
        case Number():
            return value.text
        case dict():
            return "{" + ",".join(f"{_string(name)}:{dumps(held)}" for name, held in value.items()) + "}"
        case list():
            return "[" + ",".join(dumps(held) for held in value) + "]"
        case str():
            return _string(value)
    return json.dumps(value)


def has_lone_surrogate(text: str) -> bool:
    """Whether half of a surrogate pair is in it, which has no UTF-8."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=has_lone_surrogate(text))
