"""How far a table was last found equal: a control row per comparison, which a difference removes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass

from replicator import controlrow
from replicator.lake import Lake
from replicator.operate.verify.verdict import LAYERS, SOURCE, TWINS, Verdict
from replicator.protocols import Control


@dataclass(frozen=True)
class Mark:
    """``table`` held what ``against`` says on ``verified_at`` (ISO 8601, UTC), as of ``position``."""

    layer: str
    table: str
    against: str
    verified_at: str
    position: str
    rows: int
    checksum: str

    def concerns(
        self, layers: Collection[str], tables: Collection[str] | None, against: str | None, source: str | None
    ) -> bool:
        """Whether it is of one of the layers, of one of the tables or models, of a comparison with that format, target
        or kind of database, and of a table of that source, or of a model; None is any.
        """
        of_source = self.layer not in (SOURCE, TWINS) or self.table.startswith(f"{source}/")
        told = (tables is None or self.table in tables) and against in (None, self.against)
        return self.layer in layers and told and (source is None or of_source)


@dataclass(frozen=True)
class Marks:
    """The marks of a lake."""

    lake: Lake
    control: Control
    now: Callable[[], str]

    def note(self, verdict: Verdict) -> None:
        """Keep an equal verdict, forget the mark of a different one. One that could not be told changes nothing, nor
        does an equal one over a part of the keys.
        """
        place = self.lake.verified(verdict.layer, verdict.table, verdict.against)
        if verdict.error is not None:
            return
        if not verdict.is_equal:
            self.control.remove(place)
        elif verdict.share >= 1:
            of = (verdict.layer, verdict.table, verdict.against)
            self.control.put(place, asdict(Mark(*of, self.now(), verdict.position, verdict.rows, verdict.checksum)))

    def every(self) -> list[Mark]:
        """All marks, in the order of the layers."""
        found = []
        for layer in LAYERS:
            folder = self.lake.verified_root(layer)
            kept = [self.control.get(f"{folder}/{name}.json") for name in self.control.under(folder)]
            found += [Mark(**controlrow.select_fields(Mark, each)) for each in kept if each is not None]
        return found
