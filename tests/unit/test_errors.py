"""The tree in the docstring is the tree of the classes, and each class knows its exit code."""

from __future__ import annotations

import inspect
import re

import pytest

from replicator import errors
from replicator.errors import ReplicatorError
from tests import readme

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.ReplicatorError)]


def drawn() -> dict[str, tuple[str | None, int | None]]:
    """The tree of the docstring: class name -> (name of its parent, exit code where it is written)."""
    above: list[tuple[int, str]] = []
    found = {}
    for line in inspect.cleandoc(errors.__doc__).splitlines():
        match = re.match(r"([ │├└─]*)([A-Z]\w+)(?: +exit (\d))?(?: |$)", line)
        if match is None or match.group(2) not in {c.__name__ for c in CLASSES}:
            continue
        depth, name, code = len(match.group(1)), match.group(2), match.group(3)
        above = [(d, n) for d, n in above if d < depth]
        found[name] = (above[-1][1] if above else None, int(code) if code else None)
        above.append((depth, name))
    return found


def test_the_drawn_tree_is_the_tree() -> None:
    """Every class stands in the docstring, below its own parent."""
    parents = {c.__name__: None if c is errors.ReplicatorError else c.__mro__[1].__name__ for c in CLASSES}
    assert {name: parent for name, (parent, _) in drawn().items()} == parents


def test_the_drawn_exit_codes_are_the_codes() -> None:
    """0 is done; 1, 2 and 3 are what the docstring says, inherited where it says nothing."""
    for name, (_, code) in drawn().items():
        if code is not None:
            assert getattr(errors, name).exit_code == code


@pytest.mark.parametrize(
    ("said", "line"),
    [("\n[X] No column `a`.; line 1 pos 11;\n'Project ['a]", "[X] No column `a`.; line 1 pos 11"), ("", "ValueError")],
)
def test_the_first_line_of_what_others_say_ends_as_a_sentence_may(said: str, line: str) -> None:
    """Spark's parser begins with an empty one, and its analyser ends with a semicolon."""
    assert errors.first_line(ValueError(said)) == line


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_an_error_says_what_where_and_how_to_fix(kind: type[ReplicatorError]) -> None:
    """One sentence for people, the parts for programs."""
    error = kind("it broke.", where="here", fix="Fix it.")
    assert str(error).endswith("it broke. [here] Fix it.")
    assert (error.what, error.where, error.fix) == ("it broke.", "here", "Fix it.")
    assert kind.exit_code in {1, 2, 3}


@pytest.mark.parametrize(
    ("what", "told"),
    [("it broke", "it broke. Fix it."), ("it broke.", "it broke. Fix it."), ("which?", "which? Fix it.")],
)
def test_how_to_fix_it_is_a_sentence_of_its_own(what: str, told: str) -> None:
    """Also where no place stands between the two."""
    assert str(errors.ConfigError(what, fix="Fix it.")) == told
    assert str(errors.ConfigError(what)) == what


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_every_error_is_explained(kind: type[ReplicatorError]) -> None:
    """A class that nobody can tell apart from another is one too many."""
    assert inspect.getdoc(kind)


def test_only_what_a_retry_can_cure_says_so() -> None:
    """Waiting helps where a service does not answer, or another driver is at work."""
    assert all(kind.retry == (kind.exit_code == 3) for kind in CLASSES)


def test_every_stop_has_its_own_code() -> None:
    """Whoever is paged reads the code first (debezium.md R6)."""
    stops = [c for c in CLASSES if issubclass(c, errors.TableStopped)]
    assert len({c.code for c in stops}) == len(stops)


def test_a_command_that_went_on_ends_with_what_is_to_be_done() -> None:
    """3 only where trying again may cure everything: a stop is looked for first, then a login to be fixed."""
    stop, away, busy = errors.TableStopped("it"), errors.Unreachable("it"), errors.AtWork("it")
    shut = errors.LoginRefused("it")
    assert [errors.exit_code(each) for each in [(shut,), (shut, away), (stop, shut)]] == [2, 2, 1]
    ends = [(), (away,), (busy, away), (away, stop), (stop,), (errors.ConfigError("it"),)]
    assert [errors.exit_code(each) for each in ends] == [0, 3, 3, 1, 1, 1]


CODES = {kind.code: kind.exit_code for kind in CLASSES if issubclass(kind, errors.TableStopped)}


CLAIM = re.compile(r"`([A-Z][A-Z_]+)\b[^`]*`(?: \((\d)\))?")
"""A code, or another name in capitals, and the exit code where it stands right behind."""


def claims(table: str) -> list[tuple[str, str]]:
    """Those of the second column of a page's table, which says what is seen."""
    rows = [row.split(" | ") for row in table.splitlines() if row.startswith("| ")]
    return [claim for row in rows for claim in CLAIM.findall(row[1])]


def wrong(table: str) -> dict[str, int]:
    """What a table says of exit codes against the classes: a name in capitals without one may be anything."""
    return {name: int(number) for name, number in claims(table) if number and CODES.get(name) != int(number)}


def test_every_code_stands_in_the_table_of_what_to_do_with_its_exit_code() -> None:
    """README sends whoever meets one there; what that table says a run ends with, and no class has, nobody will ever
    see.
    """
    table = "\n".join(readme.sections("docs/operate.md")["What comes in, what you see, what to do"])
    assert CODES.keys() - {name for name, _ in claims(table)} == set()
    assert wrong(table) == {}


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ("`TOPIC_GONE` (1), with its name", {"TOPIC_GONE": 1}),
        ("`TOPIC_DELETED: x` (3)", {"TOPIC_DELETED": 3}),
        ("`TOPIC_DELETED` (1), or `TOPIC_GONE` (2)", {"TOPIC_GONE": 2}),
        ("`POSTGRES_PASSWORD` is told (2); `SQLSTATE 28P01`", {}),
    ],
)
def test_a_code_that_no_class_has_is_found_and_other_names_are_not(seen: str, found: dict[str, int]) -> None:
    """A variable may be told of, too."""
    assert (
        wrong(f"| what comes in | what you see | what to do |\n|---|---|---|\n| `A_B` | {seen} | set `C_D` (1) |")
        == found
    )
