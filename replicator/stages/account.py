"""What became of the records that one table read (debezium.md section R)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Row

from replicator.errors import ReplicatorError


@dataclass(frozen=True)
class Account:
    """One table's result of a tick: read = applied + superseded + dead_lettered + the sum of ``ignored`` (R1).

    ``applied`` changes are in the table now, ``superseded`` ones are valid but older than what it has (R2). ``error``
    is set if the table stopped; then its progress did not change. ``seconds`` is wall time.
    """

    table: str
    read: int = 0
    applied: int = 0
    superseded: int = 0
    dead_lettered: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    error: ReplicatorError | None = None

    @property
    def residue(self) -> int:
        """The number of records that are not accounted for; anything but 0 is a bug."""
        return self.read - self.applied - self.superseded - self.dead_lettered - sum(self.ignored.values())

    def with_ignored(self, rule: str, count: int) -> Account:
        """Return the account with ``count`` more records ignored by a rule (R3)."""
        return replace(self, ignored={**self.ignored, rule: self.ignored.get(rule, 0) + count}) if count else self

    def warning(self, *sentences: str) -> Account:
        """Return the account with these sentences added to its warnings."""
        return replace(self, warnings=(*self.warnings, *sentences)) if sentences else self


def count_groups(account: Account, groups: Iterable[Row]) -> Account:
    """Return the account with the counts that are known before decoding, from the groups of
    ``transforms.changes.survey``.
    """
    ignored: Counter[str] = Counter()
    read = rejected = 0
    for group in groups:
        read += group["count"]
        if group["rule"] is not None:
            ignored[group["rule"]] += group["count"]
        elif group["reason"] is not None:
            rejected += group["count"]
    return replace(account, read=read, dead_lettered=rejected, ignored=dict(ignored))
