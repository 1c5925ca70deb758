"""Where words go: stdout is data, stderr is narration. Plain lines and no colour where it is not a terminal."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any
from unicodedata import category

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# what is piped into a file is not folded to the width of a terminal that is not there
_PIPED_WIDTH = 10_000

LINE_SECONDS = 10.0
"""How long nothing is said of long work where there is no terminal."""

_PIECE_ROWS = 100_000
"""A piece takes as long as so many rows, besides its own: a table of ten is compared in seconds, too."""

_MIN_SHARE = 0.05
"""So much must be done before it tells how long the rest takes."""

_ESCAPED_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
"""Categories of characters: control, half of a pair, ends of lines and paragraphs."""


def out() -> Console:
    """The console of stdout."""
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False, soft_wrap=True)


def narrate(text: str, style: str | None = None) -> None:
    """One line on stderr, exactly as given."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(text, style=style or ""))


def print_text(text: str) -> None:
    """One line of data on stdout, exactly as given."""
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """A value as JSON on stdout."""
    print_text(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text | None]]) -> None:
    """A table on stdout; None is shown as a dim NULL."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for row in rows:
        table.add_row(
            *(
                Text("NULL", style="dim") if cell is None else Text(cell) if isinstance(cell, str) else cell
                for cell in row
            )
        )
    console = out()
    console.print(table, soft_wrap=False)


def printable(text: str) -> str:
    """With escapes in place of what would end the line, move a terminal, or has no UTF-8 (half a surrogate pair)."""
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode() if category(each) in _ESCAPED_CATEGORIES else each for each in text
    )


class WorkProgress:
    """How much of long work is done, and how long the rest may take. ``sizes`` are the rows of each of its pieces,
    asked for once, where something is shown; a piece takes its time however few rows it has. ``clock`` is in seconds.
    """

    def __init__(
        self,
        sizes: Callable[[], Sequence[int]],
        shown: Callable[[WorkProgress], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sizes, self._shown, self._clock = sizes, shown, clock
        self._started = clock()
        self._rows = self._pieces = 0

    def advance(self, rows: int) -> None:
        """More rows are done."""
        self._rows += rows
        self._shown(self)

    def finish(self) -> None:
        """A piece is done, whatever its rows were thought to be."""
        self._pieces += 1
        self._shown(self)

    def rows(self) -> str:
        """So many of how many."""
        return f"{self._rows:,} of {max(self._all[0], self._rows):,} rows"

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        rows, pieces = self._all
        done = self._rows + _PIECE_ROWS * self._pieces
        return min(1.0, done / max(1, max(rows, self._rows) + _PIECE_ROWS * pieces))

    @property
    def left(self) -> timedelta | None:
        """The time that is left; None until enough is done to tell."""
        share = self.share
        if share < _MIN_SHARE:
            return None
        return timedelta(seconds=round((self._clock() - self._started) * (1 - share) / share))

    @cached_property
    def _all(self) -> tuple[int, int]:
        """Rows and pieces of all of it; the time of counting them is none of the work's."""
        before = self._clock()
        sizes = self._sizes()
        self._started += self._clock() - before
        return sum(sizes), len(sizes)


@contextmanager
def row_progress(what: str, sizes: Callable[[], Sequence[int]]) -> Iterator[WorkProgress]:
    """Work that shows a bar on stderr, with rows and time left; where stderr is no terminal, a line of the same now and
    then. ``sizes`` is asked only where something is shown.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield WorkProgress(sizes, _PlainProgress(what).show)
        return
    from rich.progress import BarColumn, Progress, TextColumn

    parts = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}")
    with Progress(*parts, console=console, transient=True) as progress:
        task = progress.add_task(what, total=1.0, told="")

        def show(work: WorkProgress) -> None:
            told = work.rows() if work.left is None else f"{work.rows()} {work.left}"
            progress.update(task, completed=work.share, told=told)

        yield WorkProgress(sizes, show)


class _PlainProgress:
    """What a bar shows, as plain lines."""

    def __init__(self, what: str) -> None:
        self._what, self._told = what, time.monotonic()

    def show(self, work: WorkProgress) -> None:
        """Say it if it is time to."""
        if time.monotonic() - self._told < LINE_SECONDS:
            return
        told, left = f"{self._what}: {work.rows()}", work.left
        narrate(told if left is None else f"{told}, {left} left")
        self._told = time.monotonic()
