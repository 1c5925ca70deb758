"""Work that does not depend on each other, on a few threads: planning something small keeps one core busy, and a commit
waits for its store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from replicator import gateway

Given = TypeVar("Given")
Result = TypeVar("Result")


def each(work: Callable[[Given], Result], given: Iterable[Given], threads: int, name: str) -> list[Result]:
    """The results, in the order of what was given. What ``work`` raises ends it: what had begun is waited for, the rest
    is not begun.

    Jobs have the caller's Spark properties (pool, group). The settings of a session are those of all who use it: work
    that sets some needs one of its own.
    """
    several = list(given)
    if min(threads, len(several)) <= 1:
        return [work(one) for one in several]
    # made one by one: properties that two threads shared would name the query of the one in the jobs of the other
    tasks = [gateway.as_here(partial(work, one)) for one in several]
    with ThreadPoolExecutor(threads, thread_name_prefix=name) as pool:
        return list(pool.map(lambda task: task(), tasks))
