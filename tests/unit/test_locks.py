"""The locks: what a machine installs is exactly what was tested, from wherever its user gets packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.cdc_ch.environments import JARS
from infra.local.parts import LOCK
from replicator.jars import load_lock

REPOSITORY = Path(__file__).parents[2]
PEERS = sorted((REPOSITORY / "benchmarks" / "requirements").glob("*.lock"))
REQUIREMENTS = [*sorted((REPOSITORY / "requirements").glob("*.lock")), *PEERS]


@pytest.mark.parametrize("lock", REQUIREMENTS, ids=lambda path: path.name)
def test_every_requirement_has_a_version_and_hashes_and_no_address(lock: Path) -> None:
    """`pip install --require-hashes` refuses anything else; the mirror is the user's choice."""
    text = lock.read_text()
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all(re.match(r"[\w.-]+==\S+", entry) and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in text


def test_the_locked_pyspark_is_the_one_that_the_jars_belong_to() -> None:
    """The Kafka source is part of Spark and goes by its version."""
    [pyspark] = re.findall(r"^pyspark==(\S+)", (REPOSITORY / "requirements" / "dev.lock").read_text(), re.MULTILINE)
    assert f"org.apache.spark:spark-sql-kafka-0-10_2.12:{pyspark}" in load_lock()


@pytest.mark.parametrize("lock", [*LOCK.values(), *JARS.values()], ids=[*LOCK, *JARS])
def test_every_jar_of_the_stack_and_of_the_benchmark_is_locked_by_sha256(lock: dict[str, str]) -> None:
    """group:artifact:version, and 64 hexadecimal digits."""
    assert lock
    assert all(len(coordinate.split(":")) == 3 for coordinate in lock)
    assert all(len(bytes.fromhex(sha256)) == 32 for sha256 in lock.values())


@pytest.mark.parametrize("file", ["dev.lock", "java.lock", "java.in", "constraints.in", "spark-4.1.lock"])
def test_the_makefile_uses_every_requirements_file(file: str) -> None:
    """A lock that nothing installs or writes is a leftover."""
    texts = [(REPOSITORY / name).read_text() for name in ("Makefile", "infra/environment")]
    assert any(f"requirements/{file}" in text for text in texts)


def test_the_makefile_builds_what_each_system_of_the_benchmark_needs() -> None:
    """An error says `make bench-<name>`, and a lock is written by `make lock`."""
    text = (REPOSITORY / "Makefile").read_text()
    for name in {*JARS, *(lock.stem for lock in PEERS)}:
        assert re.search(rf"^bench-{name}: ", text, re.MULTILINE)
    assert all(f"--output-file benchmarks/requirements/{lock.name}" in text for lock in PEERS)
