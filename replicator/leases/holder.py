"""The holder of a lease: a process on a machine, and whether it is known to have ended."""

from __future__ import annotations

import getpass
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

_PROCESSES = Path("/proc")
_STATE, _STARTED = 0, 19
"""Fields of ``/proc/<pid>/stat`` after the program's name."""


@dataclass(frozen=True)
class Holder:
    """A driver: ``id`` is random; ``machine`` identifies one boot of one kernel, and one PID namespace; ``started``
    tells processes apart that had the same PID one after the other, '' if the system does not report it.
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
    """Whether the holder is known to have ended, which is possible only for a process on this machine. If its entry in
    /proc cannot be read (``hidepid``), a process with that PID is taken for the holder.
    """
    if holder.machine != _machine():
        return False
    state, started = _read_process_stat(holder.pid)
    if not (holder.started and started):
        return not _is_running(holder.pid)
    return started != holder.started or state in {"Z", "X"}


def _machine() -> str:
    boot = _PROCESSES / "sys/kernel/random/boot_id"
    boot_id = boot.read_text(encoding="ascii").strip() if boot.is_file() else ""
    numbers = _PROCESSES / "self/ns/pid"
    return f"{socket.gethostname()} {boot_id} {os.readlink(numbers) if numbers.is_symlink() else ''}".strip()


def _read_process_stat(pid: int) -> tuple[str, str]:
    """The state of a process and its start time; ('', '') if there is none, or it may not be read."""
    try:
        stat = (_PROCESSES / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()
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
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return str(os.getuid())
