"""How bronze waits for the later stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from threading import Condition

_MAX_REST_SECONDS = 30.0
"""The longest time that a batch waits."""

_BETWEEN_SECONDS = 0.5
"""About the time that Spark needs to record a batch after its wait, and to plan the next one."""

_IDLE_SECONDS = 1.0
"""Later stages that have not started with a batch after this time will not do so."""


class Pace:
    """Coordinates bronze's batches with the passes of the later stages. A batch costs about the same whether it has ten
    records or a few thousand, and a pass processes what is there when it begins. So each pass has one moment, its turn,
    at which the records since the last turn become a batch, which is there when the pass ends and the next one begins.

    The turn precedes that end by the duration of the longest batch of the previous turn.

    ``is_followed``: passes begin whenever there is a batch. Otherwise batches do not wait.
    """

    def __init__(self, *, is_followed: bool = False) -> None:
        self._changed, self._idle = Condition(), _IDLE_SECONDS if is_followed else 0.0
        self._is_held, self._due = False, inf
        self._last_turn = self._ended = self._noted_turn = -inf
        self._batch_seconds = self._ending_seconds = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Context of a pass. Its turn is at its end at the latest."""
        with self._changed:
            self._is_held = True
        try:
            yield
        finally:
            with self._changed:
                self._ended = time.monotonic()
                self._last_turn, self._due = min(self._due, self._ended), inf
                self._is_held = False
                self._changed.notify_all()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Context of the last step of a pass: sets the turn so that a batch is there at the end, if both take as long
        as last time.
        """
        begun = time.monotonic()
        with self._changed:
            self._due = max(begun, begun + self._ending_seconds - self._batch_seconds - _BETWEEN_SECONDS)
            self._changed.notify_all()
        try:
            yield
        finally:
            self._ending_seconds = time.monotonic() - begun

    def wait(self, rows: int, seconds: float, limit: int | None = None) -> None:
        """Wait after a batch of ``rows`` rows that took ``seconds``: until the next turn, or until no pass is running.
        A batch that is half full (of the ``limit``) does not wait: the limit is divided among partitions, and some have
        more records.
        """
        entered, is_half_full = time.monotonic(), limit is not None and rows >= limit // 2
        with self._changed:
            self._note(seconds, entered)
            while not is_half_full and (remaining := self._until(entered) - time.monotonic()) > 0:
                self._changed.wait(remaining)

    def _note(self, seconds: float, now: float) -> None:
        turn = self._due if self._is_held and self._due <= now else self._last_turn
        self._batch_seconds = max(seconds, self._batch_seconds if turn == self._noted_turn else 0.0)
        self._noted_turn = turn

    def _until(self, entered: float) -> float:
        """Return when a batch that waits since ``entered`` continues, as far as is known now."""
        if self._last_turn > entered:
            return self._last_turn
        latest = entered + _MAX_REST_SECONDS
        if not self._is_held:
            return min(latest, max(entered, self._ended) + self._idle)
        return min(latest, self._due if self._due > entered else inf)
