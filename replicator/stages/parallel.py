"""Work that does not depend on each other, on a few threads: planning something small keeps one core busy, and a commit
waits for its store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Generic, TypeVar

from replicator.jvm import gateway

Given = TypeVar("Given")
Result = TypeVar("Result")


def run_each(work: Callable[[Given], Result], given: Iterable[Given], threads: int, name: str) -> list[Result]:
    """The results, in the order of what was given. What ``work`` raises ends it: what had begun is waited for, the rest
    is not begun.

    Jobs have the caller's Spark properties (pool, group). The settings of a session are those of all who use it: work
    that sets some needs one of its own.
    """
    several = list(given)
    if min(threads, len(several)) <= 1:
        return [work(one) for one in several]
    # made one by one: properties that two threads shared would name the query of the one in the jobs of the other
    tasks = [gateway.inherit_context(partial(work, one)) for one in several]
    with ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
        return list(pool.map(lambda task: task(), tasks))


class BackgroundTask(AbstractContextManager["BackgroundTask[Result]"], Generic[Result]):
    """One work at a time in a thread beside the caller's; what has begun is waited for at the end of the block."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._under_way: Future[Result] | None = None

    def begin(self, work: Callable[[], Result]) -> None:
        """Start it, as :func:`run_each` does. The work before it must have been taken."""
        self._under_way = self._pool.submit(gateway.inherit_context(work))

    def taken(self, *, wait: bool) -> Result | None:
        """The result, once; None if nothing was begun, or it goes on and is not to be waited for. What the work raised
        is raised.
        """
        under_way = self._under_way
        if under_way is None or not (wait or under_way.done()):
            return None
        self._under_way = None
        return under_way.result()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
