"""Output to the terminal: data on stdout, messages on stderr. Plain lines without colour where it is no terminal."""

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

from replicator.cli import advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# output that is piped into a file is not wrapped: there is no terminal width
_PIPED_WIDTH = 10_000

LINE_SECONDS = 10.0
"""Interval between progress lines of long work where stderr is no terminal."""

_PIECE_ROWS = 100_000
"""The fixed cost of a piece of work, in rows: comparing a table of ten rows takes seconds, too."""

_MIN_SHARE = 0.05
"""The share of the work that must be done before the remaining time is estimated."""

_ESCAPED_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories that are escaped: control characters, surrogates, line and paragraph separators."""


def out() -> Console:
    """Return the console of stdout."""
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False, soft_wrap=True)


def narrate(text: str, style: str | None = None) -> None:
    """Print one line on stderr. Commands in backquotes get the options of this process's command that say which lake
    is meant; all else is printed exactly as given.
    """
    completed = advice.complete(text, advice.place_of(sys.argv[1:]))
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(completed, style=style or ""))


def print_text(text: str) -> None:
    """Print one line of data on stdout, exactly as given."""
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    print_text(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text | None]]) -> None:
    """Print a table on stdout; None is shown as a dim NULL. Texts may have several lines; other control characters in
    them are escaped.
    """
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(Text(_printable_lines(column)), overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console = out()
    console.print(table, soft_wrap=False)


def printable(text: str) -> str:
    """Escape the characters that would end the line, control a terminal, or cannot be encoded as UTF-8 (lone
    surrogates).
    """
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode() if category(each) in _ESCAPED_CATEGORIES else each for each in text
    )


def _cell(value: str | Text | None) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    return Text(_printable_lines(value)) if isinstance(value, str) else value


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


class WorkProgress:
    """Progress of long work, and an estimate of the remaining time. ``sizes`` returns the rows of each piece; it is
    called once, and only if progress is shown. A piece has a fixed cost besides its rows. ``clock`` is in seconds.
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
        """Count rows as done."""
        self._rows += rows
        self._shown(self)

    def finish(self) -> None:
        """Count a piece as done, whatever its estimated rows."""
        self._pieces += 1
        self._shown(self)

    def rows(self) -> str:
        """Return the rows done and the total, as text."""
        return f"{self._rows:,} of {max(self._all[0], self._rows):,} rows"

    @property
    def share(self) -> float:
        """The share of the work that is done, from 0 to 1."""
        rows, pieces = self._all
        done = self._rows + _PIECE_ROWS * self._pieces
        return min(1.0, done / max(1, max(rows, self._rows) + _PIECE_ROWS * pieces))

    @property
    def remaining(self) -> timedelta | None:
        """The estimated remaining time; None until enough is done for an estimate."""
        share = self.share
        if share < _MIN_SHARE:
            return None
        return timedelta(seconds=round((self._clock() - self._started) * (1 - share) / share))

    @cached_property
    def _all(self) -> tuple[int, int]:
        """Total rows and number of pieces; the time to count them is excluded from the estimate."""
        before = self._clock()
        sizes = self._sizes()
        self._started += self._clock() - before
        return sum(sizes), len(sizes)


@contextmanager
def row_progress(what: str, sizes: Callable[[], Sequence[int]]) -> Iterator[WorkProgress]:
    """Show progress on stderr: a bar with rows and remaining time, or without a terminal a line at intervals. ``sizes``
    is called only where something is shown.
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
            text = work.rows() if work.remaining is None else f"{work.rows()} {work.remaining}"
            progress.update(task, completed=work.share, told=text)

        yield WorkProgress(sizes, show)


class _PlainProgress:
    """Progress as plain lines."""

    def __init__(self, what: str) -> None:
        self._what, self._told = what, time.monotonic()

    def show(self, work: WorkProgress) -> None:
        """Print a line if the interval has passed."""
        if time.monotonic() - self._told < LINE_SECONDS:
            return
        text, left = f"{self._what}: {work.rows()}", work.remaining
        narrate(text if left is None else f"{text}, {left} left")
        self._told = time.monotonic()
