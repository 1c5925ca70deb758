"""How bronze waits for what works behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

_SMALL_ROWS, _PATIENCE_SECONDS = 10_000, 30.0
"""A batch of fewer rows rests, for so long at most."""


class Pace:
    """When the stages behind bronze have no use for more of it. A batch costs about the same whether it holds ten
    records or some thousand: those that come while silver is at work are one batch then, which is there as soon.
    """

    def __init__(self) -> None:
        self._is_free, self._patience = Event(), _PATIENCE_SECONDS
        self._is_free.set()

    @contextmanager
    def held(self, patience: float = _PATIENCE_SECONDS) -> Iterator[None]:
        """Small batches rest for the time of the block, each for so many seconds at most."""
        self._patience = patience
        self._is_free.clear()
        try:
            yield
        finally:
            self._is_free.set()

    def rest(self, rows: int) -> None:
        """After a batch of so many rows: a large one does not rest, since more of them are waiting."""
        if rows < _SMALL_ROWS:
            self._is_free.wait(self._patience)
