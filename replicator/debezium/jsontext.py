"""JSON parser and writer that preserve the text of numbers (types.md Y1)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Number:
    """A number in the record's own spelling: ``1.50`` stays ``1.50``."""

    text: str


def loads(text: str) -> Any:
    """Parse JSON, with numbers as :class:`Number`. Raises ValueError, or RecursionError if it is nested too deep."""
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def dumps(value: Any) -> str:
    """Write compact JSON; a lone surrogate stays an escape, since it has no UTF-8 encoding."""
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
    """Whether the text contains a surrogate, which has no UTF-8 encoding."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=has_lone_surrogate(text))
