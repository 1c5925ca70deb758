"""What ``jobs/*.py`` run under ``spark-submit``: one stage, with the flags of ``replicator run``."""

from __future__ import annotations

import sys

from replicator.cli import main


def submit(stage: str) -> None:
    """Run one stage; the arguments behind the script are those of ``replicator run``."""
    sys.argv = [f"jobs/{stage}.py", "run", stage, *sys.argv[1:]]
    main()
