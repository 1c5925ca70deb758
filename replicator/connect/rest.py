"""The part of Kafka Connect's REST interface that manages connectors.

List, validate, apply, watch, pause, stop, forget. Applying is idempotent and validates first, because only validation
reports what is wrong: a refused ``PUT .../config`` may answer HTTP 500 without a message. Offsets outlive a deleted
connector: one of the same name resumes without a snapshot unless its offsets are deleted, too.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import urllib3

from replicator.connect import responses
from replicator.connect.responses import ConnectorInfo, Offset, Plugin, Status
from replicator.connect.validation import Finding, parse_findings
from replicator.errors import ConfigError, ConnectorFailed, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Answer = TypeVar("Answer")

_REDIRECTED, _NOT_FOUND, _CONFLICT = 300, 404, 409
_NO_LOGIN, _NOT_ALLOWED = 401, 403
_POLL_SECONDS, _SETTLE_SECONDS = 0.2, 2.0
_CONNECT_SECONDS = 5.0
_VALIDATION_SECONDS = 95.0  # a plugin waits a minute for its database, and Connect another half minute for the plugin


class Connect:
    """One Kafka Connect cluster.

    Every method raises Unreachable if nothing answers at ``url`` in time, ConfigError if it requires another login than
    ``login`` (user and password of HTTP basic authentication) or its certificate is not trusted by the system or by
    ``SSL_CERT_FILE``, and waits while the workers rebalance (HTTP 409), at most ``patience`` seconds.
    """

    def __init__(
        self, url: str, *, login: tuple[str, str] | None = None, timeout: float = 30.0, patience: float = 30.0
    ) -> None:
        self._url = url.rstrip("/")
        self._patience, self._timeout = patience, timeout
        self._http = urllib3.PoolManager(retries=False, headers=None if login is None else _basic_auth(*login))

    def list(self) -> tuple[str, ...]:
        """Return the names of all connectors, sorted."""
        return self._parsed(self._call("GET", "/connectors"), responses.parse_names)

    def plugins(self) -> tuple[Plugin, ...]:
        """Return every connector class installed on the workers, by name."""
        return self._parsed(self._call("GET", "/connector-plugins"), responses.parse_plugins)

    def known(self) -> dict[str, ConnectorInfo]:
        """Return every connector with its configuration and status, by name."""
        return self._parsed(self._call("GET", "/connectors?expand=info&expand=status"), responses.parse_connectors)

    def apply(self, name: str, config: Mapping[str, str]) -> tuple[Finding, ...]:
        """Create the connector or update its configuration; repeating the same configuration changes nothing. Returns
        findings about keys that have no effect.

        Raises ConfigError, one item per property, if the plugin refuses the configuration; a failed login to the
        database is refused in the same way. The connector starts in the background: see :meth:`wait_running`.
        """
        found = self.validate(name, config)
        refused = [f"{each.key}: {each.what}" for each in found if each.refused]
        if refused:
            raise ConfigError(f"connector {name} was refused: " + "; ".join(refused), where=self._url)
        # Connect validates it again
        self._call("PUT", f"/connectors/{_path(name)}/config", dict(config), seconds=_VALIDATION_SECONDS)
        return found

    def validate(self, name: str, config: Mapping[str, str]) -> tuple[Finding, ...]:
        """Return the plugin's findings about a configuration; the connector need not exist, and is not created.

        A plugin that supports it tries to log in to its database. Raises ConfigError if no worker has the plugin.
        """
        plugin = config.get("connector.class", "")
        installed = [each.name for each in self.plugins()]
        if plugin not in installed:  # checked first: the validation would answer HTTP 500
            raise ConfigError(
                f"connector {name}: Kafka Connect has no plugin with connector.class {plugin!r}",
                where=self._url,
                fix=f"Installed plugins: {', '.join(installed)}.",
            )
        body = {**config, "name": name}
        path = f"/connector-plugins/{_path(plugin)}/config/validate"
        response = self._call("PUT", path, body, seconds=_VALIDATION_SECONDS)
        return self._parsed(response, lambda answer: tuple(parse_findings(answer, body)))

    def status(self, name: str) -> Status | None:
        """Return the connector's status; None if Connect does not know it, or does not know it yet, right after
        :meth:`apply`.
        """
        response = self._call("GET", f"/connectors/{_path(name)}/status", may_miss=True)
        if response.status == _NOT_FOUND:
            return None
        return self._parsed(response, responses.parse_status)

    def wait_running(self, name: str, seconds: float = 60.0) -> Status:
        """Wait until connector and tasks have been running for two seconds: the first answers may be of the previous
        state.

        A task that fails at once shows RUNNING for a moment; one whose cause was just fixed still shows FAILED. Raises
        ConnectorFailed if something has been FAILED for as long, Unreachable after ``seconds``.
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
                fix = "Fix the cause, then restart it."
                raise ConnectorFailed(f"connector {name} failed: {status.trace}", where=self._url, fix=fix)
            if time.monotonic() > deadline:
                fix = "The log of Kafka Connect shows what it is waiting for."
                raise Unreachable(f"connector {name} is not running after {seconds:.0f} s", where=self._url, fix=fix)
            time.sleep(_POLL_SECONDS)

    def pause(self, name: str) -> None:
        """Pause the connector; its tasks stay in place, and resources at the source, such as a slot, stay allocated.

        Raises ConfigError if there is no such connector.
        """
        self._call("PUT", f"/connectors/{_path(name)}/pause")

    def resume(self, name: str) -> None:
        """Resume a paused or stopped connector. Raises ConfigError if there is no such connector."""
        self._call("PUT", f"/connectors/{_path(name)}/resume")

    def restart(self, name: str, *, only_failed: bool = True) -> None:
        """Restart the FAILED parts of the connector, in the background, without disturbing the running ones; or all
        parts.

        Raises ConfigError if there is no such connector.
        """
        which = "true" if only_failed else "false"
        self._call("POST", f"/connectors/{_path(name)}/restart?includeTasks=true&onlyFailed={which}")

    def stop(self, name: str, seconds: float = 60.0) -> None:
        """Stop the connector and wait until it has no tasks; it stays registered, with its offsets.

        Raises ConfigError if there is no such connector, Unreachable if it does not stop in time.
        """
        self._call("PUT", f"/connectors/{_path(name)}/stop")
        self._wait(lambda: self._is_at_rest(name), f"connector {name} did not stop", seconds)

    def delete(self, name: str, seconds: float = 60.0) -> None:
        """Delete the connector and keep its offsets: one of the same name later resumes where it was. A missing one is
        no error.

        Returns once Connect has no status of it anymore, which Connect itself does not wait for: until then its tasks
        may still run and occupy the slot, and a new connector of the name would show their state. Raises Unreachable
        after ``seconds``.
        """
        self._call("DELETE", f"/connectors/{_path(name)}", may_miss=True)
        self._wait(lambda: self.status(name) is None, f"connector {name} was deleted but did not end", seconds)

    def offsets(self, name: str) -> tuple[Offset, ...]:
        """Return the connector's positions; empty before its first record was sent.

        Raises ConfigError if there is no such connector.
        """
        return self._parsed(self._call("GET", f"/connectors/{_path(name)}/offsets"), responses.parse_offsets)

    def reset_offsets(self, name: str) -> None:
        """Delete the offsets of a stopped connector: once resumed, it starts from the beginning.

        Raises ConfigError if there is no such connector, or if it is not stopped.
        """
        status = self.status(name)
        if status is not None and status.connector != "STOPPED":
            what = f"connector {name} is {status.connector}: offsets can be reset only while it is stopped"
            raise ConfigError(what, where=self._url, fix=f"Stop it first: `replicator connect stop {name}`.")
        self._call("DELETE", f"/connectors/{_path(name)}/offsets")

    def forget(self, name: str) -> None:
        """Stop the connector, delete its offsets and the connector itself: one of the same name later starts from the
        beginning. A missing one is no error.

        Topics, schema history and replication slots remain.
        """
        if name in self.list():
            self.stop(name)
            self._call("DELETE", f"/connectors/{_path(name)}/offsets")
            self.delete(name)

    def _is_at_rest(self, name: str) -> bool:
        """Whether a connector is stopped and has no tasks, or does not exist."""
        status = self.status(name)
        return status is None or (status.connector == "STOPPED" and not status.tasks)

    def _wait(self, happened: Callable[[], bool], otherwise: str, seconds: float) -> None:
        """Wait until ``happened`` returns true. Raises Unreachable with the text ``otherwise`` if that takes longer
        than ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > deadline:
                raise Unreachable(f"{otherwise} within {seconds:.0f} s", where=self._url)
            time.sleep(_POLL_SECONDS)

    def _parsed(self, response: urllib3.BaseHTTPResponse, parse: Callable[[Any], Answer]) -> Answer:
        wrong = "the server at this address is not Kafka Connect: its response is"
        try:
            answer = response.json()
        except ValueError as error:
            raise ConfigError(f"{wrong} not JSON", where=self._url) from error
        try:
            return parse(answer)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ConfigError(f"{wrong} JSON of another form", where=self._url) from error

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, str] | None = None,
        *,
        may_miss: bool = False,
        seconds: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        deadline = time.monotonic() + self._patience
        while True:
            response = self._send(method, path, body, seconds or self._timeout)
            rebalancing = response.status == _CONFLICT
            if rebalancing and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
                continue
            if response.status < _REDIRECTED or (may_miss and response.status == _NOT_FOUND):
                return response
            raise self._refusal(method, path, response)

    def _send(self, method: str, path: str, body: Mapping[str, str] | None, seconds: float) -> urllib3.BaseHTTPResponse:
        try:
            timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=seconds)
            return self._http.request(method, self._url + path, json=body, timeout=timeout)
        except urllib3.exceptions.HTTPError as error:
            [*_, cause] = error.args or (error,)
            if isinstance(cause, ssl.SSLCertVerificationError):
                fix = "Set SSL_CERT_FILE to a file with the CA certificate that signed it."
                what = f"the certificate of Kafka Connect is not trusted: {cause.verify_message}"
                raise ConfigError(what, where=self._url, fix=fix) from error
            raise Unreachable(
                "Kafka Connect does not answer",
                where=self._url,
                fix="Check that it is running and that this is its address.",
            ) from error

    def _refusal(self, method: str, path: str, response: urllib3.BaseHTTPResponse) -> ConfigError | Unreachable:
        if response.status in (_NO_LOGIN, _NOT_ALLOWED):
            what = f"Kafka Connect returned {response.status} for {method} {path}: login refused"
            return ConfigError(what, where=self._url, fix="Set connect.user and connect.password.")
        what = f"Kafka Connect returned {response.status} for {method} {path}: {_message(response)}"
        if response.status == _CONFLICT or response.status >= 500:
            return Unreachable(what, where=self._url, fix="Try again; its log has details.")
        return ConfigError(what, where=self._url)


def _basic_auth(user: str, password: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def _path(name: str) -> str:
    return quote(name, safe="")


def _message(response: urllib3.BaseHTTPResponse) -> str:
    try:
        answer: Any = json.loads(response.data)
    except ValueError:
        return "(no JSON)"
    return str(answer.get("message", "")) if isinstance(answer, dict) else ""
