"""The synthetic table as a stream of updates: every key is changed equally often, in an order that a seed shuffles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.cdc_ch.records import Event, Log
from benchmarks.cdc_ch.tables import WIDE, Kept

_BEGINNING = 1_767_225_600_000_000
_TOGETHER = 10  # changes in a transaction
_CITIES = ("Aachen", "Bergen", "Coimbra", "Dijon", "Esbjerg", "Firenze", "Gdansk", "Heraklion")
_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def row(number: int, version: int) -> list[Any]:
    """The row of a key as its n-th change leaves it."""
    mixed = (number * 0x9E3779B97F4A7C15 + version * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    note = "".join(_LETTERS[(mixed >> shift) % 26] for shift in range(40))
    time = _BEGINNING + mixed % 31_536_000_000_000
    return [
        number,
        mixed % 97,
        mixed % 100_003,
        mixed % 10_000_019,
        time,
        f"name {mixed:020}",
        _CITIES[mixed % 8],
        note,
    ]


class Stream:
    """So many changes, of which each key has ``per_key``; all keys were there before."""

    def __init__(self, events: int, per_key: int, seed: int, log: Log) -> None:
        self._count = max(1, events // per_key)
        order = np.repeat(np.arange(self._count), per_key)
        self._order = np.random.default_rng(seed).permutation(order)
        self._versions = np.zeros(self._count, dtype=np.int64)
        self._log = log
        self.now = _BEGINNING

    def rows(self) -> Iterator[tuple[Kept, Iterator[Sequence[Any]]]]:
        """What the table holds now."""
        yield WIDE, (row(number, int(self._versions[number])) for number in range(self._count))

    def transactions(self) -> Iterator[list[Event]]:
        """Their events."""
        for start in range(0, len(self._order), _TOGETHER):
            self.now += 450
            self._log.now = self.now
            for number in self._order[start : start + _TOGETHER].tolist():
                before = row(number, int(self._versions[number]))
                self._versions[number] += 1
                self._log.tell(WIDE, "u", row(number, int(self._versions[number])), before)
            yield self._log.commit()
