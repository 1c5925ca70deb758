"""How much memory this process and its children use."""

from __future__ import annotations

import os
from pathlib import Path


def of_this_family() -> int:
    """Proportional memory of this process and all below it (Spark's JVM, Python workers), in MB."""
    family = {os.getpid()}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        if _parent(folder) in family:
            family.add(int(folder.name))
    return sum(_kilobytes(Path("/proc") / str(pid)) for pid in family) >> 10


def _parent(folder: Path) -> int | None:
    try:
        return int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:  # it has ended meanwhile
        return None


def _kilobytes(folder: Path) -> int:
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
