"""What many runs say together: medians, paired ratios with how sure they are, growth."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_RESAMPLED = 5_000


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios, and its bootstrap interval of 95 %: ``low`` is above 1 where a difference is more
    than chance.
    """

    median: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low > 1 or self.high < 1


def paired(slower: Sequence[float], faster: Sequence[float], seed: int = 1) -> Ratio:
    """How many times longer the first takes, round by round: both ran beside each other in each."""
    ratios = [one / other for one, other in zip(slower, faster, strict=True)]
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLED))
    return Ratio(statistics.median(ratios), medians[round(0.025 * _RESAMPLED)], medians[round(0.975 * _RESAMPLED) - 1])


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """``b`` of ``log t = a + b log n``, by least squares; NaN for fewer than two sizes."""
    if len(set(sizes)) < 2:
        return math.nan
    return statistics.linear_regression([math.log(n) for n in sizes], [math.log(t) for t in seconds]).slope


def degradation(series: Sequence[float]) -> float:
    """How much longer the last tenth of batches took than the first."""
    part = max(1, len(series) // 10)
    return statistics.mean(series[-part:]) / statistics.mean(series[:part])
