"""A driver in a process of its own: it takes the lease of silver of each lake that it is told, and says what it got.

Lines in: a lake's root; ``done``: end the work. Lines out: ``ready``; what became of the lease, as JSON; ``gone``, or
the error that the work ended with.
"""

from __future__ import annotations

import json
import sys

from replicator.errors import LakeBusy, LeaseLost
from replicator.lake import Lake
from replicator.leases.lease import seconds_since_boot
from replicator.operate.lock import LeaseOptions, exclusive
from tests.contract.s3_keys import keys


def main() -> None:
    endpoint = sys.argv[1]
    terms = LeaseOptions(1.2, s3=keys(endpoint) if endpoint else None)
    tell("ready")
    while root := sys.stdin.readline().strip():
        began = seconds_since_boot()
        try:
            with exclusive(Lake(root), ("silver",), terms) as fence:
                tell(json.dumps({"is": "works", "token": fence.token.number}))
                sys.stdin.readline()
                fence.check()
        except LakeBusy:
            tell(json.dumps({"is": "busy", "seconds": seconds_since_boot() - began}))
        except LeaseLost as error:
            tell(f"LeaseLost {error}")
        else:
            tell("gone")


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
