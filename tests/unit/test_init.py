"""``replicator init``: what a new project begins with is right as it is."""

from __future__ import annotations

import re
import socket
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from replicator import settings
from replicator.cli import app
from replicator.config.connectorkeys import Kind
from replicator.connect.configuration import configuration
from replicator.errors import ConfigError, Unreachable
from replicator.stages.run_report import CANONICAL, STAGES
from tests import readme
from tests.cli import said


@pytest.mark.parametrize("kind", [None, *get_args(Kind)])
@pytest.mark.parametrize("name", ["shop", "eu.shop-1", "123", "yes"])
def test_a_new_project_is_valid(tmp_path: Path, name: str, kind: str | None) -> None:
    """Whatever the source is called, and of each kind of database; with a kind it says how the source is captured, and
    how it is asked, which `connect check` wants.
    """
    folder = tmp_path / "new" / "project"
    wanted = () if kind is None else ("--kind", kind)
    made = said("init", str(folder), "--source", name, *wanted).splitlines()
    assert sorted(made) == sorted(str(path) for path in folder.rglob("*") if path.is_file())
    said("validate", "--conf", str(folder / "conf"))
    [source] = settings.load(folder / "conf", "local", {}).sources
    assert source.name == name
    assert source.matches(f"{name}.sales.orders")
    assert (None if source.connector is None else source.connector.kind) == kind
    if source.connector is not None:
        assert configuration(source.connector)["topic.prefix"] == name
        assert source.database is not None
        same = [(each.kind, each.host, each.user) for each in (source.connector, source.database)]
        assert same[0] == same[1]


def test_what_it_shows_in_comments_is_valid_too(tmp_path: Path) -> None:
    """A reader takes away the signs and has a target, a narrower source and a declared table."""
    said("init", str(tmp_path), "--source", "shop", "--kind", "mysql")
    for path in (tmp_path / "conf/base.yaml", tmp_path / "conf/sources/shop.yaml"):
        text = re.sub(r"^(targets|tables): {}$", r"\1:", path.read_text(), flags=re.MULTILINE)
        text = re.sub(r"^# (?=warehouse:|sales\.orders:|  )", "  ", text, flags=re.MULTILINE)
        path.write_text(text.replace("# include:", "include:"))
    found = settings.load(tmp_path / "conf", "local", {"WAREHOUSE_PASSWORD": "secret"})
    assert found.target("warehouse").kind == "postgres"
    [source] = found.sources
    assert not source.matches("shop.sales.lines")
    declared = source.declaration("sales.orders")
    assert ([column.name for column in declared.columns], declared.keys) == (["id", "placed", "total"], ("id",))
    assert declared.has_history


def test_the_steps_that_it_names_need_no_other_file(tmp_path: Path) -> None:
    """With a kind they begin with the source: the database is asked as the file says, and no key is missing."""
    runner, away = CliRunner(), {"SHOP_HOST": "127.0.0.1", "SHOP_SSLMODE": "disable"}
    told = runner.invoke(app, ["init", str(tmp_path), "--source", "shop", "--kind", "postgresql"]).stderr
    assert [word in told for word in ("connect check", "connect apply")] == [True, True]
    assert "connect check" not in runner.invoke(app, ["init", str(tmp_path / "bare"), "--source", "shop"]).stderr
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        away["SHOP_PORT"] = str(taken.getsockname()[1])
    asked = runner.invoke(app, ["connect", "check", "--conf", str(tmp_path / "conf")], env=away)
    assert isinstance(asked.exception, Unreachable)


@pytest.mark.parametrize("stage", [*STAGES, CANONICAL])
def test_its_jobs_are_ours(tmp_path: Path, stage: str) -> None:
    """`spark-submit jobs/silver.py` is the same in a project as in this checkout, but for its first line."""
    said("init", str(tmp_path), "--source", "shop")
    made, ours = ((at / "jobs" / f"{stage}.py").read_text().splitlines() for at in (tmp_path, readme.ROOT))
    assert made[1:] == ours[1:]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """One file that is there, and none is written; nor where there can be no folder, or the source has no such name."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/base.yaml").write_text("mine")
    with pytest.raises(ConfigError, match="already exists"):
        said("init", str(tmp_path), "--source", "shop", code=2)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["base.yaml"]
    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        said("init", str(tmp_path / "conf/base.yaml/new"), "--source", "shop", code=2)
    for name in ("shop/eu", "..", "."):
        with pytest.raises(ConfigError, match="is not a valid topic"):
            said("init", str(tmp_path / "new"), "--source", name, code=2)
    assert not (tmp_path / "new").exists()
