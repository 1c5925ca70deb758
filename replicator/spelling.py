"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def suggest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if a known word is close, else the list of known words."""
    choices = sorted(known)
    return did_you_mean(word, choices) or (f"; known: {', '.join(choices)}" if choices else "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if a known word is close, else ''."""
    near = closest_match(word, known)
    return "" if near is None else f"; did you mean {near!r}?"


def did_you_mean_table(word: str, known: Iterable[str]) -> str:
    """As :func:`did_you_mean` for tables (``<source>/<database or schema>.<table>``) and models: if a trailing part of
    a name is close, all full names that end with it.
    """
    by_suffix: dict[str, list[str]] = {}
    for name in sorted(known):
        for part in dict.fromkeys((name, name.rpartition("/")[2], name.rpartition(".")[2])):
            by_suffix.setdefault(part, []).append(name)
    near = closest_match(word, by_suffix)
    return "" if near is None else f"; did you mean {' or '.join(map(repr, by_suffix[near]))}?"


def suggest_table(word: str, known: Iterable[str]) -> str:
    """:func:`did_you_mean_table`, else the list of known names."""
    return did_you_mean_table(word, known) or suggest(word, known)


def closest_match(word: str, known: Iterable[str], alike: float = 0.6) -> str | None:
    """Return the known word that is closest to ``word``, with at least the similarity ``alike`` (0 to 1); None if there
    is none.
    """
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=alike)), None)
