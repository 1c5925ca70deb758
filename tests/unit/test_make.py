"""``make`` behind a Ctrl-C: what was half-made is made again, and can be removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
LITTLE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=LITTLE, capture_output=True, text=True, check=False)


def half_made(folder: Path) -> Path:
    """As ``python -m venv`` leaves it before it has come to pip; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    return folder / ".venv" / "bin" / "python"


def checkout(folder: Path) -> None:
    """What the Makefile works in, but for the environment."""
    shutil.copy(ROOT / "Makefile", folder)
    for code in ("infra", "replicator"):
        (folder / code).symlink_to(ROOT / code)


def test_an_environment_without_pip_is_made_anew(tmp_path: Path) -> None:
    """A Python is there and suits, but nothing could ever be installed. That it begins is enough: the rest is slow."""
    (tmp_path / "infra").mkdir()
    shutil.copy(ROOT / "infra" / "environment", tmp_path / "infra")
    half_made(tmp_path)
    old = tmp_path / ".venv" / "old"
    old.touch()
    command = ("infra/environment", ".venv", "empty.lock")
    making = subprocess.Popen(command, cwd=tmp_path, env=LITTLE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        patience = time.monotonic() + 60
        while old.exists() and making.poll() is None and time.monotonic() < patience:
            time.sleep(0.02)
        assert not old.exists()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(making.pid, signal.SIGKILL)
        making.wait()


def test_a_half_made_environment_can_be_removed(tmp_path: Path) -> None:
    """It cannot import what would stop the stack: then none was started, or it has ended."""
    checkout(tmp_path)
    python = half_made(tmp_path)
    assert run(tmp_path, sys.executable, "-c", "import infra.local").returncode == 0
    assert run(tmp_path, python, "-c", "import infra.local").returncode == 1
    (tmp_path / ".cache" / "stack" / "kafka").mkdir(parents=True)
    (tmp_path / ".cache" / "stack" / "kafka" / "pid").write_text("4194305 (java) S\n")  # more than there are
    assert run(tmp_path, "make", "clean").returncode == 0
    assert not (tmp_path / ".venv").exists()
    assert not (tmp_path / ".cache").exists()


def test_the_folder_of_servers_that_run_is_not_removed(tmp_path: Path) -> None:
    """Else nobody could stop them any more."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".cache" / "stack" / "kafka").mkdir(parents=True)
    (tmp_path / ".cache" / "stack" / "kafka" / "pid").write_text(f"{os.getpid()} (java) S\n")
    done = run(tmp_path, "make", "clean")
    assert (done.returncode, (tmp_path / ".cache").exists()) == (2, True)
    assert "`make env`, then `make clean`" in done.stderr
