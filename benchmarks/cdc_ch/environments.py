"""What systems need that ours does not: environments of their own, and JARs. ``make bench-<name>`` builds them.

``python -m benchmarks.cdc_ch.environments NAME`` installs ``benchmarks/requirements/<name>.lock`` (without resolving
anything) where there is one, and fetches the JARs of that section of ``benchmarks/requirements/jars.lock.json``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from replicator import jars as fetching
from replicator.errors import ConfigError, JarsMissing
from replicator.settings import cache_dir

REPOSITORY = Path(__file__).resolve().parents[2]
REQUIREMENTS = REPOSITORY / "benchmarks" / "requirements"
HOME = REPOSITORY / ".cache" / "environments"
JARS: dict[str, dict[str, str]] = json.loads((REQUIREMENTS / "jars.lock.json").read_text(encoding="utf-8"))


class Missing(ConfigError):
    """What a system needs is not built here."""


def made(name: str) -> Path:
    """The Python of an environment. Raises Missing, with how to build it, where there is none of the lock as it is."""
    folder = _folder(name)
    if not (folder / ".made").exists():
        raise Missing(f"The environment of {name} is not built.", fix=_fix(name))
    return folder / "bin" / "python"


def jars(name: str) -> list[Path]:
    """The verified JARs of a section, in class path order. Raises Missing, with how to fetch them."""
    try:
        return fetching.locate(JARS[name], cache_dir())
    except JarsMissing as error:
        raise Missing(error.what, fix=_fix(name)) from error


def build(name: str) -> None:
    """Make what is not there."""
    if _lock(name).exists() and not (_folder(name) / ".made").exists():
        _install(_folder(name), _lock(name))
    fetching.fetch(JARS.get(name, {}), cache_dir())


def _install(folder: Path, lock: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--use-pep517", "--require-hashes", "-r", str(lock)], check=True)
    (folder / ".made").touch()


def _folder(name: str) -> Path:
    """Of the lock as it is now: another one has another folder."""
    return HOME / f"{name}-{hashlib.sha256(_lock(name).read_bytes()).hexdigest()[:12]}"


def _lock(name: str) -> Path:
    return REQUIREMENTS / f"{name}.lock"


def _fix(name: str) -> str:
    return f"Run `make bench-{name}`."


if __name__ == "__main__":
    build(sys.argv[1])
