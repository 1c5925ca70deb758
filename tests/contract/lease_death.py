"""A driver in a process of its own that is killed at a point of its leases. Arguments: the point, the endpoint of the
object store or '', and the lake's root. Line out: the token that it has drawn.
"""

from __future__ import annotations

import sys
import time

from replicator import failpoints
from replicator.lake import Lake
from replicator.operate.lock import LeaseOptions, exclusive
from tests.contract.s3_keys import keys

STAGES = ("gold", "silver")
LENGTH = 8.0
"""A renewal comes after a second, when all is taken."""


def main() -> None:
    point, endpoint, root = sys.argv[1:]
    failpoints.arm(failpoints.parse(f"{point}:kill:1"))
    with exclusive(Lake(root), STAGES, LeaseOptions(LENGTH, s3=keys(endpoint) if endpoint else None)) as fence:
        sys.stdout.write(f"{fence.token.number}\n")
        sys.stdout.flush()
        time.sleep(LENGTH / 4 if point == "lease.renewed" else 0)


if __name__ == "__main__":
    main()
