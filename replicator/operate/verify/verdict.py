"""The kinds of comparisons, their options and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator.errors import ReplicatorError

SOURCE, TWINS, GOLD, TARGET = "source", "twins", "gold", "target"
LAYERS = (SOURCE, TWINS, GOLD, TARGET)
"""The kinds of comparisons: the source with silver, silver with its copies in other formats, silver with gold, gold
with the serving database.
"""


def _ignore_progress(rows: int) -> None:
    """Discard the progress."""


@dataclass(frozen=True)
class VerifyOptions:
    """The options of a comparison: the ``share`` of the keys that is compared; ``wait``, the seconds for which
    differences with a live source are compared again; ``advance``, which is called with the number of rows that were
    just read.
    """

    share: float = 1.0
    wait: float = 0.0
    advance: Callable[[int], None] = _ignore_progress


@dataclass(frozen=True)
class Verdict:
    """The result of one comparison of ``table`` with ``against``; for silver and its twins the deleted rows are
    included.

    ``rows``: the number of rows that the copy must have. Keys are ``missing`` from it or ``extra`` in it, or their rows
    are ``differing``; ``named`` has a few of them, with the differing columns, and ``ranges`` the key ranges of all.
    ``columns``: columns with different types on the two sides, or on one side only. ``behind``: the number of commits
    that the copy has not applied yet, which were not compared. ``in_flight``: keys that were left out since they
    changed after the source was read. ``not_compared``: columns that cannot be compared, with the reason. ``position``:
    as of what the sides were compared; ``checksum``: of the rows; ``share``: the compared part of the keys. ``error``:
    why the comparison failed.
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
        """Whether the comparison succeeded and found no difference."""
        return self.error is None and not (self.missing or self.extra or self.differing or self.columns)


@dataclass(frozen=True)
class Comparison:
    """A possible comparison: ``compare`` runs it, ``size`` returns how many rows of both sides it will read."""

    layer: str
    table: str
    against: str
    compare: Callable[[SparkSession, Verdict, VerifyOptions], Verdict]
    size: Callable[[SparkSession], int]

    @property
    def empty_verdict(self) -> Verdict:
        """The verdict before the comparison."""
        return Verdict(self.layer, self.table, self.against)
