"""What the flags that verbs share say."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from replicator.cli import app
from replicator.errors import ConfigError
from tests.cli import said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("sql", "SELECT :day", "--engine", "duckdb", "--param", "day=1", "--param", "day=2"), "--param day"),
        (("epoch", "bump", "s", "--reason", "r", "--from", "t:0:7", "--from", "t:0:9"), "--from t:0"),
    ],
    ids=["param", "from"],
)
def test_a_value_that_is_given_twice_is_refused(tmp_path: Path, arguments: tuple[str, ...], named: str) -> None:
    """A matter of usage (exit code 2): one of the two would count, and nobody would say which."""
    with pytest.raises(ConfigError, match=f"{named} is given twice"):
        said(*arguments, "--lake", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--brokers", "localhost:9092"), "--brokers needs --topic TOPIC"),
        (("--json", "--format", "csv"), "--json and --format cannot be combined"),
        (("--list",), "--list runs no query"),
    ],
    ids=["no topic", "two formats", "list"],
)
def test_an_option_of_sql_that_would_have_no_effect_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    """A matter of usage (exit code 2): the lake would be queried instead of a topic, or one of two formats printed."""
    with pytest.raises(ConfigError, match=why):
        said("sql", "SELECT 1", "--engine", "duckdb", *arguments, "--lake", str(tmp_path))
    assert said("sql", "SELECT 1 AS a", "--engine", "duckdb", "--json", "--format", "json", "--lake", str(tmp_path))


def test_rows_that_a_limit_hides_are_told_with_a_way_that_shows_them(tmp_path: Path) -> None:
    """Only a table is shortened without a --limit, so that only there another format shows more."""
    rows = "SELECT range AS a FROM range(2000)"
    ways = {(): "1000 rows are shown: --limit N, or --format csv or json, shows more"}
    ways |= {
        ("--limit", "1", "--format", form): "row is shown: a greater --limit shows more" for form in ("csv", "json")
    }
    for arguments, told in ways.items():
        command = ["sql", rows, "--engine", "duckdb", *arguments, "--lake", str(tmp_path)]
        assert CliRunner().invoke(app, command).stderr == f"only the first {told}\n"


@pytest.mark.parametrize("place", [("0", str(1 << 63)), (str(1 << 31), "0")], ids=["offset", "partition"])
def test_a_number_that_kafka_does_not_have_is_a_matter_of_usage(tmp_path: Path, place: tuple[str, str]) -> None:
    """Exit code 2, before Spark is asked for a number that does not fit its columns."""
    said("dead-letters", "show", "shop.sales.orders", *place, "--lake", str(tmp_path), code=2)
    with pytest.raises(ConfigError, match="is not TOPIC:PARTITION:OFFSET"):
        said("epoch", "bump", "s", "--reason", "r", "--from", ":".join(("t", *place)), "--lake", str(tmp_path))


@pytest.mark.parametrize(("lake", "why"), [("s3://bucket/x", "s3a://bucket/prefix"), ("", "at least 1 character")])
def test_a_lake_that_is_none_is_a_matter_of_usage(lake: str, why: str) -> None:
    """Named with its flag, and what a lake may be."""
    with pytest.raises(ConfigError, match=f"--lake: .*{why}"):
        said("status", "--lake", lake)


@pytest.mark.parametrize("verb", [("status",), ("runs",), ("purge",), ("dead-letters", "list")])
@pytest.mark.parametrize("below", ["", "lake"])
def test_a_file_in_place_of_a_lake_is_a_matter_of_usage(tmp_path: Path, verb: tuple[str, ...], below: str) -> None:
    """It is no empty lake, and another try changes nothing."""
    (tmp_path / "events.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"--lake: .*{tmp_path}/events.jsonl is a file"):
        said(*verb, "--lake", str(tmp_path / "events.jsonl" / below), code=2)


@pytest.mark.parametrize("verb", [
    ("maintain",), ("rebuild", "--all"), ("rebuild", "orders", "--dry-run"), ("purge",),
    ("dead-letters", "retry", "--all"), ("dead-letters", "drop", "--all", "--yes"),
    ("epoch", "bump", "s", "--reason", "restored"),
])  # fmt: skip
def test_a_verb_that_works_on_what_is_there_leaves_nothing_in_a_mistyped_lake(
    tmp_path: Path, verb: tuple[str, ...]
) -> None:
    """Not even who writes it; nor does what such a mistake has left there once make a lake of it."""
    for lake in (tmp_path / "absent", tmp_path / "left"):
        (tmp_path / "left/_replicator/leases").mkdir(parents=True, exist_ok=True)
        with pytest.raises(ConfigError, match="there is no lake yet") as raised:
            said(*verb, "--lake", str(lake), code=2)
        assert raised.value.where == str(lake)
    assert [path.name for path in tmp_path.rglob("*")] == ["left", "_replicator", "leases"]
