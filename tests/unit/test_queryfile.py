"""``conf/queries``: one file per saved query."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.catalog import extras
from replicator.catalog.sql_query import SqlQuery, transpile
from replicator.config import queryfile
from replicator.errors import ConfigError
from replicator.protocols.engine import Dialect
from tests.cli import said

ROOT = Path(__file__).parents[2]
SHIPPED = [path for conf in ("conf", "conf/northwind") for path in sorted((ROOT / conf / "queries").glob("*.sql"))]


def test_the_head_of_a_file_tells_what_the_query_is(tmp_path: Path) -> None:
    """The first line of comment is its description, a line may name its dialect."""
    text = "\n-- Rows of t.\n-- More of it.\n--  Dialect: Athena\nSELECT 1 -- dialect: no\n"
    (tmp_path / "t.sql").write_text(text)
    (tmp_path / "u.sql").write_text("SELECT 2")
    first, second = queryfile.load_queries(tmp_path)
    assert (first.name, first.description, first.dialect, first.text) == ("t", "Rows of t.", "athena", text)
    assert (second.description, second.dialect) == ("", None)
    assert queryfile.load_query(tmp_path, "t") == first


def test_what_an_editor_left_is_no_query_and_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Emacs keeps a link that leads nowhere beside a file that is being changed; both ended `sql --list` with 1."""
    (tmp_path / ".#t.sql").symlink_to("somebody@host.4711")
    assert queryfile.load_queries(tmp_path) == ()
    (tmp_path / "t.sql").mkdir()
    with pytest.raises(ConfigError, match=r"t\.sql cannot be read: Is a directory"):
        queryfile.load_queries(tmp_path)


def test_what_some_editors_begin_a_file_with_is_no_part_of_it(tmp_path: Path) -> None:
    """Behind a byte order mark neither the description nor the dialect would be seen, nor would the query be one."""
    (tmp_path / "t.sql").write_text("\ufeff-- dialect: duckdb\nSELECT 1", encoding="utf-8")
    found = queryfile.load_query(tmp_path, "t")
    assert (found.dialect, found.text) == ("duckdb", "-- dialect: duckdb\nSELECT 1")


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        ("-- dialect: athina\nSELECT 1", "t", r"unknown dialect 'athina'; did you mean 'athena'\? \[.*t.sql:1\]"),
        ("SELECT 1", "tt", r"saved query 'tt' does not exist; did you mean 't'"),
        (b"SELECT '\xff'", "t", "not UTF-8"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, content: bytes | str, name: str, told: str) -> None:
    """A dialect or a query that there is not, with the nearest one."""
    (tmp_path / "t.sql").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=told):
        queryfile.load_query(tmp_path, name)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("engine", queryfile.DIALECTS)
def test_every_shipped_query_is_one_for_every_engine(path: Path, engine: Dialect) -> None:
    """It tells what it is for, and can be said in each dialect."""
    pytest.importorskip("sqlglot")
    saved = queryfile.load_query(path.parent, path.stem)
    assert saved.description
    assert transpile(SqlQuery(saved.text, saved.dialect or engine), engine, {})


def test_a_library_that_is_not_there_is_named_with_its_extra() -> None:
    """Exit 2, and the command that brings it."""
    with pytest.raises(
        ConfigError, match=r"no_such_library is not installed\. pip install 'lakehouse-replicator\[sql\]'"
    ):
        extras.load("no_such_library.part")


@pytest.mark.parametrize(
    "arguments",
    [(), ("SELECT 1", "--saved", "product_lines"), ("SELECT 1", "--param", "x"), ("SELECT 1", "--format", "parquet")],
)
def test_a_command_that_does_not_say_one_thing_is_refused(arguments: tuple[str, ...]) -> None:
    """Before any engine starts."""
    with pytest.raises(ConfigError):
        said("sql", *arguments, "--lake", "nowhere")


def test_the_saved_queries_are_listed() -> None:
    """``--list`` needs no lake and no engine."""
    assert "product_lines" in said("sql", "--list", "--conf", str(ROOT / "conf"))
    assert '"dialect": "athena"' in said("sql", "--list", "--json", "--conf", str(ROOT / "conf" / "northwind"))
