"""How bronze waits for what works behind it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from threading import Condition

_MAX_REST_SECONDS = 30.0
"""A batch rests for so long at most."""

_BETWEEN_SECONDS = 0.5
"""What Spark needs, about, to note a batch that has rested, and to plan the next one."""

_IDLE_SECONDS = 1.0
"""Those behind bronze that have not begun with a batch after so long will not do so."""


class Pace:
    """When those behind bronze have use for more of it. A batch costs about the same whether it holds ten records or
    some thousand, and a pass takes what is there when it begins: so each pass has one moment, its turn, at which what
    came since the last one becomes a batch, which is there when the pass ends and the next one begins.

    How long before the end that is, the batches of the turn before say: the longest of them.

    ``is_followed``: passes begin whenever a batch is there. Else batches wait for none.
    """

    def __init__(self, *, is_followed: bool = False) -> None:
        self._changed, self._idle = Condition(), _IDLE_SECONDS if is_followed else 0.0
        self._is_held, self._due = False, inf
        self._last_turn = self._ended = self._noted_turn = -inf
        self._batch_seconds = self._ending_seconds = 0.0

    @contextmanager
    def held(self) -> Iterator[None]:
        """A pass. Its turn comes with its end at the latest."""
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
        """The last work of a pass: the turn is such that a batch is there with the end, if both take as long as they
        last did.
        """
        begun = time.monotonic()
        with self._changed:
            self._due = max(begun, begun + self._ending_seconds - self._batch_seconds - _BETWEEN_SECONDS)
            self._changed.notify_all()
        try:
            yield
        finally:
            self._ending_seconds = time.monotonic() - begun

    def rest(self, rows: int, seconds: float, limit: int | None = None) -> None:
        """After a batch of so many rows, of which one may have ``limit``, that took so long: until the next turn, or
        until nobody is at work. One that is half full does not rest: the limit is shared out among partitions, and more
        records are waiting in some.
        """
        entered, is_half_full = time.monotonic(), limit is not None and rows >= limit // 2
        with self._changed:
            self._note(seconds, entered)
            while not is_half_full and (left := self._until(entered) - time.monotonic()) > 0:
                self._changed.wait(left)

    def _note(self, seconds: float, now: float) -> None:
        turn = self._due if self._is_held and self._due <= now else self._last_turn
        self._batch_seconds = max(seconds, self._batch_seconds if turn == self._noted_turn else 0.0)
        self._noted_turn = turn

    def _until(self, entered: float) -> float:
        """When what rests since then goes on, as far as can be told now."""
        if self._last_turn > entered:
            return self._last_turn
        latest = entered + _MAX_REST_SECONDS
        if not self._is_held:
            return min(latest, max(entered, self._ended) + self._idle)
        return min(latest, self._due if self._due > entered else inf)
