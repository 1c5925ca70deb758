"""The parts of the Postgres sink that need no server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import sentinel

import psycopg2
import pytest
from psycopg2 import errorcodes

from replicator.config import memberkeys, postgrestypes
from replicator.errors import ConfigError, TargetRefused, Unreachable
from replicator.protocols import Difference
from replicator.sinks.dependency_order import referenced_first
from replicator.sinks.postgres import Backoff, PostgresConnection, copytext, impossible_deletes
from replicator.sinks.postgres.ddl import target_of
from replicator.sinks.postgres.retry import error_of_sqlstate, is_retryable, translate_errors
from replicator.sinks.postgres.types import _TYPES, parse_type
from replicator.spec import Model, ModelColumn, Progress, Target, blocked_models


def difference(name: str, *references: str) -> Difference:
    return Difference(Model(name, "", {}, ("id",), (), references=references), sentinel.rows, Progress("g", 1))


PASSING = {"40001", "40P01", "55P03", "57014", "25006", "25P03", "25P04"}


def test_every_sqlstate_says_whether_to_try_again() -> None:
    """All that Postgres has (F-P9): connection, resources, shutdown, files pass, and serialization, deadlocks, limits
    of time, a standby; bad data, constraints, rights and all else do not, and no SQLSTATE is a lost connection.
    """
    states = {code for name, code in vars(errorcodes).items() if name.isupper() and len(code) == 5}
    expected = {state for state in states if state[:2] in {"08", "53", "58"} or state[:4] == "57P0"} | PASSING
    assert len(states) > 200
    assert {state for state in states if is_retryable(state)} == expected
    assert {state[:2] for state in states if state[:2] in {"22", "23", "42"} and not is_retryable(state)} == {
        "22",
        "23",
        "42",
    }
    assert is_retryable(None)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("smallint", "integer"),
        ("integer", "bigint"),
        ("bigint", "numeric(19,0)"),
        ("smallint", "numeric(7,2)"),
        ("bigint", "numeric"),
        ("real", "double precision"),
        ("numeric(10,2)", "numeric(11,3)"),
        ("numeric(38,18)", "numeric"),
        ("varchar(50)", "varchar(51)"),
        ("varchar(50)", "varchar"),
        ("varchar", "text"),
        ("text", "varchar"),
        ("char(3)", "varchar(3)"),
        ("timestamp(3)", "timestamp"),
        ("time(0) with time zone", "timetz(6)"),
        ("varchar(3)[]", "text[]"),
    ],
)
def test_a_wider_type_holds_a_narrower_one(narrow: str, wide: str) -> None:
    """And not the other way round, but for text without a limit, which has two names (types.md section 8)."""
    assert parse_type(wide).can_hold(parse_type(narrow))
    assert parse_type(narrow).can_hold(parse_type(wide)) is ({narrow, wide} == {"varchar", "text"})


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("integer", "text"), ("text", "integer"), ("integer", "real"), ("integer", "double precision"),
        ("bigint", "numeric(18,0)"), ("numeric(10,2)", "numeric(11,4)"), ("numeric(10,2)", "numeric(12,1)"),
        ("numeric(4,0)", "integer"), ("numeric", "bigint"), ("real", "numeric"), ("date", "timestamp"),
        ("timestamp", "timestamptz"), ("time", "timetz"), ("timestamp", "timestamp(3)"), ("varchar(9)", "char(9)"),
        ("text", "varchar(9)"), ("json", "jsonb"), ("uuid", "text"), ("text", "text[]"), ("integer[]", "integer"),
    ],
)  # fmt: skip
def test_what_is_no_widening_is_told(there: str, wanted: str) -> None:
    """Narrowing, another family, digits before the point that get fewer (types.md section 8: not automatic)."""
    assert not parse_type(wanted).can_hold(parse_type(there))


def test_the_waits_grow_and_end() -> None:
    """Five retries at most, each wait between half and all of a doubling number of seconds."""
    waits = list(Backoff(retries=5, first=1, longest=4).delays())
    assert [most / 2 <= wait <= most for wait, most in zip(waits, (1, 2, 4, 4, 4), strict=True)] == [True] * 5


def test_only_out_of_reach_is_tried_again() -> None:
    """An attempt that ends well is the last one; after the last wait the error comes out."""
    outcomes: Iterator[Any] = iter([Unreachable("away"), Unreachable("away"), "there"])

    def attempt() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Unreachable):
            raise outcome
        return str(outcome)

    assert Backoff(retries=2, first=0).retrying(attempt) == "there"
    outcomes = iter([Unreachable("away"), Unreachable("still away")])
    with pytest.raises(Unreachable, match="still"):
        Backoff(retries=1, first=0).retrying(attempt)


def test_referenced_models_come_first_and_waiting_is_transitive() -> None:
    """Whatever order they are given in; references to models outside of the batch do not count."""
    ordered = referenced_first(
        [difference("c", "b"), difference("b", "a", "elsewhere"), difference("d"), difference("a")]
    )
    models = [each.model for each in ordered]
    names = [each.name for each in models]
    assert names.index("a") < names.index("b") < names.index("c")
    assert blocked_models(reversed(models), ["a"]) == {"b": "a", "c": "b"}
    assert blocked_models(models, ["d"]) == {}


def test_a_circle_and_a_model_twice_are_refused() -> None:
    """Neither has an order."""
    with pytest.raises(ConfigError, match="cycle"):
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
        ("varchar(9)[]", "character varying(9)[]"),
        ("timestamp(3) [ ]", "timestamp(3) without time zone[]"),
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
        "text[][]",
        "xml",
    ],
)
def test_what_is_no_known_type_is_refused(written: str) -> None:
    """A type is put into SQL as it is: only words of a list may pass."""
    with pytest.raises(ConfigError):
        parse_type(written)


@pytest.mark.parametrize("ending", ["", "[]"])
def test_every_type_that_a_model_may_declare_is_known(ending: str) -> None:
    """What ``validate`` lets pass can be made in Postgres, and what can be made there passes."""
    assert set(_TYPES) == postgrestypes._POSTGRES_TYPES
    kinds = [f"{kind}{ending}" for kind in postgrestypes._POSTGRES_TYPES]
    kinds += [f"{kind}{ending}" for kind in ("varchar(9)", "numeric(10, 2)", "timestamp(3) with time zone", "time(0)")]
    assert [postgrestypes._check_type(kind) for kind in kinds] == kinds
    assert all(str(parse_type(kind)).endswith(ending) for kind in kinds)


@pytest.mark.parametrize(
    "kind",
    ["timestamp with time", "time zone", "integer with time zone", "int16", "varchar()", "int(11)", "text(5)",
     "varchar(10,2)", "boolean(1)[]", "varchar(0)", "char(0)", "timestamp(9)", "time(7) with time zone",
     "numeric(1001)"],
)  # fmt: skip
def test_a_type_that_postgres_lacks_is_refused_before_anything_runs(kind: str) -> None:
    """By ``validate``, and not by the first publication."""
    with pytest.raises(ValueError, match=r"not a (known )?Postgres type"):
        postgrestypes._check_type(kind)


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [("int8", 7, "x"), ("bool", True, 1), ("float4", 1.5, "x"), ("inet", "::1", 1),
     ("timestamp(3) with time zone", date(2024, 1, 1), "2024-01-01")],
)  # fmt: skip
def test_the_unknown_members_values_are_held_to_every_spelling_of_a_type(
    kind: str, fits: object, does_not: object
) -> None:
    """A whole number is one whatever the type is called."""
    assert memberkeys._fits(fits, kind)
    assert not memberkeys._fits(does_not, kind)


@pytest.mark.parametrize(
    ("context", "is_told"),
    [(None, True), ("COPY replicator_staging_0, line 1", True), ("PL/pgSQL function s.f() line 3 at RAISE", False)],
)
def test_a_limit_of_postgres_is_told_in_its_own_words(context: str | None, is_told: bool) -> None:
    """They name an index or a size, without which nobody knows what is too large; a function may say a row's values."""
    said = 'index row size 3016 exceeds btree version 4 maximum 2704 for index "t_pkey"'

    class TooLarge(psycopg2.Error):
        pgcode = errorcodes.PROGRAM_LIMIT_EXCEEDED
        diag: ClassVar[Any] = SimpleNamespace(
            column_name=None, constraint_name=None, table_name=None, context=context, message_primary=said
        )

    with pytest.raises(TargetRefused) as caught, translate_errors("m", "h:1/d"):
        raise TooLarge
    assert (said in str(caught.value)) == is_told


@pytest.mark.parametrize(
    ("state", "cure"),
    [
        (errorcodes.LOCK_NOT_AVAILABLE, "a longer `lock_timeout` in the target's `options`"),
        (errorcodes.QUERY_CANCELED, "a longer `statement_timeout` in the target's `options`"),
        (errorcodes.READ_ONLY_SQL_TRANSACTION, "once it accepts writes"),
        (errorcodes.TOO_MANY_CONNECTIONS, "once Postgres has recovered"),
        (None, "once Postgres has recovered"),
    ],
)
def test_what_is_worth_another_try_says_when(state: str | None, cure: str) -> None:
    """A server that is well has nothing to recover from while somebody else holds a lock."""
    error = error_of_sqlstate(state, "m", "h:1/d")
    assert isinstance(error, Unreachable)
    assert cure in str(error)


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32, "a\0b"])
def test_names_that_postgres_would_cut_are_refused(name: str) -> None:
    """63 bytes at most: a longer name is cut silently, and two tables become one (N-2)."""
    model = Model("m", "", {}, ("id",), (ModelColumn("id", "integer"),), target=Target("w", "s", name))
    with pytest.raises(ConfigError, match="63"):
        target_of(model)


@pytest.mark.parametrize(("table", "column"), [("_replicator_ledger", "a"), ("t", "_OP")])
def test_names_that_the_sink_needs_itself_are_refused(table: str, column: str) -> None:
    """The ledger, and the column that says what becomes of a row."""
    model = Model("m", "", {}, (column,), (ModelColumn(column, "integer"),), target=Target("w", "s", table))
    with pytest.raises(ConfigError, match=f"(?i){column if table == 't' else table}"):
        target_of(model)


@pytest.mark.parametrize(
    ("options", "patience", "idle"),
    [
        ({}, 3610, 60),
        ({"statement_timeout": "1500ms", "connect_timeout": "2"}, 3.5, 60),
        ({"statement_timeout": "0s", "idle_in_transaction_session_timeout": "5min"}, 0, 300),
    ],
    ids=["usual", "hasty", "for ever"],
)
def test_nobody_waits_for_ever_for_a_link_that_is_dead(options: dict[str, str], patience: float, idle: float) -> None:
    """F-P2: an answer is awaited as long as its statement may run and the server may take to be reached; a session that
    says nothing is ended by the server.
    """
    connection = PostgresConnection("db", 5432, "d", "me", options=options)
    assert (connection.timeout_seconds, connection.idle_seconds) == (patience, idle)


def test_no_text_form_of_a_connection_shows_the_password() -> None:
    """Nor one of a value that holds it: logs and tracebacks print both."""
    connection = PostgresConnection("db", 5432, "d", "me", "hunter2")
    forms = [repr(connection), str(connection), f"{[connection]}", connection.where]
    assert not [each for each in forms if "hunter2" in each]
    assert connection.password == "hunter2"


@pytest.mark.parametrize(
    ("lines", "encoding", "place"),
    [
        ("1\tAnn\t\\N\n2\tZoë\tname\n".encode(), "LATIN1", None),
        ("1\tZoë\tx\n2\tAnn\t名\n".encode(), "LATIN1", 2),
        ("1\tZoë 名\t\U0001f600\n".encode(), "UTF8", None),
        ("1\tZoë\tx\n2\ta\0b\t名\n".encode(), "UTF8", 1),
        ("1\tZoë 名\tx\n2\tAnn\ta\0b\n".encode(), "SQL_ASCII", 2),
        (b"1\tAnn\tx\n2\t\xc3(\tx\n", "UTF8", 1),
        ("1\t名\tx\n".encode(), "MULE_INTERNAL", None),
        (b"", "UTF8", None),
    ],
)
def test_the_value_that_a_server_cannot_read_is_found_by_its_place(
    lines: bytes, encoding: str, place: int | None
) -> None:
    """U+0000, a character that the server's encoding lacks, bytes that are no text; of several the first."""
    assert copytext.find_unreadable(memoryview(lines), copytext.codec(encoding)) == place


def test_of_lines_that_a_server_cannot_read_those_of_deletes_alone_are_left_out() -> None:
    """Such a key is in no table of it; what is to be there is told instead."""
    told = "1\t\\N\tupsert\n2\t名\tdelete\n3\tZoë\tdelete\n4\t名\tupsert\n5\tdelete\tdelete\n".encode()
    left = "1\t\\N\tupsert\n3\tZoë\tdelete\n4\t名\tupsert\n5\tdelete\tdelete\n".encode()
    assert impossible_deletes.drop_unreadable(memoryview(told), copytext.codec("LATIN1")) == left
    assert impossible_deletes.drop_unreadable(told, copytext.codec("UTF8")) == told
    assert impossible_deletes.drop_unreadable(b"2\ta\0b\tdelete\n", copytext.codec("UTF8")) == b""


@pytest.mark.parametrize("sizes", [[], [7], [300_000] * 9, [3 << 20, 5], [1 << 20] * 2])
def test_lines_go_to_the_server_in_pieces_of_a_mebibyte(sizes: list[int]) -> None:
    """Each line once, in its place; only the last piece is smaller."""
    lines = [memoryview(bytes([number]) * (size - 1) + b"\n") for number, size in enumerate(sizes)]
    sent = list(copytext.chunks(lines))
    assert b"".join(sent) == b"".join(lines)
    assert all(len(piece) >= 1 << 20 for piece in sent[:-1])
    assert len(sent) <= sum(sizes) // (1 << 20) + 1
