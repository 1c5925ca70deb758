"""What the stage gold works on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replicator.lake import Lake
from replicator.protocols import Control, TableFormat
from replicator.spec import Model, Table

FULL_SHARE = 0.2
"""Beyond this share of a model's rows it is quicker to compute all of them (decision 0020)."""

FULL_BYTES = 512 << 10
"""So does a model whose inputs are no larger, whatever changed: finding out what did costs more (decision 0020)."""


@dataclass(frozen=True)
class Warehouse:
    """Everything that gold needs: where the inputs are, where the models go, where the control rows are; and when a
    model is computed in full: beyond which share of affected rows, and up to how many bytes of inputs.
    """

    silver: TableFormat
    gold: TableFormat
    control: Control
    lake: Lake
    full_share: float = FULL_SHARE
    full_bytes: int = FULL_BYTES

    def table(self, model: Model) -> Table:
        """Where a model's rows are."""
        return replace(self.lake.gold(model.name, model.key), deletion_vectors=model.deletion_vectors)
