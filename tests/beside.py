"""Something that happens beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(step: Callable[[], object], seconds: float) -> Iterator[None]:
    """``step`` in a thread, again after so many seconds, until it returns True or the block ends."""
    done = threading.Event()

    def work() -> None:
        while not done.wait(seconds) and step() is not True:
            pass

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
