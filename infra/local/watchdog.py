"""Stop services when the process that asked for them is gone: ``python -m infra.local.watchdog HOME PID SERVICE...``.

It is started before the services are, so a kill in the middle of a start leaves nothing behind either.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from infra.local.processes import birth
from infra.local.stack import Stack


def main() -> None:
    """Sleep while the owner lives, then stop what it had started."""
    home, owner, *services = sys.argv[1:]
    born = birth(int(owner))
    while born is not None and birth(int(owner)) == born:
        time.sleep(0.5)
    Stack(Path(home)).stop(services)


if __name__ == "__main__":
    main()
