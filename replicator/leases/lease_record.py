"""What the object of a lease says, as text."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from replicator.errors import ConfigError
from replicator.leases.holder import Holder


@dataclass(frozen=True)
class LeaseRecord:
    """One stage of a lake: its ``holder``, whether it is ``free`` again, since when by the holder's own clock (for
    people), for how many seconds (``length``) each of its ``renewals`` is good, and the holder's ``token`` (0: not
    drawn yet).

    The text of a record is never the same twice: holders have random ids and count what they write.
    """

    stage: str
    holder: Holder
    since: str
    length: float
    renewals: int = 0
    token: int = 0
    free: bool = False

    def next(self, *, token: int | None = None, free: bool = False) -> LeaseRecord:
        """What its holder writes next."""
        return replace(self, renewals=self.renewals + 1, token=self.token if token is None else token, free=free)

    def text(self) -> str:
        """For the object."""
        return json.dumps(asdict(self), sort_keys=True)


def parse(text: str, where: str) -> LeaseRecord:
    """The record of a text. Raises ConfigError for what is none."""
    try:
        told = json.loads(text)
        return LeaseRecord(**{**told, "holder": Holder(**told["holder"])})
    except (ValueError, TypeError, KeyError) as error:
        what = "what lies in the place of a lease is none"
        raise ConfigError(what, where=where, mend="Make sure that nobody writes the lake, then remove it.") from error
