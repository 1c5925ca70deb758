"""Who holds a lease: a process of a machine, and whether it can be known to be gone."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

_PROCESSES = Path("/proc")
_STATE, _STARTED = 0, 19
"""Fields of ``/proc/<pid>/stat`` behind the program's name."""


@dataclass(frozen=True)
class Holder:
    """A driver: ``id`` is random; ``machine`` tells one boot of one kernel, and one space of its process numbers;
    ``started`` tells processes apart that had the same number one after the other, '' where the system does not say.
    """

    id: str
    host: str
    user: str
    pid: int
    machine: str
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} of {self.user} on {self.host}"


def this_process() -> Holder:
    """This process, with a new id."""
    pid = os.getpid()
    _, started = _read_process_stat(pid)
    return Holder(uuid4().hex, socket.gethostname(), _user(), pid, _machine(), started)


def has_ended(holder: Holder) -> bool:
    """Whether it is known to have ended: only of a process of this machine. Where its entry in /proc cannot be read
    (``hidepid``), a process of that number is taken for it.
    """
    if holder.machine != _machine():
        return False
    state, started = _read_process_stat(holder.pid)
    if not (holder.started and started):
        return not _is_running(holder.pid)
    return started != holder.started or state in {"Z", "X"}


def _machine() -> str:
    boot = _PROCESSES / "sys/kernel/random/boot_id"
    told = boot.read_text(encoding="ascii").strip() if boot.is_file() else ""
    numbers = _PROCESSES / "self/ns/pid"
    return f"{socket.gethostname()} {told} {os.readlink(numbers) if numbers.is_symlink() else ''}".strip()


def _read_process_stat(pid: int) -> tuple[str, str]:
    """The state of a process and when it was started; ('', '') where there is none, or nobody may see it."""
    try:
        told = (_PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = told.rpartition(")")[2].split()
    return fields[_STATE], fields[_STARTED]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name, as in some containers
        return str(os.getuid())
