"""Answers that need no Spark: it takes seconds to start, and the question less."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from replicator.cli.console import narrate
from replicator.errors import ReplicatorError

Found = TypeVar("Found")


def answer(without: Callable[[], Found], by_spark: Callable[[], Found]) -> Found:
    """What is found *without* Spark; where that cannot be, said on stderr, what is found *by_spark*."""
    try:
        return without()
    except ReplicatorError as error:
        narrate(f"Spark is started: {error.what}", style="dim")
    return by_spark()
