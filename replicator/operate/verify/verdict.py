"""What is compared with what, how closely, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator.errors import ReplicatorError

SOURCE, TWINS, GOLD, TARGET = "source", "twins", "gold", "target"
LAYERS = (SOURCE, TWINS, GOLD, TARGET)
"""Kinds of comparisons: the source with silver, silver with its copies in other formats, silver with gold, gold with
the serving database.
"""


def _ignore_progress(rows: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class VerifyOptions:
    """How closely it is looked: the ``share`` of the keys; for how many seconds differences with a live source are
    looked at again; whom to tell how many more rows were read.
    """

    share: float = 1.0
    wait: float = 0.0
    advance: Callable[[int], None] = _ignore_progress


@dataclass(frozen=True)
class Verdict:
    """One comparison of ``table`` with ``against``; of silver and its twins with the deleted rows of both.

    ``rows`` are those that the copy must have; keys are ``missing`` from it, ``extra`` in it, or their rows
    ``differing``; a few of them are ``named``, with the columns that differ, and ``ranges`` says of all between which
    keys they lie. ``columns`` are not of one type on both
    sides, or on one only. ``behind``: so many commits were still to be taken over by the copy, and were not looked at.
    ``in_flight``: keys that changed after the source was read, left out. ``not_compared`` are columns that nobody can
    compare, with why. ``position`` says as of what, ``checksum`` what the rows add up to, ``share`` which part of the
    keys was looked at. ``error``: it could not be told.
    """

    layer: str
    table: str
    against: str
    rows: int = 0
    missing: int = 0
    extra: int = 0
    differing: int = 0
    behind: int = 0
    in_flight: int = 0
    columns: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()
    position: str = ""
    checksum: str = ""
    share: float = 1.0
    error: ReplicatorError | None = None

    @property
    def is_equal(self) -> bool:
        """Whether both were read, and hold the same."""
        return self.error is None and not (self.missing or self.extra or self.differing or self.columns)


@dataclass(frozen=True)
class Comparison:
    """One that can be made: ``take`` makes it, ``size`` tells how many rows it will read of both sides together."""

    layer: str
    table: str
    against: str
    take: Callable[[SparkSession, Verdict, VerifyOptions], Verdict]
    size: Callable[[SparkSession], int]

    @property
    def nothing(self) -> Verdict:
        """A verdict that says nothing yet."""
        return Verdict(self.layer, self.table, self.against)
