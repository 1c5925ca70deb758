"""Pages that messages of the product send their readers to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def texts(module: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings."""
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    documentation = {id(each.value) for each in nodes if isinstance(each, ast.Expr)}
    for each in nodes:
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in documentation:
            yield each.value


def headings(page: Path) -> set[str]:
    """The anchors of a page."""
    told = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).strip().replace(" ", "-") for each in told}


def test_a_message_names_pages_that_its_reader_has() -> None:
    """A page is named by its path in the project, with a heading that it has."""
    named = {
        (str(module.relative_to(ROOT)), page, anchor)
        for module in sorted((ROOT / "replicator").rglob("*.py"))
        for text in texts(module)
        for page, anchor in re.findall(r"([\w/.-]+\.md)\b(?:#([\w-]+))?", text)
    }
    assert named
    assert not {each for each in named if not (ROOT / each[1]).is_file()}
    assert not {each for each in named if each[2] and each[2] not in headings(ROOT / each[1])}
