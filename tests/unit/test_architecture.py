"""The shape of the code as failing tests, where import contracts cannot see (architecture section 5)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "replicator"
PURE = sorted([*(PACKAGE / "transforms").glob("*.py"), *(PACKAGE / "debezium").glob("*.py")])
EVERYTHING = sorted(PACKAGE.rglob("*.py"))
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


def named(path):
    return str(path.relative_to(PACKAGE))


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(node):
    """``a.b.c`` of an attribute chain that starts at a name, else only its last part."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def called(path):
    return [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("path", PURE, ids=named)
def test_transforms_have_no_session_and_no_environment(path):
    """What changes rows is told everything: it holds no session, no path, no variable of the process."""
    names = {dotted(node) for node in ast.walk(tree(path)) if isinstance(node, (ast.Name, ast.Attribute))}
    at_run_time = {alias for alias in imported(path, type_checking=False) if alias.endswith("SparkSession")}
    assert not {n for n in names if n.startswith(("os.", "SparkSession.", "time.", "random."))}
    assert not at_run_time


@pytest.mark.parametrize("path", PURE, ids=named)
def test_transforms_run_nothing_and_write_nothing(path):
    """No action, no write, no clock, no dice: a replay gives the same rows."""
    frame = [f.attr for f in called(path) if isinstance(f, ast.Attribute) and dotted(f.value) not in {"F", "functions"}]
    attributes = {node.attr for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)} & {
        "write",
        "writeStream",
    }
    functions = {f.attr for f in called(path) if isinstance(f, ast.Attribute) and dotted(f.value) == "F"}
    functions |= {f.id for f in called(path) if isinstance(f, ast.Name)}
    # `groupBy(...).count()` and `str.count(x)` are no actions of a frame: only a bare `.count()` could be one
    assert not attributes | (set(frame) & (IMPURE_METHODS - {"count"})) | (functions & IMPURE_FUNCTIONS)


@pytest.mark.parametrize("path", EVERYTHING, ids=named)
def test_only_one_module_reads_the_environment(path):
    """One module knows what the process was told."""
    if path.name == "environment.py":
        return
    names = {dotted(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    assert not names & {"os.environ", "os.getenv", "os.putenv"}


@pytest.mark.parametrize("path", EVERYTHING, ids=named)
def test_only_session_builds_a_session(path):
    """One module decides what a session is told."""
    if path.name == "session.py":
        return
    assert "SparkSession.builder" not in {
        dotted(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)
    }


@pytest.mark.parametrize("path", EVERYTHING, ids=named)
def test_no_module_is_a_drawer_for_homeless_functions(path):
    """A function without a home means that a noun is missing."""
    assert path.stem not in {"utils", "helpers", "common", "base", "misc"}


def imported(path, *, type_checking):
    """Names that a module imports, those below ``if TYPE_CHECKING`` or the others."""
    whole = tree(path)
    guarded = {
        id(node)
        for block in ast.walk(whole)
        if isinstance(block, ast.If) and dotted(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    nodes = [n for n in ast.walk(whole) if isinstance(n, ast.ImportFrom) and (id(n) in guarded) == type_checking]
    return {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
