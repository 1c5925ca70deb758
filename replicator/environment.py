"""The environment variables of the process. The only module that reads them; light, since it is imported
before others.
"""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping
from contextlib import suppress

from replicator.errors import ConfigError

_UTF8_LOCALE = "C.UTF-8"
_LOCALHOST = ("localhost", "127.0.0.1", "::1")


def variables() -> Mapping[str, str]:
    """Return all variables."""
    return os.environ  # noqa: TID251 - this module is where the environment is read


def variable(name: str) -> str | None:
    """Return one variable; None if it is unset or empty."""
    return variables().get(name) or None


def failpoint(environment: Mapping[str, str] | None = None) -> str | None:
    """Return what ``$REPLICATOR_FAILPOINT`` arms (``replicator/failpoints.py``); None if it is unset or empty.

    Raises ConfigError unless ``$REPLICATOR_FAILPOINTS_ALLOWED`` is ``yes``: no production system has both by accident.
    """
    available = variables() if environment is None else environment
    armed = available.get("REPLICATOR_FAILPOINT") or None
    if armed is not None and available.get("REPLICATOR_FAILPOINTS_ALLOWED") != "yes":
        raise ConfigError(
            "REPLICATOR_FAILPOINT is set, which crashes a run on purpose, but failpoints are not allowed",
            fix="Unset it. For crash tests, set REPLICATOR_FAILPOINTS_ALLOWED=yes as well.",
        )
    return armed


def set_variables(values: Mapping[str, str]) -> None:
    """Set variables for child processes (the JVM, Python workers)."""
    os.environ.update(values)  # noqa: TID251 - as above


def set_defaults(values: Mapping[str, str]) -> None:
    """As :func:`set_variables`, only for variables that the user has not set."""
    set_variables({name: value for name, value in values.items() if not variable(name)})


def ensure_utf8_locale(in_locale: str = _UTF8_LOCALE) -> None:
    """Let child processes encode every character of a path in the locale C, too, as this process does: a JVM would
    replace non-ASCII characters by ``?`` and write to another place. On an old system without *in_locale*, nothing
    changes.
    """
    before = locale.setlocale(locale.LC_CTYPE)
    if before in ("C", "POSIX"):
        with suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, in_locale)
            set_variables({"LC_ALL": in_locale})
        locale.setlocale(locale.LC_CTYPE, before)


def bypass_proxy_for_localhost() -> None:
    """Let HTTP clients, here and in child processes, use no proxy for this machine: a proxy for the Internet cannot
    reach it, and not every client makes that exception by itself (botocore, Rust's reqwest do not).
    """
    exceptions = variable("no_proxy") or variable("NO_PROXY") or ""
    hosts = [host.strip() for host in exceptions.split(",") if host.strip()]
    every = exceptions if exceptions == "*" else ",".join(dict.fromkeys([*hosts, *_LOCALHOST]))
    set_variables({"no_proxy": every, "NO_PROXY": every})
