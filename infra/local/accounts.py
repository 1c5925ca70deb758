"""Who runs the database servers: they refuse root, so root hands them to another user that exists.

That user must reach the folders: a home or a cache below a 0700 folder is no place for it, and a folder under
``/var/tmp`` stands in.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Account:
    """A user that a server is handed to."""

    name: str
    uid: int
    gid: int


def account_for(preferred: str) -> Account | None:
    """The user for a server that refuses root: *preferred* if it exists, else nobody. None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in (preferred, "nobody", "daemon"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid)
    raise ConfigError(f"{preferred} refuses to run as root, and there is no user to hand it to.", fix="Add one.")


def reachable(folder: Path, account: Account | None) -> Path:
    """*folder*, created; or, when *account* cannot enter it, its stand-in under ``/var/tmp`` that nobody else owns."""
    folder.mkdir(parents=True, exist_ok=True)
    if account is None or _enters(folder, account):
        return folder
    stand_in = stand_in_for(folder)
    stand_in.mkdir(mode=0o755, exist_ok=True)
    stat = stand_in.lstat()
    if stat.st_uid != os.geteuid() or stat.st_mode & 0o022:
        raise ConfigError("This folder belongs to somebody else.", where=str(stand_in), fix="Remove it.")
    stand_in.chmod(0o755)
    return stand_in


def stand_in_for(folder: Path) -> Path:
    """The folder under ``/var/tmp`` that stands in for one that the servers' user cannot enter."""
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    return Path("/var/tmp") / f"replicator-{os.geteuid()}-{digest}"  # noqa: S108 - its owner is checked


def run_as(
    account: Account | None, command: Sequence[str | Path], folder: Path, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a short command to its end as *account* (None: as we are) in *folder*; what it prints is kept."""
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        input=stdin,
        cwd=folder,
        user=None if account is None else account.uid,
        group=None if account is None else account.gid,
        extra_groups=None if account is None else [],
    )


def _enters(folder: Path, account: Account) -> bool:
    return run_as(account, ["test", "-x", folder], Path("/")).returncode == 0
