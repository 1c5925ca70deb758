"""Values as SQL literals, drawn by dice: ordinary ones, the ends of each type, and what parsers trip over."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Literal

Dialect = Literal["mariadb", "postgres"]

WORDS = (
    *("", " ", "a", "A", "plain", "o'clock", 'quote"s', "back\\slash", "tab\tand\nline", "null", "0", "1.50"),
    *("äöü", "日本", "😀"),
)
DAYS = ("1583-01-01", "1899-12-31", "1970-01-01", "2000-02-29", "2024-03-31", "9999-12-31")
TIMES = ("00:00:00", "00:00:00.000001", "02:30:00.5", "12:34:56.789012", "23:59:59.999999")
INSTANTS = ("1970-01-01 00:00:01", "2001-09-09 01:46:40.5", "2024-03-31 01:30:00.000001", "2037-12-31 23:59:59.999999")
LONG = 2300
"""Characters from which on PostgreSQL keeps a value out of line (TOAST): about 2,000."""


def text(value: str, dialect: Dialect) -> str:
    """A string literal."""
    told = value.replace("'", "''")
    return f"'{told}'" if dialect == "postgres" else "'" + told.replace("\\", "\\\\") + "'"


def literal(kind: str, dice: random.Random, dialect: Dialect) -> str:
    """A value of a kind, never NULL."""
    return _OF[kind](dice, dialect)


def _whole(low: int, high: int) -> Callable[[random.Random, Dialect], str]:
    def drawn(dice: random.Random, dialect: Dialect) -> str:
        return str(dice.choice((low, high, 0, -1, dice.randint(low, high), dice.randint(-99, 99))))

    return drawn


def _decimal(digits: int, scale: int) -> Callable[[random.Random, Dialect], str]:
    def drawn(dice: random.Random, dialect: Dialect) -> str:
        most = 10**digits - 1
        units = dice.choice((0, 1, -1, most, -most, dice.randint(-most, most), 50 * 10 ** (scale - 2)))
        sign, whole = "-" if units < 0 else "", f"{abs(units):0{scale + 1}}"
        return f"{sign}{whole[:-scale]}.{whole[-scale:]}"

    return drawn


def _double(dice: random.Random, dialect: Dialect) -> str:
    return repr(dice.choice((0.0, 1.5, -0.1, 1e15, 1e-7, 123456.789, round(dice.uniform(-1e6, 1e6), 6))))


def _word(dice: random.Random, dialect: Dialect) -> str:
    return text(dice.choice(WORDS) + dice.choice(("", "", str(dice.randint(0, 999)))), dialect)


def _body(dice: random.Random, dialect: Dialect) -> str:
    """Two of three times a large one."""
    if dice.random() < 0.3:
        return _word(dice, dialect)
    start = text(f"{dice.choice(WORDS)}{dice.randint(0, 10**6)}", dialect)
    return f"{_joined(dialect, start, _long(dice))}"


def _joined(dialect: Dialect, *parts: str) -> str:
    return " || ".join(parts) if dialect == "postgres" else f"CONCAT({', '.join(parts)})"


def _long(dice: random.Random) -> str:
    return f"repeat('{dice.choice('xyzé')}', {LONG + dice.randint(0, 300)})"


def _bytes(dice: random.Random, dialect: Dialect) -> str:
    short = bytes(dice.randrange(256) for _ in range(dice.choice((0, 1, 3, 16)))).hex()
    if dice.random() < 0.4:
        unit = f"{short}00ff7f"
        repeated = f"repeat('{unit}', {2 * LONG // len(unit)})"
        return f"decode({repeated}, 'hex')" if dialect == "postgres" else f"UNHEX({repeated})"
    return f"'\\x{short}'" if dialect == "postgres" else f"x'{short}'"


def _json(dice: random.Random, dialect: Dialect) -> str:
    body = "x" * LONG if dice.random() < 0.4 else dice.choice(WORDS)
    value = {"n": dice.randint(-9, 9), "s": body, "l": [1.5, None, True], "big": 12345678901234567890}
    return text(json.dumps(value, ensure_ascii=dice.random() < 0.5), dialect)


def _texts(dice: random.Random, dialect: Dialect) -> str:
    if dice.random() < 0.3:
        return f"ARRAY[{_long(dice)}, 'b']"
    return "ARRAY[" + ", ".join(_word(dice, dialect) for _ in range(dice.randint(0, 3))) + "]::text[]"


def _numbers(dice: random.Random, dialect: Dialect) -> str:
    if dice.random() < 0.3:
        return f"array_fill({dice.randint(-9, 9)}, ARRAY[{LONG // 4 + 100}])"
    return "ARRAY[" + ", ".join(str(dice.randint(-(2**31), 2**31 - 1)) for _ in range(dice.randint(0, 3))) + "]::int[]"


def _uuid(dice: random.Random, dialect: Dialect) -> str:
    digits = f"{dice.getrandbits(128):032x}"
    return f"'{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}'"


_OF: dict[str, Callable[[random.Random, Dialect], str]] = {
    "small": lambda dice, _: str(dice.randint(0, 3)),
    "int": _whole(-(2**31), 2**31 - 1),
    "bigint": _whole(-(2**63), 2**63 - 1),
    "decimal(10,2)": _decimal(10, 2),
    "decimal(14,4)": _decimal(14, 4),
    "varchar(40)": _word,
    "varchar(200)": _word,
    "flag": lambda dice, _: dice.choice(("TRUE", "FALSE")),
    "date": lambda dice, _: f"'{dice.choice(DAYS)}'",
    "moment": lambda dice, _: f"'{dice.choice(DAYS)} {dice.choice(TIMES)}'",
    "instant": lambda dice, dialect: f"'{dice.choice(INSTANTS)}{'+00' if dialect == 'postgres' else ''}'",
    "double": _double,
    "body": _body,
    "bytes": _bytes,
    "json": _json,
    "texts": _texts,
    "numbers": _numbers,
    "uuid": _uuid,
    "choice": lambda dice, _: f"'{dice.choice(('low', 'mid', 'very high'))}'",
}
