"""The parts of the Postgres sink that need no server."""

from __future__ import annotations

from unittest.mock import sentinel

import pytest

from replicator.errors import ConfigError, Unreachable
from replicator.protocols import Difference
from replicator.sinks.order import referenced_first, waiting
from replicator.sinks.postgres import Backoff, PostgresConnection
from replicator.sinks.postgres.ddl import staging_name, target_of
from replicator.sinks.postgres.retry import is_retryable
from replicator.sinks.postgres.types import parse_type
from replicator.spec import Model, ModelColumn, Progress, Target


def difference(name: str, *references: str) -> Difference:
    return Difference(Model(name, "", {}, ("id",), (), references=references), sentinel.rows, Progress("g", 1))


@pytest.mark.parametrize(
    ("state", "retry"),
    [
        ("08006", True), ("08001", True), ("40001", True), ("40P01", True), ("53100", True), ("53300", True),
        ("57P01", True), ("57P03", True), ("57014", True), ("55P03", True), ("25006", True), (None, True),
        ("22001", False), ("22P02", False), ("23502", False), ("23503", False), ("23505", False), ("42501", False),
        ("42P01", False), ("28P01", False), ("0A000", False), ("P0001", False), ("XX000", False),
    ],
)  # fmt: skip
def test_a_sqlstate_says_whether_to_try_again(state: str | None, retry: bool) -> None:
    """Connection, serialization, resources and shutdown pass; bad data, constraints and rights do not (F-P9)."""
    assert is_retryable(state) is retry


def test_the_waits_grow_and_end() -> None:
    """Five retries at most, each wait between half and all of a doubling number of seconds."""
    waits = list(Backoff(retries=5, first=1, longest=4).waits())
    assert [most / 2 <= wait <= most for wait, most in zip(waits, (1, 2, 4, 4, 4), strict=True)] == [True] * 5


def test_only_out_of_reach_is_tried_again() -> None:
    """An attempt that ends well is the last one; after the last wait the error comes out."""
    outcomes = iter([Unreachable("away"), Unreachable("away"), "there"])

    def attempt() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Unreachable):
            raise outcome
        return outcome

    assert Backoff(retries=2, first=0).retrying(attempt) == "there"
    outcomes = iter([Unreachable("away"), Unreachable("still away")])
    with pytest.raises(Unreachable, match="still"):
        Backoff(retries=1, first=0).retrying(attempt)


def test_referenced_models_come_first_and_waiting_is_transitive() -> None:
    """Whatever order they are given in; references to models outside of the batch do not count."""
    ordered = referenced_first(
        [difference("c", "b"), difference("b", "a", "elsewhere"), difference("d"), difference("a")]
    )
    names = [each.model.name for each in ordered]
    assert names.index("a") < names.index("b") < names.index("c")
    assert waiting(ordered, ["a"]) == {"b": "a", "c": "b"}
    assert waiting(ordered, ["d"]) == {}


def test_a_circle_and_a_model_twice_are_refused() -> None:
    """Neither has an order."""
    with pytest.raises(ConfigError, match="circle"):
        referenced_first([difference("a", "b"), difference("b", "a")])
    with pytest.raises(ConfigError, match="twice"):
        referenced_first([difference("a"), difference("a")])


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("varchar(50)", "character varying(50)"),
        ("VARCHAR ( 50 )", "character varying(50)"),
        ("numeric(10, 2)", "numeric(10,2)"),
        ("decimal(10)", "numeric(10,0)"),
        ("numeric", "numeric"),
        ("timestamp(3)", "timestamp(3) without time zone"),
        ("timestamp(3) with time zone", "timestamp(3) with time zone"),
        ("timestamptz", "timestamp with time zone"),
        ("char", "character(1)"),
        ("double precision", "double precision"),
        ("int", "integer"),
    ],
)
def test_a_type_is_read_as_postgres_prints_it(written: str, printed: str) -> None:
    """So that a declared column compares with the one that is there."""
    assert str(parse_type(written)) == printed


@pytest.mark.parametrize(
    "written",
    [
        "",
        "integer primary key",
        "text; DROP TABLE x",
        "varchar(50",
        "varchar(-1)",
        "text)",
        "int(5)",
        "serial",
        'text"',
        "json",
    ],
)
def test_what_is_no_known_type_is_refused(written: str) -> None:
    """A type is put into SQL as it is: only words of a list may pass."""
    with pytest.raises(ConfigError):
        parse_type(written)


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32, "a\0b"])
def test_names_that_postgres_would_cut_are_refused(name: str) -> None:
    """63 bytes at most: a longer name is cut silently, and two tables become one (N-2)."""
    model = Model("m", "", {}, ("id",), (ModelColumn("id", "integer"),), target=Target("w", "s", name))
    with pytest.raises(ConfigError, match="63"):
        target_of(model)


def test_staging_names_fit_and_differ() -> None:
    """A long model name is replaced by its hash."""
    names = {staging_name("m" * length) for length in range(1, 100)}
    assert len(names) == 99
    assert max(len(name) for name in names) <= 63


def test_the_jdbc_settings_say_the_same_as_libpq() -> None:
    """Known options under the driver's names; the password only where the driver wants it."""
    connection = PostgresConnection(
        "::1",
        5432,
        "a/b?c",
        "me",
        "hunter2",
        options={"sslrootcert": "/ca.pem", "connect_timeout": "3", "keepalives": "1"},
    )
    jdbc = connection.jdbc()
    assert jdbc["url"] == "jdbc:postgresql://[::1]:5432/a%2Fb%3Fc"
    assert (jdbc["sslmode"], jdbc["sslrootcert"], jdbc["connectTimeout"]) == ("verify-full", "/ca.pem", "3")
    assert "keepalives" not in jdbc
    assert "hunter2" not in repr(connection)
