"""The topics that a source reads, as a regular expression: made of tables, and asked which tables those were."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from replicator import names

if TYPE_CHECKING:
    from replicator.spec import SourceSpec

ANY_DATABASE = "(?:[^.]+[.])?"
"""Before the schema in a topic's name: SQL Server's connector writes ``<prefix>.<database>.<schema>.<table>``."""
_INCLUDED = re.compile(rf"(?:{re.escape(ANY_DATABASE)})?[(][?]:((?:[A-Za-z0-9_-]|\[[.]\]|[|])+)[)]")


def topic_pattern(prefix: str, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), database: str = "") -> str:
    """A Java regular expression for the topics of a connector, of some of its tables only, or of all but some, also
    where a database stands before the schema (SQL Server); ``database`` is the expression of what stands there where
    tables are included.
    """
    tables = "|".join(_literal(table) for table in include or exclude)
    some = f"{database}(?:{tables})" if include else f"(?!{ANY_DATABASE}(?:{tables})$).*" if exclude else ".*"
    return f"{_literal(prefix)}[.]{some}"


def includes_table(source: SourceSpec, table: str) -> bool:
    """Whether a source reads a table; a regular expression of the user's own is not second-guessed."""
    prefix, name = topic_pattern(source.name).removesuffix(".*"), names.sanitize_for_topic(table)
    if source.topics.startswith(f"{prefix}(?!(?:"):
        return re.fullmatch(source.topics, f"{source.name}.{name}") is not None
    some = list_included(source)
    return not some or any(each == name or each.endswith(f".{name}") for each in some)


def list_included(source: SourceSpec) -> tuple[str, ...]:
    """The tables of ``include``, as topics name them."""
    some = _INCLUDED.fullmatch(source.topics.removeprefix(topic_pattern(source.name).removesuffix(".*")))
    return () if some is None else tuple(some.group(1).replace("[.]", ".").split("|"))


def overlaps(source: SourceSpec, other: SourceSpec) -> bool:
    """Whether a source reads topics of another one, whose name begins with its own."""
    if source.topics == topic_pattern(source.name):
        return True
    both = (f"{other.name}.{table}" for table in list_included(source))
    return any(source.matches(topic) and other.matches(topic) for topic in both)


def _literal(name: str) -> str:
    return names.sanitize_for_topic(name).replace(".", "[.]")
