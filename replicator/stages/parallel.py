"""Run independent work on a few threads: planning a small query keeps one core busy, and a commit waits for its
store.
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
    """Return the results of ``work``, in the order of ``given``. If ``work`` raises an error, work that has begun is
    waited for, and the rest is not started.

    Jobs have the caller's Spark properties (pool, group). Settings of a session are shared by all of its users: work
    that changes them needs a session of its own.
    """
    items = list(given)
    if min(threads, len(items)) <= 1:
        return [work(item) for item in items]
    # one context each: with shared properties, the jobs of one thread could be labeled with the query of another
    tasks = [gateway.inherit_context(partial(work, item)) for item in items]
    with ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
        return list(pool.map(lambda task: task(), tasks))


class BackgroundTask(AbstractContextManager["BackgroundTask[Result]"], Generic[Result]):
    """One task at a time in a background thread; it is waited for at the end of the block."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._under_way: Future[Result] | None = None

    def begin(self, work: Callable[[], Result]) -> None:
        """Start the work, with the caller's context as in :func:`run_each`. The result of the previous work must have
        been taken.
        """
        self._under_way = self._pool.submit(gateway.inherit_context(work))

    def take_result(self, *, wait: bool) -> Result | None:
        """Return the result, once; None if nothing was started, or if it is still running and ``wait`` is false. Raises
        what the work raised.
        """
        under_way = self._under_way
        if under_way is None or not (wait or under_way.done()):
            return None
        self._under_way = None
        return under_way.result()

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
