"""Substitution of ``${VAR}`` and ``${VAR:-default}`` in a text; ``$${`` is a literal ``${``. Pure.

A default may contain balanced braces, and other variables: ``${A:-${B:-x}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


def _in_braces(depth: int) -> str:
    """Return a pattern of text with balanced braces, nested up to ``depth``."""
    return r"[^{}]*" if depth == 0 else rf"(?:[^{{}}]|\{{{_in_braces(depth - 1)}\}})*"


_NAME = "[A-Za-z_][A-Za-z0-9_]*"
REFERENCE = re.compile(rf"\$\$\{{|\$\{{({_NAME})(:-({_in_braces(4)}))?\}}|\$\{{{_NAME}:-")
"""``$${``; a variable with its ``:-`` and default; the beginning of one whose braces are not balanced."""
_UNKNOWN = re.compile(r"\$\{\w*:?")
"""The beginning of anything else in ``${}``. What follows may be a secret."""


@dataclass
class Substitution:
    """A text with variables substituted: the variables that were ``used``, those that are ``missing`` (neither set nor
    with a default), the beginnings of references whose braces are not balanced (``open``), and those of what stays in
    the text since it is no variable (``unknown``): ``${env:`` of ``${env:NAME}``.
    """

    text: str = ""
    used: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def substitute(text: str, environment: Mapping[str, str]) -> Substitution:
    """Substitute the variables of a text. Values are not substituted again."""
    result = Substitution()

    def fill(match: re.Match[str]) -> str:
        name, has_default, default = match.groups()
        if name is None:
            result.open.extend([match[0]] if match[0] != "$${" else [])
            return "${"
        # as in a shell: the default of `:-` also replaces a variable that is set but empty
        if name in environment and (environment[name] or not has_default):
            result.used.append(name)
            return environment[name]
        if not has_default:
            result.missing.append(name)
        return fill_all(default or "")

    def fill_all(text: str) -> str:
        result.unknown.extend(_UNKNOWN.findall(REFERENCE.sub(" ", text)))
        return REFERENCE.sub(fill, text)

    result.text = fill_all(text)
    return result


def list_variables(text: str) -> Iterator[str]:
    """Yield the variables of a text, including those in the default of another one."""
    for match in REFERENCE.finditer(text):
        if match[1]:
            yield match[1]
            yield from list_variables(match[3] or "")
