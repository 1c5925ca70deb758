"""Commands that can be answered without Spark, which takes seconds to start; often longer than the query itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from replicator.cli.console import narrate
from replicator.errors import ReplicatorError

Found = TypeVar("Found")


def answer(without: Callable[[], Found], by_spark: Callable[[], Found]) -> Found:
    """Return the result of *without* (no Spark); where that is impossible, note it on stderr and call *by_spark*."""
    try:
        return without()
    except ReplicatorError as error:
        narrate(f"starting Spark: {error.what}", style="dim")
    return by_spark()
