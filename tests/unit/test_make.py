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

import pytest

from infra.local.processes import birth

ROOT = Path(__file__).parents[2]
LITTLE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=LITTLE, capture_output=True, text=True, check=False)


def half_made(folder: Path) -> Path:
    """As ``python -m venv`` leaves it before it has come to pip; its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    return folder / ".venv" / "bin" / "python"


def noted(folder: Path, pid: int, born: str) -> None:
    """A server of the stack, as it writes of itself when it starts."""
    for name in ("kafka", "s3"):
        (folder / ".cache" / "stack" / name).mkdir(parents=True)
    line = f"{pid} (a (b) c) S {' '.join(['0'] * 18)} {born} {' '.join(['0'] * 30)}\n"
    (folder / ".cache" / "stack" / "kafka" / "pid").write_text(line)


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


def test_variables_of_python_for_other_work_do_not_reach_what_make_starts(tmp_path: Path) -> None:
    """With PYTHONSAFEPATH no target found `infra`; the other two bring another Spark's modules."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    names = ("PYTHONPATH", "PYTHONHOME", "PYTHONSAFEPATH")
    variables = LITTLE | dict.fromkeys(names, "1")
    command = ["make", "--eval", "show: ; @env", "show"]
    shown = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True).stdout
    assert [line for line in shown.splitlines() if line.startswith(names)] == []


def test_a_half_made_environment_can_be_removed(tmp_path: Path) -> None:
    """It cannot import what would stop the stack: then none was started, or it has ended."""
    checkout(tmp_path)
    python = half_made(tmp_path)
    assert run(tmp_path, sys.executable, "-c", "import infra.local").returncode == 0
    assert run(tmp_path, python, "-c", "import infra.local").returncode == 1
    noted(tmp_path, 4194305, born="77")  # more than there are
    assert run(tmp_path, "make", "clean").returncode == 0
    assert not (tmp_path / ".venv").exists()
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize("pid", [os.getpid(), 1], ids=["ours", "another user's"])
def test_the_folder_of_servers_that_run_is_not_removed(tmp_path: Path, pid: int) -> None:
    """Else nobody could stop them any more; some run as a user of their own."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    noted(tmp_path, pid, born=str(birth(pid)))
    done = run(tmp_path, "make", "clean")
    assert (done.returncode, (tmp_path / ".cache").exists()) == (2, True)
    assert "`make env`, then `make clean`" in done.stderr


def test_a_process_that_got_the_id_of_a_server_is_none(tmp_path: Path) -> None:
    """As after a reboot: a server is known by its start, too."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    noted(tmp_path, os.getpid(), born=f"{birth(os.getpid())}0")
    done = run(tmp_path, "make", "clean")
    assert (done.returncode, (tmp_path / ".cache").exists()) == (0, False), done.stderr
