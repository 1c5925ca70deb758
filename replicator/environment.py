"""The variables of the process: the only module that looks at them, and light, since it is asked before all others."""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping
from contextlib import suppress

from replicator.errors import ConfigError

_UTF8_LOCALE = "C.UTF-8"
_LOCALHOST = ("localhost", "127.0.0.1", "::1")


def variables() -> Mapping[str, str]:
    """All of them."""
    return os.environ  # noqa: TID251 - this module is where the environment is read


def variable(name: str) -> str | None:
    """One of them; None when it is not set or empty."""
    return variables().get(name) or None


def failpoint(environment: Mapping[str, str] | None = None) -> str | None:
    """What ``$REPLICATOR_FAILPOINT`` arms (``replicator/failpoints.py``); None where it is not set or empty.

    Raises ConfigError unless ``$REPLICATOR_FAILPOINTS_ALLOWED`` is ``yes``: no production has both by accident.
    """
    given = variables() if environment is None else environment
    wanted = given.get("REPLICATOR_FAILPOINT") or None
    if wanted is not None and given.get("REPLICATOR_FAILPOINTS_ALLOWED") != "yes":
        raise ConfigError(
            "REPLICATOR_FAILPOINT is set, which makes a run die on purpose, and nobody has allowed it",
            mend="Unset it. For a test of crashes set REPLICATOR_FAILPOINTS_ALLOWED=yes as well.",
        )
    return wanted


def set_variables(values: Mapping[str, str]) -> None:
    """Give child processes (the JVM, Python workers) these variables."""
    os.environ.update(values)  # noqa: TID251 - as above


def set_defaults(values: Mapping[str, str]) -> None:
    """The same, for variables that the user has not set."""
    set_variables({name: value for name, value in values.items() if not variable(name)})


def ensure_utf8_locale(in_locale: str = _UTF8_LOCALE) -> None:
    """Child processes know every letter of a path in the locale C, too, as this one does: a JVM would read ``?`` for
    what ASCII has not, and write to another place. On an old system without *in_locale* all is left as it is.
    """
    before = locale.setlocale(locale.LC_CTYPE)
    if before in ("C", "POSIX"):
        with suppress(locale.Error):
            locale.setlocale(locale.LC_CTYPE, in_locale)
            set_variables({"LC_ALL": in_locale})
        locale.setlocale(locale.LC_CTYPE, before)


def bypass_proxy_for_localhost() -> None:
    """Clients of HTTP, here and in child processes, ask no proxy for what is on this machine: one that is set for the
    Internet cannot reach it, and not every client knows that (botocore, Rust's reqwest).
    """
    told = variable("no_proxy") or variable("NO_PROXY") or ""
    hosts = [host.strip() for host in told.split(",") if host.strip()]
    every = told if told == "*" else ",".join(dict.fromkeys([*hosts, *_LOCALHOST]))
    set_variables({"no_proxy": every, "NO_PROXY": every})
