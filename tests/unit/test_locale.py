"""Paths with letters that the locale of the driver may not have."""

from __future__ import annotations

import json
import locale
import os
import subprocess
import sys
from pathlib import Path

import pytest

from replicator import environment, session
from replicator.errors import ConfigError

ROOT = Path(__file__).parents[2]


def events(file: Path) -> Path:
    """One record."""
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "file": "b.000001", "pos": 1, "ts_ms": 1}
    payload = {"before": None, "after": {"id": 1}, "source": source, "op": "c"}
    record = {"topic": "s.d.t", "partition": 0, "offset": 0, "ts": 0, "key": '{"id":1}', "payload": json.dumps(payload)}
    file.write_text(json.dumps(record), encoding="utf-8")
    return file


def knows(name: str) -> bool:
    """Whether this system has a locale."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, name)
    except locale.Error:
        return False
    locale.setlocale(locale.LC_CTYPE, before)
    return True


EVERY_LETTER = pytest.mark.skipif(not knows("C.UTF-8"), reason="this system has no locale C.UTF-8")


@EVERY_LETTER
@pytest.mark.spark
def test_a_lake_lies_where_it_is_told_to_in_the_locale_c(tmp_path: Path) -> None:
    """Python has UTF-8 there, and Java question marks: it wrote to another folder, or never said that it had not begun
    where its temporary folder was spelled so.
    """
    home = tmp_path / "żółć"
    home.mkdir()
    command = [sys.executable, "-m", "replicator", "run", "--recorded", str(events(home / "events.jsonl"))]
    told = {**os.environ, "LC_ALL": "C", "TMPDIR": str(home)}
    done = subprocess.run(
        [*command, "--lake", str(home / "lake")],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        cwd=ROOT,
        env=told,
    )
    assert done.returncode == 0, done.stderr
    assert (home / "lake/silver/s/d.t/_delta_log").is_dir()
    assert [each.name for each in tmp_path.iterdir()] == ["żółć"]


@pytest.mark.parametrize(
    ("told", "asked", "put"),
    [
        pytest.param("C", "C.UTF-8", "C.UTF-8", marks=EVERY_LETTER),
        pytest.param("POSIX", "C.UTF-8", "C.UTF-8", marks=EVERY_LETTER),
        pytest.param("C.UTF-8", "xx_XX.UTF-8", "C.UTF-8", marks=EVERY_LETTER),
        ("C", "xx_XX.UTF-8", "C"),
    ],
)
def test_child_processes_know_every_letter(monkeypatch: pytest.MonkeyPatch, told: str, asked: str, put: str) -> None:
    """Where this process is in a locale that knows none but ASCII's, and the system has one that does; else all is left
    as it is.
    """
    monkeypatch.setenv("LC_ALL", told)
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        inside = locale.setlocale(locale.LC_CTYPE, told)
        environment.ensure_utf8_locale(asked)
        assert locale.setlocale(locale.LC_CTYPE) == inside
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    assert environment.variable("LC_ALL") == put


def test_a_jvm_that_cannot_spell_the_lakes_path_is_refused() -> None:
    """As one that spark-submit has started in the locale C: nothing is written elsewhere."""
    with pytest.raises(ConfigError, match=r"cannot encode.*LC_ALL=C\.UTF-8"):
        session.refuse_unencodable_path("/data/żółć/lake", "ANSI_X3.4-1968")
    for root, charset in (("/data/lake", "ANSI_X3.4-1968"), ("/data/żółć", "UTF-8"), ("s3a://b/żółć", "US-ASCII")):
        session.refuse_unencodable_path(root, charset)
