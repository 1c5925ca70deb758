"""The context of one source's silver: its settings and the implementations of the protocols that it uses."""

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
    """The context of one source's silver. ``bronze`` also stores the dead letters. A batch with a larger
    ``dead_letter_share`` stops its table (R5).

    In a batch that is not large, up to ``tables_at_once`` tables are processed in parallel. ``state`` is what the
    process remembers of the order so far, ``templates`` how records are written. ``turn`` is the lock for writing what
    tables share (dead letters, routes). ``keep_before``: for each update the row before it is needed, too.
    """

    source: SourceSpec
    bronze: TableFormat
    silver: TableFormat
    control: Control
    lake: Lake
    dead_letter_share: float = 0.01
    tables_at_once: int = 3
    keep_before: bool = False
    state: SourceState = field(default_factory=SourceState, compare=False, repr=False)
    templates: TemplateCache = field(default_factory=TemplateCache, compare=False, repr=False)
    turn: Lock = field(default_factory=Lock, compare=False, repr=False)

    @property
    def placeholder(self) -> Placeholder:
        """The text that stands for a value that was not sent."""
        return Placeholder(self.source.placeholder)
