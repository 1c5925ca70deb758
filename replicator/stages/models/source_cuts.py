"""Whether the sources of a model's inputs show whole transactions, and the same ones throughout a refresh."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.spec import Model
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.tick import transaction_cut
from replicator.stages.tick.transaction_cut import CutState


def load(model: Model, at: Warehouse) -> dict[str, CutState | None]:
    """The transaction cut of each source of a model's inputs (``stages/tick/transaction_cut.py``). Raises TableStopped
    and AtWork while silver holds a partial transaction of one of them.
    """
    sources = dict.fromkeys(given.partition("/")[0] for given in model.inputs.values() if "/" in given)
    return {source: transaction_cut.load_consistent(at.control, at.lake, source) for source in sources}


def refuse_moved(model: Model, at: Warehouse, expected: Mapping[str, CutState | None]) -> None:
    """Raise AtWork if silver changed while the versions of the inputs were read: they would not be consistent."""
    now = load(model, at)
    moved = next((source for source, state in now.items() if state != expected[source]), None)
    if moved is not None:
        raise transaction_cut.at_work_error(moved, "silver changed while its tables were read")
