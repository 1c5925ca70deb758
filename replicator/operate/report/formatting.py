"""Figures as people read them: one way to write each kind. Halves are rounded up, as on paper."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

NOTHING = "\N{EN DASH}"
"""Where there is no figure."""


def number(value: Decimal | float | None, decimals: int = 0) -> str:
    """With thousands set apart: ``1,265,294.94``."""
    return NOTHING if value is None else f"{rounded(Decimal(str(value)), decimals):,}"


def counted(count: int | None, noun: str) -> str:
    """A number of things: ``1 record``, ``2 records``."""
    return NOTHING if count is None else f"{number(count)}\N{NO-BREAK SPACE}{noun}{'' if count == 1 else 's'}"


def money(value: Decimal | None) -> str:
    """Two decimals."""
    return number(value, 2)


def percent(share: Decimal | None) -> str:
    """A share from 0 to 1: ``63.1 %``, with a space that does not break."""
    return NOTHING if share is None else f"{rounded(share * 100, 1):,}\N{NO-BREAK SPACE}%"


def rounded(value: Decimal, decimals: int) -> Decimal:
    """Half up; without a decimal for 0."""
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def moment(value: datetime | None) -> str:
    """A time UTC, to the second: ``2026-11-22 14:05:09 UTC``."""
    return NOTHING if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def span(value: timedelta | float | None) -> str:
    """A time in its two largest units, to the second: ``2 h 5 min``; a float is seconds."""
    if value is None:
        return NOTHING
    left = round(value.total_seconds() if isinstance(value, timedelta) else value)
    parts = []
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}\N{NO-BREAK SPACE}{unit}")
    return " ".join(parts[:2]) or "0\N{NO-BREAK SPACE}s"
