"""The changelog and the package speak of the same version."""

from __future__ import annotations

import re
from pathlib import Path

from replicator import __version__

HEADINGS = re.findall(
    r"^## (\S+)(?: \((\S+)\))?$", (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
)


def test_the_newest_entry_is_the_version_of_the_package() -> None:
    """A release without an entry, or an entry without a release, is a mistake."""
    assert HEADINGS[0][0] == __version__


def test_no_page_holds_leftovers_of_a_merge() -> None:
    """Both sides of a conflict in one text are a page that nobody read."""
    root = Path(__file__).parents[2]
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    assert pages
    marked = re.compile(r"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
    found = [page.name for page in pages if marked.search(page.read_text(encoding="utf-8"))]
    assert found == []


def test_every_version_is_there_once_with_its_date() -> None:
    """Only the newest one may be unreleased."""
    versions = [version for version, _ in HEADINGS]
    assert len(versions) == len(set(versions))
    newest, *older = [date for _, date in HEADINGS]
    assert newest == "unreleased" or re.fullmatch(r"\d{4}-\d\d-\d\d", newest)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in older)
