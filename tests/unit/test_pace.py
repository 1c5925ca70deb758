"""When bronze rests, and when it goes on."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from replicator.stages.ingest.pace import Pace

TOOK, LIMIT = 0.1, 200_000
"""Seconds that a batch of these tests is said to have taken, and rows that it may have."""


def resting(pace: Pace, pool: ThreadPoolExecutor) -> Future[float]:
    """A small batch that rests; when it went on."""

    def rest() -> float:
        pace.wait(1, TOOK, LIMIT)
        return time.monotonic()

    batch = pool.submit(rest)
    time.sleep(0.1)
    return batch


def gold(pace: Pace, seconds: float) -> float:
    """The last work of a pass; when it ended."""
    with pace.ending():
        time.sleep(seconds)
        return time.monotonic()


def test_a_half_full_batch_does_not_rest_and_nothing_does_where_nobody_follows() -> None:
    """More is waiting behind it: a backlog is not taken by a batch per pass. What is alone goes on at once."""
    pace, started = Pace(), time.monotonic()
    pace.wait(1, TOOK, LIMIT)
    with pace.held():
        pace.wait(LIMIT // 2, TOOK, LIMIT)
        pace.wait(500, TOOK, 1_000)
    pace.wait(1, TOOK, LIMIT)
    assert time.monotonic() - started < 0.9


@pytest.mark.parametrize("end", [contextlib.nullcontext(), pytest.raises(ZeroDivisionError)])
def test_a_small_batch_rests_until_the_pass_ends_also_by_an_error(end: AbstractContextManager[object]) -> None:
    """What stops a pass does not stop bronze."""
    pace = Pace()
    with ThreadPoolExecutor() as pool:
        with end as error, pace.held():
            batch = resting(pace, pool)
            time.sleep(0.2)
            ended = time.monotonic()
            assert 1 / (error is None)
        assert batch.result() >= ended


def test_each_pass_has_one_batch_which_is_there_when_it_ends() -> None:
    """The turn is judged by how long the last work of the pass before took, less the batch: what rests by then goes on.
    What comes to rest behind it has the turn of the next pass, if that one begins.
    """
    pace = Pace(is_followed=True)
    with ThreadPoolExecutor() as pool:
        with pace.held():
            gold(pace, 1)
        with pace.held():
            batch = resting(pace, pool)
            begun = time.monotonic()
            with pace.ending():
                went = batch.result()
                following = resting(pace, pool)
                time.sleep(0.5)
                ended = time.monotonic()
        assert 1 - TOOK - 0.6 < went - begun < ended - begun
        time.sleep(0.2)
        with pace.held():
            time.sleep(0.2)
            assert not following.done()
            begun = time.monotonic()
            ended = gold(pace, 3)
        assert begun < following.result() < ended


def test_the_longest_batch_behind_a_turn_says_when_the_next_one_comes() -> None:
    """One that is half full is followed by a smaller one at once, which is sooner done."""
    pace = Pace(is_followed=True)
    with ThreadPoolExecutor() as pool:
        with pace.held():
            gold(pace, 3)
        pace.wait(LIMIT, 1.5, LIMIT)
        with pace.held():
            batch = resting(pace, pool)
            begun = time.monotonic()
            gold(pace, 3)
        went = batch.result() - begun
    assert 3 - 1.5 - 0.6 < went < 3 - TOOK - 0.5


def test_what_no_pass_takes_up_goes_on_when_nobody_has_begun() -> None:
    """Behind a batch a pass begins soon, or none will: so is it behind a pass, for what came to rest after its turn."""
    pace = Pace(is_followed=True)
    with ThreadPoolExecutor() as pool:
        started = time.monotonic()
        pace.wait(1, TOOK, LIMIT)
        assert 0.9 < time.monotonic() - started < 10
        with pace.held(), pace.ending():
            late = resting(pace, pool)
            time.sleep(0.2)
            ended = time.monotonic()
        assert ended + 0.9 < late.result() < ended + 10
