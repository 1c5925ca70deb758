"""The context of the gold stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.lake import Lake
from replicator.protocols import Control, TableFormat
from replicator.spec import Model, Table

FULL_SHARE = 0.2
"""Above this share of a model's rows it is faster to compute all of them (decision 0020)."""

FULL_BYTES = 512 << 10
"""Models with inputs up to this size are computed in full, whatever changed: finding the changes costs more (decision
0020).
"""


@dataclass(frozen=True)
class Warehouse:
    """The context of gold: where the inputs, the models and the control rows are; and when a model is computed in full:
    above which share of affected rows (``full_share``), and up to how many bytes of inputs (``full_bytes``).
    """

    silver: TableFormat
    gold: TableFormat
    control: Control
    lake: Lake
    full_share: float = FULL_SHARE
    full_bytes: int = FULL_BYTES

    def table(self, model: Model) -> Table:
        """Return the table of a model."""
        return replace(self.lake.gold(model.name, model.key), deletion_vectors=model.deletion_vectors)
