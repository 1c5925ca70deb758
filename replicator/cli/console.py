"""Where words go: stdout is data, stderr is narration. Plain lines and no colour where it is not a terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# what is piped into a file is not folded to the width of a terminal that is not there
_PIPED_WIDTH = 10_000


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
