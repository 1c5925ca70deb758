"""What one source's silver needs: values and the implementations of the protocols it meets."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from replicator.debezium.placeholder import Placeholder
from replicator.debezium.template_matching import TemplateCache
from replicator.lake import Lake
from replicator.protocols import Control, TableFormat
from replicator.spec import SourceSpec
from replicator.stages.tick.source_state import SourceState


@dataclass(frozen=True)
class Refinement:
    """``bronze`` also keeps the dead letters. A batch with a larger ``dead_letter_share`` stops its table (R5).

    Of a batch that is not large so many ``tables_at_once`` are worked on. ``reached`` is what the process remembers of
    the order so far, ``templates`` of how records are written. Who writes what tables share (dead letters, routes)
    takes his ``turn``. ``befores``: of each update it is asked, too, what its row was before.
    """

    source: SourceSpec
    bronze: TableFormat
    silver: TableFormat
    control: Control
    lake: Lake
    dead_letter_share: float = 0.01
    tables_at_once: int = 3
    befores: bool = False
    reached: SourceState = field(default_factory=SourceState, compare=False, repr=False)
    templates: TemplateCache = field(default_factory=TemplateCache, compare=False, repr=False)
    turn: Lock = field(default_factory=Lock, compare=False, repr=False)

    @property
    def placeholder(self) -> Placeholder:
        """The text that stands for a value that was not sent."""
        return Placeholder(self.source.placeholder)
