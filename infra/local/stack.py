"""The stack as one thing: up, down, status, endpoints."""

from __future__ import annotations

import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Protocol

from infra.local.connect import Connect
from infra.local.endpoints import Database, Endpoints, ObjectStore
from infra.local.home import Home
from infra.local.kafka import Kafka
from infra.local.mariadb import MariaDB
from infra.local.parts import Parts
from infra.local.postgres import Postgres
from infra.local.processes import identity
from infra.local.s3 import S3
from infra.local.settings import Login, read_settings
from replicator import environment
from replicator.settings import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SERVICES = ("kafka", "connect", "mariadb", "postgres", "s3")
STOP_ORDER = ("connect", "kafka", "mariadb", "postgres", "s3")
# PostgreSQL waits for its replication clients on SIGTERM; on SIGINT it closes them.
STOP_SIGNAL = {"postgres": signal.SIGINT}
REPOSITORY = Path(__file__).resolve().parents[2]


class Service(Protocol):
    """One server: how it starts, when it is ready, and what it needs once it is."""

    name: str
    sections: tuple[str, ...]  # of stack.lock.json
    ports: tuple[str, ...]

    def start(self, parts: Parts) -> None:
        """Start the process; data folders are made at the first start."""

    def ready(self) -> bool:
        """Whether it serves. False or OSError while it does not."""

    def finish(self) -> None:
        """Make what clients expect to find: roles, a bucket. Harmless at every further start."""


@dataclass(frozen=True)
class Status:
    """A service as it is now."""

    name: str
    pid: int | None  # None: down
    port: int
    memory_mb: int
    log: Path


class Stack:
    """Servers that belong to one folder. Starting what is up and stopping what is down does nothing."""

    def __init__(self, home: Path, cache: Path | None = None) -> None:
        self._home = Home(home)
        self._settings = read_settings()
        self._parts = Parts(cache or cache_dir())

    def up(
        self,
        services: Iterable[str] = SERVICES,
        *,
        owner: int | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Endpoints:
        """Start *services* (Connect brings Kafka) and return when all are ready; *tell* hears of each.

        With *owner*, a process id, whatever this call starts stops when that process ends, killed or not. If one
        service fails or the call is interrupted, what it started is stopped again.

        Raises Unreachable with the end of the failed service's log, JarsMissing, JavaUnsuitable.
        """
        environment.bypass_proxy_for_localhost()
        environment.ensure_utf8_locale()
        with self._home.alone():
            starting = [self._service(name) for name in _with_needs(services) if self._down_now(name)]
            self._fetch(starting)
            self._choose_ports(starting)
            self._watch(owner, [service.name for service in starting])
            try:
                self._start_all(starting, tell)
            except BaseException:
                self._stop(service.name for service in starting)
                raise
        return self.endpoints()

    def fetch(self, services: Iterable[str] = SERVICES) -> None:
        """Bring what *services* are made of into the cache."""
        self._fetch([self._service(name) for name in _with_needs(services)])

    def down(self, services: Iterable[str] = SERVICES, *, tell: Callable[[str], None] = lambda _: None) -> None:
        """Stop *services*, and the watchdogs when all of them are meant."""
        wanted = set(services)
        with self._home.alone():
            if wanted == set(SERVICES):
                for folder in self._home.path.glob("watchdog-*"):
                    self._home.process(folder.name).stop()
            self._stop(wanted, tell)

    def delete(self) -> None:
        """Stop everything and remove the data."""
        self.down()
        self._home.delete()

    def status(self) -> list[Status]:
        """Every service as it is now."""
        found = []
        for name in SERVICES:
            process = self._home.process(name)
            found.append(Status(name, process.pid(), self._home.port(name), process.memory() >> 20, process.log))
        return found

    def endpoints(self) -> Endpoints:
        """Where the services answer, or will."""
        own, port = self._settings, self._home.port
        return Endpoints(
            kafka=f"127.0.0.1:{port('kafka')}",
            connect=f"http://127.0.0.1:{port('connect')}",
            mariadb=_database(port("mariadb"), own.mariadb_root, ""),
            mariadb_connector=_database(port("mariadb"), own.mariadb_connector, ""),
            postgres=_database(port("postgres"), own.postgres_target, own.postgres_database),
            postgres_admin=_database(port("postgres"), own.postgres_admin, own.postgres_database),
            postgres_source=_database(port("postgres"), own.postgres_source, own.postgres_source_database),
            s3=ObjectStore(
                f"http://127.0.0.1:{port('s3')}", own.s3.user, own.s3.password, own.s3_region, own.s3_bucket
            ),
        )

    def stop_those_of(self, owner: str) -> None:
        """Stop what was last started on behalf of *owner*, named as `processes.identity` does. For the watchdog."""
        with self._home.alone():
            self._stop(self._home.owned_by(owner))

    def _service(self, name: str) -> Service:
        services: dict[str, Callable[[], Service]] = {
            "kafka": lambda: Kafka(self._home),
            "connect": lambda: Connect(self._home, self.endpoints().logins()),
            "mariadb": lambda: MariaDB(self._home, self._settings),
            "postgres": lambda: Postgres(self._home, self._settings),
            "s3": lambda: S3(self._home, self._settings),
        }
        return services[name]()

    def _down_now(self, name: str) -> bool:
        return self._home.process(name).pid() is None

    def _fetch(self, services: Iterable[Service]) -> None:
        self._parts.fetch({section for service in services for section in service.sections})

    def _choose_ports(self, services: Iterable[Service]) -> None:
        for service in services:
            for name in service.ports:
                self._home.port(name)
                self._home.renew_port(name)

    def _start_all(self, services: Sequence[Service], tell: Callable[[str], None]) -> None:
        """All at once; the first failure ends the waiting for the others and is the one that is raised."""
        cancelled = Event()

        def start(service: Service) -> None:
            began = time.monotonic()
            service.start(self._parts)
            self._home.process(service.name).wait(service.ready, cancelled)
            service.finish()
            where = f"127.0.0.1:{self._home.port(service.name)}"
            tell(f"{service.name:8} ready on {where} after {time.monotonic() - began:.1f} s")

        with ThreadPoolExecutor(len(SERVICES)) as pool:
            try:
                for started in as_completed([pool.submit(start, service) for service in services]):
                    started.result()
            except BaseException:
                cancelled.set()
                raise

    def _stop(self, services: Iterable[str], tell: Callable[[str], None] = lambda _: None) -> None:
        wanted = set(services)
        for name in STOP_ORDER:
            if name in wanted and not self._down_now(name):
                self._home.process(name).stop(STOP_SIGNAL.get(name, signal.SIGTERM))
                tell(f"{name:8} stopped")

    def _watch(self, owner: int | None, services: Sequence[str]) -> None:
        """Before they start: say whose *services* are, and have a process wait for the end of that owner."""
        known = None if owner is None else identity(owner)
        self._home.own(services, known)
        watchdog = self._home.process(f"watchdog-{owner}")
        if known is not None and services and watchdog.pid() is None:
            self._home.folder(watchdog.name)
            command = [sys.executable, "-m", "infra.local.watchdog", str(self._home.path), str(owner), known]
            watchdog.start(command, env={"PYTHONPATH": str(REPOSITORY)})


def _with_needs(services: Iterable[str]) -> list[str]:
    wanted = set(services)
    return [name for name in SERVICES if name in wanted or (name == "kafka" and "connect" in wanted)]


def _database(port: int, login: Login, database: str) -> Database:
    return Database("127.0.0.1", port, login.user, login.password, database)
