"""What somebody probably meant who wrote a name that nobody knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` when some known word is close, else what there is to choose from."""
    choices = sorted(known)
    return meant(word, choices) or (f"; known are {', '.join(choices)}" if choices else "")


def meant(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` when some known word is close."""
    near = close(word, known)
    return "" if near is None else f"; did you mean {near!r}?"


def table_meant(word: str, known: Iterable[str]) -> str:
    """The same of tables (``<source>/<database or schema>.<table>``) and models, where a part of a name from behind is
    close: all whole names that end so.
    """
    ending: dict[str, list[str]] = {}
    for name in sorted(known):
        for part in dict.fromkeys((name, name.rpartition("/")[2], name.rpartition(".")[2])):
            ending.setdefault(part, []).append(name)
    near = close(word, ending)
    return "" if near is None else f"; did you mean {' or '.join(map(repr, ending[near]))}?"


def nearest_table(word: str, known: Iterable[str]) -> str:
    """:func:`table_meant`, else what there is to choose from."""
    return table_meant(word, known) or nearest(word, known)


def close(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known word that is closest to a word, with at least so great a share of its letters alike; None for none."""
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=alike)), None)
