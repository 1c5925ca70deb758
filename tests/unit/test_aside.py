"""One work at a time beside the caller's: begun, and taken once."""

from __future__ import annotations

from threading import Event

import pytest

from replicator.stages.parallel import BackgroundTask


def test_what_goes_on_is_not_waited_for_unless_one_wants_to() -> None:
    """Its result comes once; before anything was begun there is none."""
    go = Event()
    with BackgroundTask[str]("test") as aside:
        assert aside.take_result(wait=True) is None
        aside.begin(lambda: str(go.wait(30)))
        assert aside.take_result(wait=False) is None
        go.set()
        assert aside.take_result(wait=True) == "True"
        assert aside.take_result(wait=True) is None


def test_what_it_raised_is_raised_where_it_is_taken() -> None:
    """A death too, which is no Exception."""

    class Dead(BaseException):
        pass

    def die() -> str:
        raise Dead

    with BackgroundTask[str]("test") as aside:
        aside.begin(die)
        with pytest.raises(Dead):
            aside.take_result(wait=True)


def test_the_end_of_the_block_waits() -> None:
    """What has begun is not left behind."""
    done: list[int] = []
    go = Event()

    def work() -> str:
        go.wait(30)
        done.append(1)
        return ""

    with BackgroundTask[str]("test") as aside:
        aside.begin(work)
        go.set()
    assert done == [1]
