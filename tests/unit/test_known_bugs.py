"""`tests/known_bugs.yaml`: bugs of others, and which tests catch them; every test that it names is there."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.cases import cases

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests" / "known_bugs.yaml").read_text("utf-8"))
COVERED, NOT_COVERED = CATALOGUE["covered"], CATALOGUE["not_covered"]


@cache
def source_of(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the functions of a file."""
    return frozenset(node.name for node in ast.parse(source_of(file)).body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("bug", COVERED, ids=lambda bug: bug["bug"])
def test_a_known_bug_is_caught_by_tests_that_there_are(bug: dict[str, Any]) -> None:
    """Each by a file, a test of it, and a parameter that is a recorded case, or a text or function of the file."""
    assert set(bug) - {"how"} == {"bug", "seen", "shown", "caught_by"}
    assert bug["seen"]
    assert bug["shown"] in ("planted", "control", "case")
    assert (bug["shown"] == "planted") == ("how" in bug)
    for named in bug["caught_by"]:
        file, _, test = named.partition("::")
        name, _, parameter = test.removesuffix("]").partition("[")
        assert name in names_in(file), named
        known = {"", *(case.name for case in cases()), *names_in(file)}
        assert parameter in known or f'"{parameter}"' in source_of(file), named


def test_what_is_not_covered_says_why() -> None:
    """Promise D of a catalogue: nothing is left out silently."""
    assert all(set(bug) == {"bug", "seen", "why"} for bug in NOT_COVERED)


def test_there_are_many_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """At least 25 are caught, and none is told twice."""
    told = [bug["bug"] for bug in [*COVERED, *NOT_COVERED]]
    assert len(told) == len(set(told))
    assert len(COVERED) >= 25
    planted = sum(bug["shown"] == "planted" for bug in COVERED)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(COVERED)} known bugs are caught, {planted} of them were planted by hand\n")
