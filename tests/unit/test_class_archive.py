"""The archive of Spark's classes: where it lies, and that one that does not fit hinders nobody."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.jvm import class_archive
from replicator.jvm.java import java_home


def java(*options: str) -> subprocess.CompletedProcess[str]:
    command = [str(java_home() / "bin" / "java"), *options, "-version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_an_archive_is_of_one_java(tmp_path: Path) -> None:
    """Its name tells which: another release looks for another file."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "release").write_text(f'JAVA_VERSION="17.0.{len(name)}"')
    places = {class_archive.archive_path(tmp_path / name) for name in ("one", "other")}
    assert len(places) == 2
    assert {each.suffix for each in places} == {".jsa"}


def test_an_archive_of_another_class_path_is_passed_over_in_silence(tmp_path: Path) -> None:
    """A JVM says nothing and starts as it would without."""
    archive = tmp_path / "of nothing.jsa"
    made = java("-Xlog:cds=off", "-Xlog:cds+dynamic=off", f"-XX:ArchiveClassesAtExit={archive}", "-cp", str(tmp_path))
    assert made.returncode == 0
    assert archive.is_file()
    given = java(*shlex.split(class_archive.java_options("", archive)), "-cp", str(tmp_path / "elsewhere.jar"))
    assert given.returncode == 0
    assert "archive" not in given.stdout + given.stderr


@pytest.mark.spark
def test_the_driver_of_the_tests_maps_it(spark: SparkSession) -> None:
    """``make jars`` has made it: the classes of Spark's SQL come from there."""
    archive = class_archive.archive_path(java_home())
    assert archive.is_file(), "make jars"
    jvm = spark.sparkContext._jvm
    arguments = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
    assert f"-XX:SharedArchiveFile={archive}" in arguments
    maps = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    assert str(archive) in maps
