"""The shape of the code as failing tests, where import contracts cannot see (architecture section 5)."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "replicator"
IMPURE_METHODS = {
    "collect",
    "toPandas",
    "toLocalIterator",
    "count",
    "write",
    "writeStream",
    "save",
    "saveAsTable",
    "foreachPartition",
}
IMPURE_FUNCTIONS = {
    "current_timestamp",
    "current_date",
    "now",
    "rand",
    "randn",
    "uuid",
    "monotonically_increasing_id",
    "open",
    "print",
}


@dataclass(frozen=True)
class Module:
    """What the rules ask of a module: its path below the package, and the names that stand in it."""

    path: str
    names: frozenset[str]
    """Bare names, and ``a.b.c`` of attribute chains; of a chain that starts at no name what is left of it."""
    attributes: frozenset[str]
    methods: frozenset[str]
    """What is called of other things than modules of functions."""
    functions: frozenset[str]
    """What is called of these, and by its bare name."""
    imported: frozenset[str]
    """At run time, with the module it comes from."""


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute chain that starts at a name, else only its last part."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


@cache
def modules() -> tuple[Module, ...]:
    """All of the package."""
    return tuple(map(seen, sorted(PACKAGE.rglob("*.py"))))


def pure() -> list[Module]:
    """Those that change rows."""
    return [each for each in modules() if os.path.dirname(each.path) in {"transforms", "debezium"}]


def seen(path: Path) -> Module:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    chains = [node for node in nodes if isinstance(node, ast.Attribute)]
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    methods = [each for each in called if isinstance(each, ast.Attribute)]
    return Module(
        path=str(path.relative_to(PACKAGE)),
        names=frozenset(map(dotted, chains)) | {node.id for node in nodes if isinstance(node, ast.Name)},
        attributes=frozenset(node.attr for node in chains),
        methods=frozenset(each.attr for each in methods if dotted(each.value) not in {"F", "functions"}),
        functions=frozenset(each.attr for each in methods if dotted(each.value) == "F")
        | {each.id for each in called if isinstance(each, ast.Name)},
        imported=imported(nodes),
    )


def imported(nodes: list[ast.AST]) -> frozenset[str]:
    """Names that are imported, but for those below ``if TYPE_CHECKING``."""
    blocks = [node for node in nodes if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING"]
    guarded = {id(node) for block in blocks for node in ast.walk(block)}
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and id(node) not in guarded]
    return frozenset(f"{node.module}.{alias.name}" for node in found for alias in node.names)


def test_transforms_have_no_session_and_no_environment() -> None:
    """What changes rows is told everything: it holds no session, no path, no variable of the process."""
    foreign = ("os.", "SparkSession.", "time.", "random.")
    held = {each.path: {name for name in each.names if name.startswith(foreign)} for each in pure()}
    built = {each.path: {name for name in each.imported if name.endswith("SparkSession")} for each in pure()}
    assert offending(held) == offending(built) == {}


def test_transforms_run_nothing_and_write_nothing() -> None:
    """No action, no write, no clock, no dice: a replay gives the same rows."""
    # `groupBy(...).count()` and `str.count(x)` are no actions of a frame: only a bare `.count()` could be one
    actions = IMPURE_METHODS - {"count"}
    done = {each.path: each.attributes & {"write", "writeStream"} | each.methods & actions for each in pure()}
    asked = {each.path: each.functions & IMPURE_FUNCTIONS for each in pure()}
    assert offending(done) == offending(asked) == {}


def test_only_one_module_reads_the_environment() -> None:
    """One module knows what the process was told."""
    variables = {"os.environ", "os.getenv", "os.putenv"}
    assert set(offending({each.path: each.names & variables for each in modules()})) == {"environment.py"}


def test_only_session_builds_a_session() -> None:
    """One module decides what a session is told."""
    assert set(offending({each.path: each.names & {"SparkSession.builder"} for each in modules()})) == {"session.py"}


def test_no_module_is_a_drawer_for_homeless_functions() -> None:
    """A function without a home means that a noun is missing."""
    drawers = {"utils.py", "helpers.py", "common.py", "base.py", "misc.py"}
    assert [each.path for each in modules() if os.path.basename(each.path) in drawers] == []


def offending(found: Mapping[str, AbstractSet[str]]) -> dict[str, AbstractSet[str]]:
    """Modules in which something was found."""
    return {path: names for path, names in found.items() if names}
