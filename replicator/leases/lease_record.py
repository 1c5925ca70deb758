"""The content of a lease's object, as text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from replicator.errors import ConfigError
from replicator.leases.holder import Holder


@dataclass(frozen=True)
class LeaseRecord:
    """One stage of a lake: its ``holder``, whether it is ``free`` again, ``since`` when by the holder's own clock (for
    display), the seconds for which each renewal is valid (``length``), the number of ``renewals``, and the holder's
    ``token`` (0: not drawn yet).

    The text of a record is never the same twice: holders have random ids and count their writes.
    """

    stage: str
    holder: Holder
    since: str
    length: float
    renewals: int = 0
    token: int = 0
    free: bool = False

    def next(self, *, token: int | None = None, free: bool = False) -> LeaseRecord:
        """The record that its holder writes next."""
        return replace(self, renewals=self.renewals + 1, token=self.token if token is None else token, free=free)

    def text(self) -> str:
        """The record as JSON."""
        return json.dumps(asdict(self), sort_keys=True)


def parse(text: str, where: str) -> LeaseRecord:
    """Parse a record. Raises ConfigError for an invalid one."""
    try:
        record = json.loads(text)
        numbers = {"length": float(record["length"])} | {name: int(record[name]) for name in ("renewals", "token")}
        return LeaseRecord(**{**record, **numbers, "holder": Holder(**record["holder"])})
    except (ValueError, TypeError, KeyError) as error:
        what = "not a valid lease"
        raise ConfigError(what, where=where, fix="Make sure that no driver writes the lake, then remove it.") from error
