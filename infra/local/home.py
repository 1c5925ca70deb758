"""The folder of one stack: a folder per service, the ports it keeps, and a lock so that one starter works at a time."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from infra.local.accounts import Account, reachable, stand_in_for
from infra.local.processes import Process
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PORTS = range(20000, 32000)  # below the range from which the kernel takes the ports of clients


class Home:
    """State of one stack on disk. Two homes have nothing in common but the cache of downloads."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._ports = self.path / "ports.json"
        self._owners = self.path / "owners.json"

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
        ports = self._read(self._ports)
        if name not in ports:
            ports[name] = _free_port(set(ports.values()))
            self._write(self._ports, ports)
        return int(ports[name])

    def renew_port(self, name: str) -> None:
        """Choose another port for *name* if a stranger listens on its own; call it only while the service is down."""
        ports = self._read(self._ports)
        if name in ports and not _is_free(ports[name]):
            self._write(self._ports, {**ports, name: _free_port(set(ports.values()))})

    def own(self, services: Iterable[str], owner: str | None) -> None:
        """Remember on whose behalf *services* are started; None: nobody's, they stay until they are stopped."""
        self._write(self._owners, {**self._read(self._owners), **dict.fromkeys(services, owner)})

    def owned_by(self, owner: str) -> list[str]:
        """The services that were last started on behalf of *owner*."""
        return [service for service, its_owner in self._read(self._owners).items() if its_owner == owner]

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

    def _read(self, file: Path) -> dict[str, Any]:
        """What is remembered. Raises ConfigError for what is none, as behind a power cut."""
        try:
            return dict(json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError) as error:
            fix = "Stop what runs (`make stack-down`), then remove it: all is chosen anew."
            raise ConfigError("a file of the stack's is no JSON", where=str(file), fix=fix) from error

    def _write(self, file: Path, values: dict[str, Any]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        new.replace(file)


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
