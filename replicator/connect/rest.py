"""The REST interface of Kafka Connect, as far as one connector's life needs it.

Apply, watch, stop, forget. Applying is idempotent and validates first, because only the validation says what is wrong:
a refused ``PUT .../config`` may answer HTTP 500 with nothing in it. Offsets outlive a deleted connector: the same name
goes on without a snapshot unless its offsets are deleted too.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import urllib3

from replicator.errors import ConfigError, ConnectorFailed, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_FOUND, _CONFLICT = 404, 409
_POLL_SECONDS, _SETTLE_SECONDS = 0.2, 1.0
_TRACE_LINES, _TRACE_WIDTH = 4, 300


@dataclass(frozen=True)
class Status:
    """What Connect says of one connector; RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED or RESTARTING.

    ``tasks`` is empty while none is assigned. ``trace`` is the shortened stack trace of the first failure, else empty.
    For some seconds after a worker died its tasks still show RUNNING.
    """

    connector: str
    tasks: tuple[str, ...]
    trace: str = ""

    @property
    def failed(self) -> bool:
        """The connector or one of its tasks has failed: it stays so until someone restarts it."""
        return "FAILED" in (self.connector, *self.tasks)

    @property
    def running(self) -> bool:
        """The connector and at least one task run, and nothing else is the case."""
        return bool(self.tasks) and {self.connector, *self.tasks} == {"RUNNING"}


class Connect:
    """One Kafka Connect cluster.

    Every method raises Unreachable when nobody answers at ``url`` in time, and waits while the workers rebalance
    (HTTP 409), at most ``patience`` seconds.
    """

    def __init__(self, url: str, *, timeout: float = 30.0, patience: float = 30.0) -> None:
        self._url = url.rstrip("/")
        self._patience = patience
        self._http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=5.0, read=timeout), retries=False)

    def list(self) -> tuple[str, ...]:
        """Names of all connectors, sorted."""
        return tuple(sorted(self._json(self._call("GET", "/connectors"))))

    def apply(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector or give it this configuration; the same configuration again changes nothing.

        Raises ConfigError, one line per property, when the plugin refuses it; a database that the connector cannot log
        in to is refused in the same way. It starts in the background: see :meth:`wait_running`.
        """
        self._validate(name, config)
        self._call("PUT", f"/connectors/{_path(name)}/config", dict(config))

    def status(self, name: str) -> Status | None:
        """The connector's state; None when Connect does not know it, or not yet, right after :meth:`apply`."""
        response = self._call("GET", f"/connectors/{_path(name)}/status", may_miss=True)
        if response.status == _NOT_FOUND:
            return None
        told = self._json(response)
        parts = [told["connector"], *told["tasks"]]
        trace = next((part["trace"] for part in parts if part["state"] == "FAILED" and part.get("trace")), "")
        return Status(told["connector"]["state"], tuple(task["state"] for task in told["tasks"]), shorten(trace))

    def wait_running(self, name: str, seconds: float = 60.0) -> Status:
        """Wait until connector and tasks run, and do so for a second: the first answers may be of the state before.

        A task that fails at once shows RUNNING for a moment, one whose cure was just applied still shows FAILED.
        Raises ConnectorFailed when something is FAILED for a second, Unreachable after ``seconds``.
        """
        deadline = time.monotonic() + seconds
        before: Status | None = None
        since = time.monotonic()
        while True:
            status = self.status(name)
            if status != before:
                before, since = status, time.monotonic()
            settled = time.monotonic() - since >= _SETTLE_SECONDS
            if settled and status is not None and status.running:
                return status
            if settled and status is not None and status.failed:
                mend = "Mend the cause, then restart it."
                raise ConnectorFailed(f"connector {name} failed: {status.trace}", where=self._url, mend=mend)
            if time.monotonic() > deadline:
                mend = "The log of Kafka Connect says what it waits for."
                raise Unreachable(f"connector {name} does not run after {seconds:.0f} s", where=self._url, mend=mend)
            time.sleep(_POLL_SECONDS)

    def restart(self, name: str) -> None:
        """Restart what has FAILED of the connector, in the background; what runs goes on undisturbed.

        Raises ConfigError when there is no such connector.
        """
        self._call("POST", f"/connectors/{_path(name)}/restart?includeTasks=true&onlyFailed=true")

    def stop(self, name: str, seconds: float = 60.0) -> None:
        """Stop the connector and wait until it has no tasks; it stays known, with its offsets.

        Raises ConfigError when there is no such connector, Unreachable when it does not stop in time.
        """
        self._call("PUT", f"/connectors/{_path(name)}/stop")
        deadline = time.monotonic() + seconds
        while (status := self.status(name)) is not None and (status.connector != "STOPPED" or status.tasks):
            if time.monotonic() > deadline:
                raise Unreachable(f"connector {name} does not stop in {seconds:.0f} s", where=self._url)
            time.sleep(_POLL_SECONDS)

    def delete(self, name: str) -> None:
        """Remove the connector and keep its offsets: the same name later goes on where it was. Absent is fine."""
        self._call("DELETE", f"/connectors/{_path(name)}", may_miss=True)

    def forget(self, name: str) -> None:
        """Stop the connector, delete its offsets and itself: the same name later starts afresh. Absent is fine.

        Topics, schema history and replication slots stay where they are.
        """
        if name in self.list():
            self.stop(name)
            self._call("DELETE", f"/connectors/{_path(name)}/offsets")
            self.delete(name)

    def _validate(self, name: str, config: Mapping[str, str]) -> None:
        plugin = config.get("connector.class", "")
        installed = sorted(item["class"] for item in self._json(self._call("GET", "/connector-plugins")))
        if plugin not in installed:  # asked first: the validation would answer HTTP 500
            raise ConfigError(
                f"connector {name}: Kafka Connect has no plugin with connector.class {plugin!r}",
                where=self._url,
                mend=f"It has: {', '.join(installed)}.",
            )
        body = {**config, "name": name}
        told = self._json(self._call("PUT", f"/connector-plugins/{_path(plugin)}/config/validate", body))
        errors = [
            f"{item['value']['name']}: {error}" for item in told["configs"] for error in item["value"].get("errors", ())
        ]
        if errors:
            raise ConfigError(f"connector {name} is refused: " + "; ".join(errors), where=self._url)

    def _json(self, response: urllib3.BaseHTTPResponse) -> Any:
        try:
            return response.json()
        except ValueError as error:
            raise ConfigError("what answers here is not Kafka Connect: no JSON", where=self._url) from error

    def _call(
        self, method: str, path: str, body: Mapping[str, str] | None = None, *, may_miss: bool = False
    ) -> urllib3.BaseHTTPResponse:
        deadline = time.monotonic() + self._patience
        while True:
            response = self._send(method, path, body)
            rebalancing = response.status == _CONFLICT
            if rebalancing and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                continue
            if response.status < 400 or (may_miss and response.status == _NOT_FOUND):
                return response
            raise self._refusal(method, path, response)

    def _send(self, method: str, path: str, body: Mapping[str, str] | None) -> urllib3.BaseHTTPResponse:
        try:
            return self._http.request(method, self._url + path, json=body)
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(
                "Kafka Connect does not answer", where=self._url, mend="Is it started, and is this its address?"
            ) from error

    def _refusal(self, method: str, path: str, response: urllib3.BaseHTTPResponse) -> ConfigError | Unreachable:
        what = f"Kafka Connect answers {response.status} to {method} {path}: {_message(response)}"
        if response.status == _CONFLICT or response.status >= 500:
            return Unreachable(what, where=self._url, mend="Try again; its log says more.")
        return ConfigError(what, where=self._url)


def shorten(trace: str) -> str:
    """A Java stack trace as one line: the outermost and the innermost causes, no frames."""
    lines = [line.strip().removeprefix("Caused by: ") for line in trace.splitlines()]
    causes = list(dict.fromkeys(line[:_TRACE_WIDTH] for line in lines if line and not line.startswith(("at ", "... "))))
    kept = causes if len(causes) <= _TRACE_LINES else [causes[0], *causes[1 - _TRACE_LINES :]]
    return " <- ".join(kept)


def _path(name: str) -> str:
    return quote(name, safe="")


def _message(response: urllib3.BaseHTTPResponse) -> str:
    try:
        told: Any = json.loads(response.data)
    except ValueError:
        return "(no JSON)"
    return str(told.get("message", "")) if isinstance(told, dict) else ""
