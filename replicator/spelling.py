"""What somebody probably meant who wrote a name that nobody knows."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def suggest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` when some known word is close, else what there is to choose from."""
    choices = sorted(known)
    return did_you_mean(word, choices) or (f"; known are {', '.join(choices)}" if choices else "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` when some known word is close."""
    near = closest_match(word, known)
    return "" if near is None else f"; did you mean {near!r}?"


def did_you_mean_table(word: str, known: Iterable[str]) -> str:
    """The same of tables (``<source>/<database or schema>.<table>``) and models, where a part of a name from behind is
    close: all whole names that end so.
    """
    ending: dict[str, list[str]] = {}
    for name in sorted(known):
        for part in dict.fromkeys((name, name.rpartition("/")[2], name.rpartition(".")[2])):
            ending.setdefault(part, []).append(name)
    near = closest_match(word, ending)
    return "" if near is None else f"; did you mean {' or '.join(map(repr, ending[near]))}?"


def suggest_table(word: str, known: Iterable[str]) -> str:
    """:func:`did_you_mean_table`, else what there is to choose from."""
    return did_you_mean_table(word, known) or suggest(word, known)


def closest_match(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """The known word that is closest to a word, with at least so great a share of its letters alike; None for none."""
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=alike)), None)
