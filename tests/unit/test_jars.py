"""JARs: what is taken from the cache, what is fetched, and what is refused. The repository is a folder."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from replicator.errors import ConfigError, JarsMissing, JavaUnsuitable
from replicator.jars import FetchProgress, fetch, load_lock, locate
from replicator.jvm.java import java_home
from replicator.jvm.sparkline import LINES, Line

ONE, TWO, THREE = "org.example:one:1.0", "org.example.deep:two:2.5.Final", "org.example:three_2.12:3"
CONTENTS = {ONE: b"first", TWO: b"second" * 1000, THREE: b"third"}
LOCK = {coordinate: hashlib.sha256(content).hexdigest() for coordinate, content in CONTENTS.items()}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository in a folder, and nobody's home beside it."""
    root = tmp_path / "repository"
    for coordinate, content in CONTENTS.items():
        group, artifact, version = coordinate.split(":")
        folder = root / group.replace(".", "/") / artifact / version
        folder.mkdir(parents=True)
        (folder / f"{artifact}-{version}.jar").write_bytes(content)
        (folder / f"{artifact}-{version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><dependencies><dependency><groupId>not</groupId><artifactId>there</artifactId>"
            "<version>1</version></dependency></dependencies></project>"
        )
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", root.as_uri() + "/")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return root


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that holds all three JARs."""
    cache = tmp_path / "cache"
    (cache / "jars").mkdir(parents=True)
    for coordinate, content in CONTENTS.items():
        _file(cache, coordinate).write_bytes(content)
    return cache


def _file(cache: Path, coordinate: str) -> Path:
    group, artifact, version = coordinate.split(":")
    return cache / "jars" / f"{group}_{artifact}-{version}.jar"


def _jvms_that_know(folder: Path) -> list[str]:
    """What is left of the JVMs that worked there; one whose asker has gone needs a moment to notice."""
    until = time.monotonic() + 10
    while (found := _running(folder)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _running(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_the_packaged_lock_names_every_jar_with_its_sha256(line: Line) -> None:
    """A lock maps group:artifact:version to 64 hexadecimal digits."""
    lock = load_lock(line.name, line.formats)
    assert all(len(coordinate.split(":")) == 3 for coordinate in lock)
    assert all(len(bytes.fromhex(sha256)) == 32 for sha256 in lock.values())


def test_an_unknown_spark_line_names_the_known_ones() -> None:
    """The fix of a wrong line is the list of the right ones."""
    with pytest.raises(ConfigError, match=r"'2\.4'.*3\.5"):
        load_lock("2.4")


def test_present_jars_come_in_the_order_of_the_lock(cache: Path) -> None:
    """The class path is the lock's order."""
    assert locate(LOCK, cache) == [_file(cache, coordinate).resolve() for coordinate in LOCK]


def test_an_absent_jar_is_named_with_the_command_that_fetches_it(cache: Path) -> None:
    """`present` never fetches; it says what is missing and how to fix it."""
    _file(cache, TWO).unlink()
    with pytest.raises(JarsMissing, match=r"org\.example\.deep:two:2\.5\.Final.*replicator jars --fetch"):
        locate(LOCK, cache)


@pytest.mark.parametrize("damaged", [False, True])
def test_the_command_brings_what_a_format_needs_beside_delta(cache: Path, damaged: bool) -> None:
    """Without `--format hudi` it fetches nothing of Hudi's, ends well, and the next run says the same again."""
    theirs = load_lock(formats=["hudi"]).keys() - load_lock().keys()
    lock = LOCK | dict.fromkeys(theirs, "0" * 64)
    for coordinate in theirs if damaged else ():
        _file(cache, coordinate).write_bytes(b"cut off")
    with pytest.raises(JarsMissing, match=r"`replicator jars --fetch --format hudi`"):
        locate(lock, cache)
    _file(cache, ONE).unlink()
    with pytest.raises(JarsMissing, match=r"`replicator jars --fetch`"):
        locate(LOCK, cache)


@pytest.mark.parametrize("remembered", [False, True])
def test_one_flipped_byte_is_noticed_whatever_the_file_says_of_its_age(cache: Path, remembered: bool) -> None:
    """A JAR that was verified once is hashed again when anything about it changed; its time cannot be set back."""
    if remembered:
        locate(LOCK, cache)
    file = _file(cache, TWO)
    before = file.stat()
    time.sleep(0.02)
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(JarsMissing, match=r"do not match their lock: org\.example\.deep:two"):
        locate(LOCK, cache)


def test_a_remembered_file_does_not_count_for_another_lock(cache: Path) -> None:
    """What was verified against one lock is hashed again for a lock that wants something else."""
    locate(LOCK, cache)
    with pytest.raises(JarsMissing, match="do not match"):
        locate({ONE: "0" * 64}, cache)


def test_two_fetches_at_once_take_exactly_the_lock_from_the_users_mirror(repository: Path, tmp_path: Path) -> None:
    """Nothing transitive, nothing in the user's home, no file but whole JARs, and no JVM left behind; the second waits
    for the first and finds the JARs.
    """
    told: list[FetchProgress] = []
    cache = tmp_path / "new" / "cache"
    with ThreadPoolExecutor(2) as pool:
        paths, others = pool.map(lambda _: fetch(LOCK, cache, told.append), range(2))
    assert paths == others
    assert [path.read_bytes() for path in paths] == list(CONTENTS.values())
    left = {path.name for path in (cache / "jars").iterdir()}
    assert left == {path.name for path in paths} | {".lock", "verified.json"}
    assert not (tmp_path / "home").exists()
    assert (told[0].jars, told[-1].jars, told[-1].total) == (0, 3, 3)
    assert [one.jars for one in told].count(3) == 1
    assert _jvms_that_know(cache) == []


def test_what_is_there_is_not_fetched_again(repository: Path, cache: Path) -> None:
    """With all JARs present no JVM starts and no repository is asked."""
    fetch(LOCK, cache)
    told: list[FetchProgress] = []
    fetch(LOCK, cache, told.append)
    assert told == []


def test_a_complete_cache_is_not_written(repository: Path, cache: Path) -> None:
    """It may be another user's: `jars --fetch` and `make stack` needed the right to lock it."""
    (cache / "jars" / ".lock").mkdir()  # cannot be opened for writing, by root neither
    assert fetch(LOCK, cache) == locate(LOCK, cache)


def test_a_fetch_replaces_only_the_damaged_jar(repository: Path, cache: Path) -> None:
    """The fix that `present` names does fix."""
    _file(cache, ONE).write_bytes(b"f1rst")
    (cache / "jars" / ".fetch-killed").mkdir()
    untouched = _file(cache, TWO).stat()
    told: list[FetchProgress] = []
    fetch(LOCK, cache, told.append)
    assert told[-1].total == 1
    assert locate(LOCK, cache)
    assert _file(cache, TWO).stat().st_mtime_ns == untouched.st_mtime_ns
    assert not (cache / "jars" / ".fetch-killed").exists()


def test_a_coordinate_that_no_repository_has_is_named(repository: Path, tmp_path: Path) -> None:
    """Ivy's page of text becomes one sentence with the coordinate and the variable that names a mirror."""
    lock = {**LOCK, "org.example:nowhere:9": "0" * 64}
    with pytest.raises(JarsMissing, match=r"org\.example:nowhere:9.*DEFAULT_ARTIFACT_REPOSITORY"):
        fetch(lock, tmp_path / "cache", lambda _: None)
    assert _jvms_that_know(tmp_path / "cache") == []


def test_a_jar_that_the_disk_does_not_take_is_told_with_its_reason(repository: Path, tmp_path: Path) -> None:
    """A full disk, here a limit of file sizes: it was reported as a JAR that no repository has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    jar = next(repository.glob("org/example/one/1.0/*.jar"))
    jar.write_bytes(bytes(1 << 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, hard))
    try:
        with pytest.raises(
            JarsMissing, match=r"org\.example:one:1\.0 could not be fetched: .*File too large"
        ) as caught:
            fetch({ONE: "0" * 64}, tmp_path / "cache", lambda _: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.fix is not None
    assert "disk has room" in caught.value.fix


def test_a_file_that_is_not_the_locks_never_reaches_the_cache(repository: Path, tmp_path: Path) -> None:
    """A mirror that serves something else under the same name is refused by SHA-256."""
    with pytest.raises(JarsMissing, match=r"org\.example:one:1\.0 has SHA-256"):
        fetch({ONE: "0" * 64}, tmp_path / "cache", lambda _: None)
    assert not _file(tmp_path / "cache", ONE).exists()


def test_a_java_that_does_not_start_is_named(repository: Path, tmp_path: Path) -> None:
    """A broken Java is no missing JAR, and a different fix."""
    with pytest.raises(JavaUnsuitable, match=r"exited early.*nowhere"):
        fetch(LOCK, tmp_path / "cache", lambda _: None, java=tmp_path / "nowhere")


@pytest.mark.parametrize("options", ["-XX:+UseG1GC", "-XX:+UseParallelGC -Xms16m"])
def test_jars_are_fetched_where_the_environment_chooses_a_collector(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    """Images set JAVA_TOOL_OPTIONS, and a JVM with two collectors does not start."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    assert fetch(LOCK, tmp_path / "cache", lambda _: None)


def test_the_resolver_ends_when_its_parent_was_killed_before_it_asked(tmp_path: Path) -> None:
    """It took the end of its input for coordinates without end."""
    command = [sys.executable, "-m", "replicator.jvm.ivy", str(java_home()), str(tmp_path)]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert _jvms_that_know(tmp_path) == []
