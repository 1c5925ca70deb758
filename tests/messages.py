"""What the package may say to its users: the texts of its modules that are no docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests import readme

VALUE = "VALUE"
"""What stands where a message is filled."""


def texts() -> Iterator[tuple[str, str]]:
    """Each text of the package whole, pieces of an f-string joined, with its module."""
    for module in sorted((readme.ROOT / "replicator").rglob("*.py")):
        for text in _of(module):
            yield str(module.relative_to(readme.ROOT)), text


def _of(module: Path) -> Iterator[str]:
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    aside = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    aside |= {id(piece) for each in nodes if isinstance(each, ast.JoinedStr) for piece in each.values}
    for each in nodes:
        if isinstance(each, ast.JoinedStr) and id(each) not in aside:
            yield "".join(str(piece.value) if isinstance(piece, ast.Constant) else VALUE for piece in each.values)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in aside:
            yield each.value
