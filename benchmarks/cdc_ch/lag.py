"""How far a target is behind: from rows with when they were sent and when they could be seen -> figures."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Seen(NamedTuple):
    """So many rows that were sent at one time and seen at another, both in ms."""

    sent: int
    shown: int
    rows: int


@dataclass(frozen=True)
class Second:
    """The rows that were sent in one second after the first: the median and the greatest lag, in seconds."""

    at: int
    rows: int
    median: float
    most: float


@dataclass(frozen=True)
class Lag:
    """Of all rows that count: percentiles in seconds, and by how many seconds per second the lag grew."""

    rows: int
    p50: float
    p95: float
    p99: float
    most: float
    growth: float


def by_second(seen: Sequence[Seen], since: int) -> list[Second]:
    """Second by second, those in which nothing was sent left out."""
    found: dict[int, Counter[int]] = {}
    for each in seen:
        found.setdefault((each.sent - since) // 1000, Counter())[each.shown - each.sent] += each.rows
    return [Second(at, lags.total(), percentile(lags, 0.5), max(lags) / 1000) for at, lags in sorted(found.items())]


def told(seen: Sequence[Seen], since: int, warm: int) -> Lag | None:
    """Without the rows of the first ``warm`` seconds; None where no others are."""
    counted = [each for each in seen if each.sent >= since + 1000 * warm]
    if not counted:
        return None
    lags: Counter[int] = Counter()
    for each in counted:
        lags[each.shown - each.sent] += each.rows
    p50, p95, p99 = (percentile(lags, share) for share in (0.5, 0.95, 0.99))
    return Lag(lags.total(), p50, p95, p99, max(lags) / 1000, growth(by_second(counted, since)))


def percentile(lags: Mapping[int, int], share: float) -> float:
    """The least lag, in seconds, that so large a share of the rows does not exceed."""
    wanted, count = share * sum(lags.values()), 0
    for lag in sorted(lags):
        count += lags[lag]
        if count >= wanted:
            break
    return lag / 1000


def growth(seconds: Sequence[Second]) -> float:
    """The slope of the median lag over time, by least squares; 0 of fewer than two seconds."""
    if len(seconds) < 2:
        return 0.0
    return statistics.linear_regression([each.at for each in seconds], [each.median for each in seconds]).slope
