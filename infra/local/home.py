"""The folder of one stack: a folder per service, the ports it keeps, and a lock so that one starter works at a time."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from infra.local.accounts import Account, reachable, stand_in_for
from infra.local.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORTS = range(20000, 32000)  # below the range from which the kernel takes the ports of clients


class Home:
    """State of one stack on disk. Two homes have nothing in common but the cache of downloads."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._state = self.path / "ports.json"

    def folder(self, service: str, account: Account | None = None) -> Path:
        """The service's folder, created, owned by *account*; a link to a stand-in where *account* cannot enter."""
        inside = self.path / service
        folder = inside.resolve() if inside.is_symlink() else reachable(self.path, account) / service
        folder.mkdir(parents=True, exist_ok=True)
        if account is not None:
            os.chown(folder, account.uid, account.gid)
        if folder != inside and not inside.is_symlink():
            inside.symlink_to(folder)
        return folder

    def process(self, service: str) -> Process:
        """The service's process, whether it runs or not."""
        return Process(service, (self.path / service).resolve())  # its user may not come in by the link

    def port(self, name: str) -> int:
        """The port that belongs to *name* in this home, chosen at first use."""
        ports = self._ports()
        if name not in ports:
            self._keep({**ports, name: _free_port(set(ports.values()))})
        return self._ports()[name]

    def renew_port(self, name: str) -> None:
        """Choose another port for *name* if a stranger listens on its own; call it only while the service is down."""
        ports = self._ports()
        if name in ports and not _is_free(ports[name]):
            self._keep({**ports, name: _free_port(set(ports.values()))})

    def delete(self) -> None:
        """Remove the home and its stand-in. The services must be down."""
        for folder in (stand_in_for(self.path), self.path):
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait for the other starter or stopper of this home; the kernel ends the wait when that one dies."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _ports(self) -> dict[str, int]:
        with suppress(FileNotFoundError):
            return dict(json.loads(self._state.read_text(encoding="utf-8")))
        return {}

    def _keep(self, ports: dict[str, int]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        new = self._state.with_suffix(".new")
        new.write_text(json.dumps(ports, indent=1) + "\n", encoding="utf-8")
        new.replace(self._state)


def _free_port(taken: set[int]) -> int:
    candidates = [port for port in PORTS if port not in taken]
    random.shuffle(candidates)  # two homes that start together should not try the same ones
    return next(port for port in candidates if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
