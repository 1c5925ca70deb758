"""README.md, or another page, as data: sections, the commands that a reader would copy, and the files shown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEADING = re.compile(r"^## (.+)$")
_FENCE = re.compile(r"^```(\w*)$")
_WORD = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"';])+|;""")
_BEHIND = re.compile(r"(?:\|\|?|&&?|;)$|\d?>")
_HEREDOC = re.compile(r"<<'(\w+)'")


def sections(page: str = "README.md") -> dict[str, list[str]]:
    """Heading -> lines of the section; what stands before the first one is under ``""``. Code has no headings."""
    found: dict[str, list[str]] = {"": []}
    heading, inside = "", False
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        inside ^= line.startswith("```")
        named = None if inside else _HEADING.match(line)
        if named:
            heading = named.group(1)
        found.setdefault(heading, []).append(line)
    return found


def headings(page: Path) -> set[str]:
    """The anchors of a page, by which links lead to its headings: a second one of a name ends with ``-1``. Code has
    none.
    """
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    told = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    names = [re.sub(r"[^\w -]", "", each.lower()).strip().replace(" ", "-") for each in told]
    before = [names[:at].count(name) for at, name in enumerate(names)]
    return {f"{name}-{times}" if times else name for name, times in zip(names, before, strict=True)}


def links(page: Path) -> list[tuple[Path, str]]:
    """File and anchor (empty where there is none) of each link of a page that leads to no other site."""
    told = re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8"))
    return [(page.parent / target if target else page, anchor) for target, anchor in told if "://" not in target]


def words(command: str) -> list[str]:
    """The words of the first program of a line of shell, in their quotes: up to a pipe, a further command or a file."""
    found = _WORD.findall(command)
    return list(itertools.takewhile(lambda word: not _BEHIND.match(word), found))


def commands(section: str, page: str = "README.md") -> list[str]:
    """The shell commands of one section in their order, for ``bash``; one with a here-document has several lines.

    Raises KeyError when there is no such section.
    """
    lines = (line for language, block in _blocks(sections(page)[section]) if language == "sh" for line in block)
    return list(_joined(lines))


def shown(language: str, page: str = "README.md") -> list[str]:
    """The text of each block of that language on a page."""
    lines = [line for section in sections(page).values() for line in section]
    return ["\n".join(block) + "\n" for found, block in _blocks(lines) if found == language]


def file(name: str) -> str:
    """The text of a file that README.md shows: the first block behind the line that names it. Raises LookupError."""
    every = [line for lines in sections().values() for line in lines]
    for at, line in enumerate(every):
        if f"`{name}`" in line and line.endswith(":"):
            _, block = next(_blocks(every[at + 1 :]))
            return "\n".join(block) + "\n"
    raise LookupError(name)


def _blocks(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Fenced blocks: the language and the lines inside."""
    language: str | None = None
    block: list[str] = []
    for line in lines:
        fence = _FENCE.match(line)
        if language is None:
            if fence:
                language, block = fence.group(1), []
        elif line == "```":
            yield language, block
            language = None
        else:
            block.append(line)


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """One entry per command: continued lines and here-documents belong to the line that opened them."""
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        command = line
        while command.endswith("\\"):
            command += "\n" + next(lines)
        document = _HEREDOC.search(command)
        if document:
            for inner in lines:
                command += "\n" + inner
                if inner == document.group(1):
                    break
        yield command
