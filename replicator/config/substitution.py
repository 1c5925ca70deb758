"""``${VAR}`` and ``${VAR:-default}`` in a text; ``$${`` is a literal ``${``. Pure.

A default may hold braces in pairs, and other variables: ``${A:-${B:-x}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


def _in_braces(depth: int) -> str:
    """A pattern of text whose braces, so many deep, are in pairs."""
    return r"[^{}]*" if depth == 0 else rf"(?:[^{{}}]|\{{{_in_braces(depth - 1)}\}})*"


_NAME = "[A-Za-z_][A-Za-z0-9_]*"
REFERENCE = re.compile(rf"\$\$\{{|\$\{{({_NAME})(:-({_in_braces(4)}))?\}}|\$\{{{_NAME}:-")
"""``$${``; a variable, with what stands behind it and its default; one whose braces are not in pairs."""


@dataclass
class Substitution:
    """A text with values in the place of variables: which ones were ``used``, which are ``missing``, neither set nor
    with a default, and what begins a reference whose braces are not in pairs (``open``).
    """

    text: str = ""
    used: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)


def substitute(text: str, environment: Mapping[str, str]) -> Substitution:
    """The text with the values of these variables. What stands in a value is no reference."""
    found = Substitution()

    def fill(match: re.Match[str]) -> str:
        name, has_default, default = match.groups()
        if name is None:
            found.open.extend([match[0]] if match[0] != "$${" else [])
            return "${"
        # as in a shell: `:-` also stands in for a variable that is set but empty
        if name in environment and (environment[name] or not has_default):
            found.used.append(name)
            return environment[name]
        if not has_default:
            found.missing.append(name)
        return REFERENCE.sub(fill, default or "")

    found.text = REFERENCE.sub(fill, text)
    return found


def list_variables(text: str) -> Iterator[str]:
    """The variables of a text, also those in the default of another one."""
    for match in REFERENCE.finditer(text):
        if match[1]:
            yield match[1]
            yield from list_variables(match[3] or "")
