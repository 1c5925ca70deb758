"""The last verified state of each table: a control row per comparison, removed when a difference is found."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass

from replicator import controlrow
from replicator.lake import Lake
from replicator.operate.verify.verdict import LAYERS, SOURCE, TWINS, Verdict
from replicator.protocols import Control


@dataclass(frozen=True)
class Mark:
    """``table`` was equal to ``against`` on ``verified_at`` (ISO 8601, UTC), as of ``position``."""

    layer: str
    table: str
    against: str
    verified_at: str
    position: str
    rows: int
    checksum: str

    def matches(
        self, layers: Collection[str], tables: Collection[str] | None, against: str | None, source: str | None
    ) -> bool:
        """Whether the mark matches all filters: its layer is one of ``layers``, its table or model one of ``tables``,
        it was compared with the format, target or kind of database ``against``, and it is a table of ``source`` or a
        model; None matches everything.
        """
        is_of_source = self.layer not in (SOURCE, TWINS) or self.table.startswith(f"{source}/")
        is_selected = (tables is None or self.table in tables) and against in (None, self.against)
        return self.layer in layers and is_selected and (source is None or is_of_source)


@dataclass(frozen=True)
class Marks:
    """The marks of a lake."""

    lake: Lake
    control: Control
    now: Callable[[], str]

    def note(self, verdict: Verdict) -> None:
        """Record an equal verdict, and remove the mark for a different one. A verdict with an error changes nothing,
        nor does an equal one of only a part of the keys.
        """
        place = self.lake.verified(verdict.layer, verdict.table, verdict.against)
        if verdict.error is not None:
            return
        if not verdict.is_equal:
            self.control.remove(place)
        elif verdict.share >= 1:
            identity = (verdict.layer, verdict.table, verdict.against)
            self.control.put(
                place, asdict(Mark(*identity, self.now(), verdict.position, verdict.rows, verdict.checksum))
            )

    def every(self) -> list[Mark]:
        """Return all marks, in the order of the layers."""
        found = []
        for layer in LAYERS:
            folder = self.lake.verified_root(layer)
            rows = [self.control.get(f"{folder}/{name}.json") for name in self.control.under(folder)]
            found += [Mark(**controlrow.select_fields(Mark, row)) for row in rows if row is not None]
        return found
