"""What a process and its children use, as Linux counts it in /proc."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True)
class Used:
    """CPU seconds, bytes given to the disk, and the greatest sum of resident memory, since :func:`reset`."""

    cpu: float
    io_bytes: int
    rss: int


def tree(*pids: int) -> list[int]:
    """Processes and all of their descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                children[parent(int(entry.name))].append(int(entry.name))
    found = [*pids]
    for each in found:
        found.extend(children[each])
    return found


def parent(pid: int) -> int:
    """The process that has started it. Raises OSError when it is gone."""
    return int(_stat(pid)[1])


def reset(pids: list[int]) -> None:
    """Let the peak of each one's memory begin anew."""
    for pid in pids:
        with contextlib.suppress(OSError):
            (_PROC / str(pid) / "clear_refs").write_text("5")


def used(pids: list[int]) -> Used:
    """What they have used until now, ended children included; memory: the sum of their peaks. One that has just ended
    has no memory.
    """
    cpu, written, rss = 0.0, 0, 0
    for pid in pids:
        with contextlib.suppress(OSError):
            cpu += sum(map(int, _stat(pid)[11:15])) / _TICKS
            told = _told(pid, "status")
            rss += int(told.get("VmHWM", "0").split()[0]) * 1024
            written += int(_told(pid, "io")["write_bytes"])
    return Used(cpu, written, rss)


def busy() -> float:
    """CPU seconds that the whole machine has worked."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, (_PROC / "stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq) / _TICKS


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold blanks: state, parent ..."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _told(pid: int, file: str) -> Mapping[str, str]:
    lines = (_PROC / str(pid) / file).read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
