"""What stands in targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from replicator.errors import LoginRefused, Unreachable
from replicator.operate.standing import Standing

if TYPE_CHECKING:
    from replicator.protocols import Sink
    from replicator.spec import Model, Target


@dataclass(frozen=True)
class Served:
    """The targets, by connection. One that is ``silent``, since it did not answer once, is not asked again."""

    sinks: Mapping[str, Sink]
    silent: set[str] = field(default_factory=set)

    def standing(self, model: Model, target: Target, version: int | None) -> Standing:
        """Where the target of a model stands that has come to this version of gold."""
        where = f"{target.schema}.{target.table}"
        away = Standing("publish", where, None, "out of reach")
        if target.connection in self.silent:
            return away
        try:
            ledger = self.sinks[target.connection].progress(model)
        except Unreachable:
            self.silent.add(target.connection)
            return away
        except LoginRefused:
            return Standing("publish", where, None, "lets nobody in")
        if ledger is None:
            return Standing("publish", where, None, "never published")
        versions_behind = None if version is None else version - ledger.version
        return Standing("publish", where, None, f"gold version {ledger.version}", versions_behind)
