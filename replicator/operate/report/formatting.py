"""Format figures for people: one function for each kind. Halves are rounded up."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Context, Decimal

NOTHING = "\N{EN DASH}"
"""The text where there is no figure."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EVERY_DIGIT = Context(prec=100)
"""Sums of 38 digits are rounded, too: Python's default is 28."""


def number(value: Decimal | float | None, decimals: int = 0) -> str:
    """Return a number with thousands separators: ``1,265,294.94``."""
    return NOTHING if value is None else f"{rounded(Decimal(str(value)), decimals):,}"


def counted(count: int | None, noun: str) -> str:
    """Return a count with its noun: ``1 record``, ``2 records``."""
    return NOTHING if count is None else f"{number(count)}\N{NO-BREAK SPACE}{noun}{'' if count == 1 else 's'}"


def money(value: Decimal | None) -> str:
    """Return an amount with two decimals."""
    return number(value, 2)


def percent(share: Decimal | None) -> str:
    """Return a share from 0 to 1 as a percentage: ``63.1 %``, with a space that does not break."""
    return NOTHING if share is None else f"{rounded(share * 100, 1):,}\N{NO-BREAK SPACE}%"


def rounded(value: Decimal, decimals: int) -> Decimal:
    """Return the value rounded half up; as an integer for 0 decimals."""
    return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EVERY_DIGIT)


def moment(value: datetime | None) -> str:
    """Return a UTC time to the second: ``2026-11-22 14:05:09 UTC``."""
    return NOTHING if value is None else f"{value:%Y-%m-%d %H:%M:%S} UTC"


def from_ms(milliseconds: int | None) -> str:
    """Return the UTC time of epoch milliseconds, which sources and producers write: the number itself where it is no
    time of the years 1 to 9999.
    """
    try:
        return moment(None if milliseconds is None else _EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return f"{milliseconds} ms since 1970"


def span(value: timedelta | float | None) -> str:
    """Return a duration in its two largest units, to the second: ``2 h 5 min``; a float is in seconds."""
    if value is None:
        return NOTHING
    remaining = round(value.total_seconds() if isinstance(value, timedelta) else value)
    parts = []
    for unit, seconds in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        count, remaining = divmod(remaining, seconds)
        if count:
            parts.append(f"{count}\N{NO-BREAK SPACE}{unit}")
    return " ".join(parts[:2]) or "0\N{NO-BREAK SPACE}s"
