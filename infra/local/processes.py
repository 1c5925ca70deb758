"""One server as a process of its own: start, alive or not, ready, stop, memory.

A pid file holds the kernel's own line about the process, with its start time: a process id that the kernel has given
to somebody else since is not ours. The started process writes the file itself before it becomes the server, so no
kill of the starter, however timed, leaves a server that nobody knows of.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.settings import environment
from replicator.errors import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Event

    from infra.local.accounts import Account

# $0 is the pid file. The shell ends at once, so the server is nobody's child here and leaves no zombie behind.
_LAUNCH = '( read -r line </proc/self/stat && echo "$line" >"$0" && exec "$@" ) &'


@dataclass(frozen=True)
class Process:
    """A server's process, known by the files ``pid`` and ``log`` of its folder."""

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        """Everything the server wrote to stdout and stderr, over all its starts."""
        return self.folder / "log"

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def start(
        self, command: Sequence[str | Path], account: Account | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """Start *command* in a session of its own, as *account* (default: as we are), in the server's folder."""
        self._pid_file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            subprocess.run(
                ["/bin/sh", "-c", _LAUNCH, self._pid_file, *command],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment(env or {}),
                start_new_session=True,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else [],
            )
        patience = time.monotonic() + 5
        while not self._recorded() and time.monotonic() < patience:
            time.sleep(0.005)

    def pid(self) -> int | None:
        """The process id while the very process that was started is alive; a zombie is dead."""
        pid, born = self._recorded() or (0, "")
        return pid if pid and birth(pid) == born else None

    def wait(self, ready: Callable[[], bool], cancelled: Event, seconds: float = 90) -> None:
        """Return when *ready* says so; Unreachable, with the end of the log, if the process ends or takes too long."""
        patience = time.monotonic() + seconds
        while self.pid() is not None:
            if cancelled.is_set():
                raise Unreachable(f"{self.name} was not waited for: another service failed, or an interruption.")
            with suppress(OSError):
                if ready():
                    return
            if time.monotonic() > patience:
                raise Unreachable(f"{self.name} is not ready after {seconds:.0f} s.{self._tail()}", where=str(self.log))
            time.sleep(0.05)
        raise Unreachable(f"{self.name} ended before it was ready.{self._tail()}", where=str(self.log))

    def stop(self, with_signal: signal.Signals = signal.SIGTERM, seconds: float = 20) -> None:
        """Ask the process to end; after *seconds* kill its group. Return when it is gone.

        It is asked every second: one that is just starting may not listen to signals yet.
        """
        pid = self.pid()
        if pid is not None:
            patience = time.monotonic() + seconds
            while self.pid() is not None and time.monotonic() < patience:
                with suppress(ProcessLookupError):
                    os.kill(pid, with_signal)
                self._gone(1)
            if self.pid() is not None:
                with suppress(ProcessLookupError):
                    os.killpg(os.getpgid(pid), signal.SIGKILL)
                self._gone(seconds)
        self._pid_file.unlink(missing_ok=True)

    def memory(self) -> int:
        """Memory in bytes of the process and its descendants, each shared page counted by its share."""
        pid = self.pid()
        return 0 if pid is None else sum(_share(one) for one in family(pid))

    def _gone(self, seconds: float) -> bool:
        patience = time.monotonic() + seconds
        while self.pid() is not None:
            if time.monotonic() > patience:
                return False
            time.sleep(0.05)
        return True

    def _recorded(self) -> tuple[int, str] | None:
        """Process id and start time as the process wrote them, once the line is whole."""
        with suppress(OSError):
            line = self._pid_file.read_text(encoding="utf-8", errors="replace")
            if line.endswith("\n"):
                return int(line.split()[0]), _fields(line)[19]
        return None

    def _tail(self, lines: int = 15) -> str:
        with suppress(OSError):
            told = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
            return "\n" + "\n".join(f"  | {line}" for line in told) + "\n"
        return ""


def birth(pid: int) -> str | None:
    """When the kernel started a process, in ticks since boot; None when there is none or it is a zombie."""
    with suppress(OSError):
        fields = _fields(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
        return None if fields[0] in "ZX" else fields[19]
    return None


def identity(pid: int) -> str:
    """A name for a process that no later one will have; it says so when there is no such process."""
    return f"{pid} born {birth(pid)}"


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int(_fields((folder / "stat").read_text(errors="replace"))[1])
    found = [pid]
    for member in found:  # grows while it is walked
        found.extend(child for child, parent in parents.items() if parent == member)
    return found


def _fields(line: str) -> list[str]:
    """The fields of a ``/proc/PID/stat`` line after the command's name, which may hold anything: the state first."""
    return line.rsplit(")", 1)[1].split()


def _share(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
