"""Processes, ports and folders of the local stack, with real child processes."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from infra.local import jvm
from infra.local.accounts import account_for, reachable, run_as, stand_in_for
from infra.local.connect import PLUGINS, lay_out_plugins
from infra.local.home import Home
from infra.local.parts import LOCK, Parts, unpack_tar_in_zip, unpack_zip
from infra.local.processes import Process, birth, family, identity
from replicator.errors import ConfigError, Unreachable
from replicator.jvm.java import java_home


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    """A process of the test, stopped whatever happens."""
    process = Process("sleeper", tmp_path)
    yield process
    process.stop(signal.SIGKILL)


def _until(condition: Callable[[], object], seconds: float = 5) -> bool:
    patience = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > patience:
            return False
        time.sleep(0.01)
    return True


def test_a_started_process_is_alive_in_a_session_of_its_own_until_it_is_stopped(process: Process) -> None:
    """A terminal's Ctrl-C reaches the starter, never the servers."""
    process.start(["sleep", "60"])
    pid = process.pid()
    assert pid is not None
    assert os.getsid(pid) != os.getsid(0)
    assert process.memory() > 0
    process.stop()
    assert process.pid() is None
    assert birth(pid) is None


def test_another_process_with_our_process_id_is_not_ours_and_is_left_alone(process: Process) -> None:
    """A process id that the kernel gave to somebody else is told apart by its start time."""
    with subprocess.Popen(["sleep", "60"]) as stranger:
        line = Path(f"/proc/{stranger.pid}/stat").read_text()
        head, fields = line.rsplit(")", 1)
        changed = fields.split()
        changed[19] = str(int(changed[19]) - 1)
        (process.folder / "pid").write_text(f"{head}) {' '.join(changed)}\n")
        assert process.pid() is None
        process.stop()
        assert stranger.poll() is None
        stranger.kill()


def test_a_command_whose_name_looks_like_a_state_is_read_right(process: Process) -> None:
    """The name in /proc/PID/stat may hold blanks and brackets; fields are counted from its end."""
    tricky = process.folder / "a) Z 1 ("
    tricky.symlink_to("/bin/sleep")
    process.start([tricky, "60"])
    assert process.pid() is not None


def test_a_zombie_is_dead() -> None:
    """A child that ended and was not waited for still has a process id, and serves nobody."""
    with subprocess.Popen(["true"]) as child:
        assert _until(lambda: f"{child.pid} (true) Z" in Path(f"/proc/{child.pid}/stat").read_text())
        assert birth(child.pid) is None


def test_a_process_that_ignores_the_request_to_end_is_killed_with_its_children(process: Process) -> None:
    """Stopping always ends."""
    process.start(["sh", "-c", "trap '' TERM; sleep 60 & echo ready; wait; sleep 60"])
    assert _until(lambda: "ready" in process.log.read_text())
    members = family(process.pid() or 0)
    assert len(members) == 2
    process.stop(seconds=0.2)
    assert _until(lambda: all(birth(member) is None for member in members))


def test_the_servers_of_an_owner_that_is_gone_are_not_watched_for_ever(tmp_path: Path) -> None:
    """`up --owner PID` of a process that had ended by then: they stop, and so does who watches."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    owner = identity(gone.pid)
    home = Home(tmp_path)
    home.own(["s3"], owner)
    server = home.process("s3")
    home.folder("s3")
    server.start(["sleep", "60"])
    try:
        watch = [sys.executable, "-m", "infra.local.watchdog", str(tmp_path), str(gone.pid), owner]
        assert subprocess.run(watch, cwd=Path(__file__).parents[2], timeout=30, check=False).returncode == 0
        assert server.pid() is None
    finally:
        server.stop(signal.SIGKILL)


def test_waiting_ends_when_the_service_is_ready(process: Process) -> None:
    """Refused connections on the way there are no failure."""
    answers: Iterator[Any] = iter([False, OSError("refused"), True])

    def ready() -> bool:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return bool(answer)

    process.start(["sleep", "60"])
    process.wait(ready, Event())


def test_a_process_that_ends_early_shows_the_end_of_its_log(process: Process) -> None:
    """The reason is in the log; the error brings it along."""
    process.start(["sh", "-c", "echo the port is taken; exit 1"])
    with pytest.raises(Unreachable, match=r"(?s)sleeper ended before it was ready.*the port is taken"):
        process.wait(lambda: False, Event())


def test_waiting_has_an_end_and_can_be_called_off(process: Process) -> None:
    """A service that never gets ready is an error, and so is one that nobody waits for any more."""
    process.start(["sleep", "60"])
    with pytest.raises(Unreachable, match="not ready after"):
        process.wait(lambda: False, Event(), seconds=0.1)
    cancelled = Event()
    cancelled.set()
    with pytest.raises(Unreachable, match="not waited for"):
        process.wait(lambda: True, cancelled)


def test_a_home_keeps_its_ports_and_gives_no_port_twice(tmp_path: Path) -> None:
    """A later start of the same home serves at the same addresses."""
    names = ["kafka", "connect", "mariadb"]
    first = [Home(tmp_path).port(name) for name in names]
    assert len(set(first)) == len(names)
    assert [Home(tmp_path).port(name) for name in names] == first


def test_what_is_remembered_and_is_no_json_is_told_with_its_file(tmp_path: Path) -> None:
    """Behind a power cut it may be empty: to be told what to remove is more than a trace of Python's."""
    Home(tmp_path).port("kafka")
    (tmp_path / "ports.json").write_text("")
    with pytest.raises(ConfigError, match=r"no JSON \[.*ports\.json\] Stop what runs"):
        Home(tmp_path).port("kafka")
    (tmp_path / "ports.json").unlink()
    assert Home(tmp_path).port("kafka")


def test_a_port_that_a_stranger_took_is_replaced(tmp_path: Path) -> None:
    """Another program's listener must not stop the stack."""
    home = Home(tmp_path)
    port = home.port("kafka")
    home.renew_port("kafka")
    assert home.port("kafka") == port
    with socket.create_server(("127.0.0.1", port)):
        home.renew_port("kafka")
        assert home.port("kafka") != port


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands servers to another user")
def test_a_home_that_the_servers_user_cannot_enter_gets_a_stand_in(tmp_path: Path) -> None:
    """Root's own folders are closed to others; the data then lies under /var/tmp, and goes with the home."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    home, account = Home(closed / "home"), account_for("postgres")
    assert account is not None
    folder = home.folder("postgres", account)
    try:
        assert folder.parent == stand_in_for(closed / "home")
        assert (closed / "home" / "postgres").resolve() == folder
        assert folder.stat().st_uid == account.uid
        assert home.folder("postgres", account) == folder
    finally:
        home.delete()
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands servers to another user")
@pytest.mark.parametrize("packed", ["zip", "tar"])
def test_the_servers_user_can_run_what_a_strict_umask_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str
) -> None:
    """Root's umask is often 077; the programs are made for another user, who has to enter all their folders."""
    jar = tmp_path / "jars" / "g_a-1.jar"
    jar.parent.mkdir()
    program = tmp_path / "server"
    program.write_text('#!/bin/sh\nexec cat "$(dirname "$0")/../share/deep/words"\n', encoding="utf-8")
    program.chmod(0o755)
    words = tmp_path / "words"
    words.write_text("ready", encoding="utf-8")
    with zipfile.ZipFile(jar, "w") as archive:
        if packed == "zip":
            archive.write(program, "top/bin/server")
            archive.write(words, "top/share/deep/words")
        else:
            with archive.open("server.txz", "w") as out, tarfile.open(fileobj=out, mode="w|xz") as tar:
                tar.add(program, "bin/server")
                tar.add(words, "share/deep/words")
    monkeypatch.setitem(LOCK, "tiny", {"g:a:1": hashlib.sha256(jar.read_bytes()).hexdigest()})
    unpack = unpack_tar_in_zip if packed == "tar" else lambda jar, to: unpack_zip(jar, "top/", lambda _: True, to)
    account = account_for("postgres")
    before = os.umask(0o077)
    try:
        base = Parts(tmp_path).programs("tiny", unpack, account)
        assert run_as(account, [base / "bin" / "server"], Path("/")).stdout == "ready"
    finally:
        os.umask(before)
        shutil.rmtree(stand_in_for(tmp_path), ignore_errors=True)


def test_without_root_every_folder_is_where_it_was_asked_for(tmp_path: Path) -> None:
    """No account, no stand-in."""
    assert reachable(tmp_path / "new", None) == tmp_path / "new"


@pytest.mark.parametrize("order", [("postgres", "--delete", "--home", "{}"), ("--home", "{}", "--delete", "postgres")])
def test_the_data_of_one_service_is_not_removed_with_that_of_all(tmp_path: Path, order: tuple[str, ...]) -> None:
    """`down postgres --delete` removed Kafka's as well; services behind the options were not recognized."""
    (tmp_path / "home" / "kafka").mkdir(parents=True)
    home = str(tmp_path / "home")
    command = [sys.executable, "-m", "infra.local", "down", *(each.format(home) for each in order)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "home" / "kafka").is_dir()) == (2, True)
    assert done.stderr.endswith("error: --delete removes the data of all services: name none\n")


@pytest.mark.parametrize("module", ["sample_source", "northwind_source"])
def test_a_home_that_cannot_be_made_is_told_in_one_line(tmp_path: Path, module: str) -> None:
    """As `make stack` tells it: these two ended with a stack trace."""
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", f"infra.{module}", "--home", str(tmp_path / "file" / "home")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert done.stderr.startswith("error: The stack's files are out of reach: [Errno 20]")


def test_a_folder_that_gets_the_plugins_keeps_what_else_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any folder can be named with `--to`, such as that of the cache; only an earlier copy of a plugin is replaced."""
    for section in PLUGINS:
        monkeypatch.setitem(LOCK, section, {})
    mine, old = tmp_path / "mine.txt", tmp_path / PLUGINS[0] / "old.jar"
    old.parent.mkdir()
    for file in (mine, old):
        file.touch()
    lay_out_plugins(tmp_path, Parts(tmp_path / "cache"), shutil.copyfile)
    assert (mine.is_file(), old.exists()) == (True, False)
    assert {folder.name for folder in tmp_path.iterdir()} == {mine.name, *PLUGINS}


def test_a_collector_of_the_environment_replaces_that_of_the_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images set JAVA_TOOL_OPTIONS, and a JVM with two collectors does not start: there was no Kafka and no Connect."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseG1GC")
    launcher = java_home() / "bin" / "java"
    done = subprocess.run(jvm.command(launcher, tmp_path, [], [], "-version"), capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_properties_file_is_what_java_reads(tmp_path: Path) -> None:
    r"""It takes it for Latin-1, and ``\`` for an escape: a checkout in a folder with an umlaut had no Kafka Connect."""
    values: dict[str, str | int] = {"path": "/home/jürgen/c l ö/€ 𝄞", "login": r'user="a\b" #1', "port": 9092}
    jvm.write_properties(tmp_path / "x.properties", values)
    lines = (tmp_path / "x.properties").read_bytes().decode("unicode_escape").splitlines()
    told = dict(line.encode("utf-16", "surrogatepass").decode("utf-16").split("=", 1) for line in lines)
    assert told == {name: str(value) for name, value in values.items()}
