"""Stop services when the process that asked for them is gone: ``python -m infra.local.watchdog HOME PID IDENTITY``.

It is started before the services are, so a kill in the middle of a start leaves nothing behind either.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from infra.local.processes import birth, identity
from infra.local.stack import Stack


def main() -> None:
    """Sleep while the owner lives, then stop what it had started: at once where it was gone before."""
    home, pid, owner = sys.argv[1:]
    while birth(int(pid)) is not None and identity(int(pid)) == owner:
        time.sleep(0.5)
    Stack(Path(home)).stop_those_of(owner)


if __name__ == "__main__":
    main()
