"""What stands in targets."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from replicator.errors import LoginRefused, TargetRefused, Unreachable
from replicator.operate.progress.table_status import TableStatus

if TYPE_CHECKING:
    from replicator.protocols import Sink
    from replicator.spec import Model, Progress, Target

LOG = logging.getLogger(__name__)


@dataclass
class _TargetLedger:
    """What a target says of its models. Those that are looked at beside the first wait for its answer: a target that is
    silent, or lets nobody in, is asked once, and told of once.
    """

    name: str
    sink: Sink
    silent: Unreachable | LoginRefused | None = None
    answers: bool = False
    first: Lock = field(default_factory=Lock)

    def progress(self, model: Model) -> Progress | None:
        """Raises Unreachable, LoginRefused."""
        if self.answers:
            return self.sink.progress(model)
        with self.first:
            if self.silent is not None:
                raise self.silent
            try:
                found = self.sink.progress(model)
            except (Unreachable, LoginRefused) as error:
                LOG.warning("target_silent target=%s reason=%s", self.name, error)
                self.silent = error
                raise
            self.answers = True
            return found


class TargetStatuses:
    """The targets, by connection."""

    def __init__(self, sinks: Mapping[str, Sink]) -> None:
        self._ledgers = {name: _TargetLedger(name, sink) for name, sink in sinks.items()}

    def standing(self, model: Model, target: Target, identity: str | None, version: int | None) -> TableStatus:
        """Where the target of a model stands whose gold table is this one, and has come to this version. How far it is
        behind nobody can say where its rows are of another table, or of a version that is not there (yet again).
        """
        where = f"{target.schema}.{target.table}"
        try:
            ledger = self._ledgers[target.connection].progress(model)
        except Unreachable:
            return TableStatus("publish", where, None, "out of reach")
        except LoginRefused:
            return TableStatus("publish", where, None, "lets nobody in")
        except TargetRefused as error:
            LOG.warning("target_refused table=%s reason=%s", where, error)
            return TableStatus("publish", where, None, "refuses to tell")
        if ledger is None:
            return TableStatus("publish", where, None, "to be sent whole")
        if ledger.input != identity:
            return TableStatus("publish", where, None, f"version {ledger.version} of another gold table")
        versions_behind = None if version is None or version < ledger.version else version - ledger.version
        return TableStatus("publish", where, None, f"gold version {ledger.version}", versions_behind)
