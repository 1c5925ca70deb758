"""The table of Spark's lines: it says what the locks say, what the installed Spark has, and what is refused."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from replicator import jars, settings
from replicator.errors import ConfigError
from replicator.jvm import sparkconf, sparkline
from replicator.jvm.ivy import pyspark_jars
from replicator.jvm.sparkline import LINES, Line

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
LOCKS = {"3.5": "dev.lock", "4.1": "spark-4.1.lock"}
OF_SPARK = {"delta-spark", "importlib-metadata", "lazy-importer", "py4j", "pyarrow", "pyspark"}
"""Packages that Spark and Delta bring, and what they bring; pyarrow, which Spark 3.5 wants older (constraints.in)."""

every_line = pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)


def packages(lock: str) -> dict[str, set[str]]:
    """Each package of a requirements lock with its versions."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", (REQUIREMENTS / lock).read_text("utf-8"), re.MULTILINE):
        found.setdefault(name, set()).add(version)
    return found


@every_line
def test_a_lines_versions_are_those_of_its_locks(line: Line) -> None:
    """Delta's JAR and its Python package are released together; nothing of another Scala is among the JARs."""
    python = packages(LOCKS[line.name])
    assert (python["pyspark"], python["delta-spark"]) == ({line.spark}, {line.delta})
    found = [each.split(":") for each in jars.load_lock(line.name, line.formats)]
    assert [v for g, a, v in found if g == "io.delta" and a.startswith("delta-spark")] == [line.delta]
    scalas = {suffix[1] for _, artifact, _ in found if (suffix := re.search(r"_(2\.1\d)$", artifact))}
    assert scalas == {line.scala}


def test_the_lines_differ_by_spark_alone() -> None:
    """All else that is tested with one is tested with the other, in the same versions."""
    ours, theirs = (packages(LOCKS[line.name]) for line in LINES)
    assert {name for name in ours | theirs if ours.get(name) != theirs.get(name)} <= OF_SPARK


@pytest.mark.parametrize(
    ("version", "name"), [("3.5.7", "3.5"), ("3.5.6-amzn-0", "3.5"), ("3.5.6+amzn.0", "3.5"), ("4.1.4", "4.1")]
)
def test_a_version_is_of_a_line_whatever_its_builder_calls_it(version: str, name: str) -> None:
    """Services have builds of their own."""
    assert sparkline.of(version).name == name


@pytest.mark.parametrize("version", ["4.0.1", "3.50.1", "4.10.0", "master"])
def test_a_line_that_was_not_tested_is_refused(version: str) -> None:
    """With those that were, and where it lies; as a wrong configuration is."""
    with pytest.raises(ConfigError, match=r"not of a tested release line.*3\.5, 4\.1") as refused:
        sparkline.of(version)
    assert refused.value.exit_code == 2
    with pytest.raises(ConfigError, match=r"\[/opt/spark/pyspark\] .*Unset PYTHONPATH"):
        sparkline.of(version, "/opt/spark/pyspark")


def test_hudi_is_refused_where_it_is_not_to_be_had() -> None:
    """By one sentence that says which line has it; also where only its JARs are asked for."""
    four = sparkline.of("4.1.4")
    with pytest.raises(ConfigError, match=r"tables in hudi are not supported on Spark 4\.1.*format: delta.*Spark 3\.5"):
        sparkline.refuse_formats(four, ["delta", "hudi"])
    with pytest.raises(ConfigError, match="tables in hudi are not supported on Spark"):
        jars.load_lock("4.1", ["hudi"])
    sparkline.refuse_formats(four, ["delta"])
    sparkline.refuse_formats(sparkline.of("3.5.7"), ["delta", "hudi"])


def test_a_configuration_with_hudi_is_valid_on_the_lines_that_have_it(tmp_path: Path) -> None:
    """Every verb says it before anything starts, unless stages run on the Spark of EMR."""
    (tmp_path / "own.yaml").write_text("formats: [delta, hudi]\n", encoding="utf-8")
    (tmp_path / "emr.yaml").write_text("formats: [delta, hudi]\nruntime: emr\n", encoding="utf-8")
    assert settings.load(tmp_path, "emr").formats == ("delta", "hudi")
    if "hudi" in sparkline.installed().formats:
        assert settings.load(tmp_path, "own").formats == ("delta", "hudi")
        return
    with pytest.raises(ConfigError, match=r"formats: tables in hudi are not supported on Spark"):
        settings.load(tmp_path, "own")


def test_the_installed_spark_has_the_classes_that_its_line_names() -> None:
    """A class that moved would be missed by a resolver, or by a stream that has run for a while."""
    line = sparkline.installed()
    wanted = {f"{name.replace('.', '/')}.class" for name in (line.ivy, line.checkpoint_files)}
    for jar in pyspark_jars().glob("spark-*.jar"):
        with zipfile.ZipFile(jar) as opened:
            wanted -= set(opened.namelist())
    assert wanted == set()


@every_line
def test_a_session_is_told_what_its_line_says(tmp_path: Path, line: Line) -> None:
    """The class that writes checkpoints on a local disk, and the line's own settings."""
    told = sparkconf.session_settings(settings.bare(str(tmp_path)), {}, line)
    assert told["spark.sql.streaming.checkpointFileManagerClass"] == line.checkpoint_files
    assert line.settings.items() <= told.items()
