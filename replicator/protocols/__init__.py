"""Three small contracts: where records come from, how a table is stored, how rows are served.

Their docstrings are the contract; ``tests/contract`` holds every implementation to them, the in-memory
ones included.
"""

from replicator.protocols.control import Control, ControlReader
from replicator.protocols.fence import UNFENCED, Fence, Unfenced
from replicator.protocols.sources import Broker, Landing, Listing, Source, StreamState
from replicator.protocols.tables import TableFormat
from replicator.protocols.targets import Difference, Outlet, Sink

__all__ = [
    "UNFENCED",
    "Broker",
    "Control",
    "ControlReader",
    "Difference",
    "Fence",
    "Landing",
    "Listing",
    "Outlet",
    "Sink",
    "Source",
    "StreamState",
    "TableFormat",
    "Unfenced",
]
