"""Where words go: stdout is data, stderr is narration. Plain lines and no colour where it is not a terminal."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# what is piped into a file is not folded to the width of a terminal that is not there
_PIPED_WIDTH = 10_000

LINE_SECONDS = 10.0
"""How long nothing is said of long work where there is no terminal."""


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


@contextmanager
def counted_rows(what: str, total: Callable[[], int]) -> Iterator[Callable[[int], None]]:
    """A bar on stderr with rows and time left, for a function that is told of more rows; where stderr is no terminal, a
    line of the same now and then. ``total`` is asked only where something is shown.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(what, total).advance
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    parts = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} rows"),
    )
    with Progress(*parts, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=total())
        yield lambda rows: progress.advance(task, rows)


class _Lines:
    """What a bar shows, as plain lines."""

    def __init__(self, what: str, total: Callable[[], int]) -> None:
        self._what, self._total = what, cache(total)
        self._started = self._told = time.monotonic()
        self._rows = 0

    def advance(self, rows: int) -> None:
        """More rows are done: say so if it is time to."""
        self._rows += rows
        now = time.monotonic()
        if now - self._told < LINE_SECONDS or not self._rows:
            return
        self._told = now
        whole = max(self._total(), self._rows)
        left = timedelta(seconds=round((now - self._started) * (whole - self._rows) / self._rows))
        narrate(f"{self._what}: {self._rows:,} of {whole:,} rows, {left} left")
