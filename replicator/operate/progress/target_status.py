"""The status of the targets that models are published to."""

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
    """The ledger of one target. Concurrent requests wait for the answer to the first one: a target that does not
    respond, or rejects the login, is asked only once, and logged once.
    """

    name: str
    sink: Sink
    silent: Unreachable | LoginRefused | None = None
    answers: bool = False
    first: Lock = field(default_factory=Lock)

    def progress(self, model: Model) -> Progress | None:
        """Return the published progress of a model. Raises Unreachable, LoginRefused."""
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
    """The statuses of targets, by connection."""

    def __init__(self, sinks: Mapping[str, Sink]) -> None:
        self._ledgers = {name: _TargetLedger(name, sink) for name, sink in sinks.items()}

    def standing(self, model: Model, target: Target, identity: str | None, version: int | None) -> TableStatus:
        """Return the status of a model's target, given the id and version of its gold table. The lag is unknown where
        the published rows are of another table, or of a version that the table does not have (yet).
        """
        where = f"{target.schema}.{target.table}"
        try:
            ledger = self._ledgers[target.connection].progress(model)
        except Unreachable:
            return TableStatus("publish", where, None, "unreachable")
        except LoginRefused:
            return TableStatus("publish", where, None, "access denied")
        except TargetRefused as error:
            LOG.warning("target_refused table=%s reason=%s", where, error)
            return TableStatus("publish", where, None, "state cannot be read")
        if ledger is None:
            return TableStatus("publish", where, None, "to be sent in full")
        if ledger.input != identity:
            return TableStatus("publish", where, None, f"version {ledger.version} of another gold table")
        versions_behind = None if version is None or version < ledger.version else version - ledger.version
        return TableStatus("publish", where, None, f"gold version {ledger.version}", versions_behind)
