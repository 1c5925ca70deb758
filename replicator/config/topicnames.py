"""The topics of a source as a regular expression: built from its tables, and parsed back into them."""

from __future__ import annotations

import re

from replicator.spec import SourceSpec, sanitize_for_topic

ANY_DATABASE = "(?:[^.]+[.])?"
"""An optional database before the schema in a topic's name: SQL Server's connector writes
``<prefix>.<database>.<schema>.<table>``.
"""
_INCLUDED = re.compile(rf"(?:{re.escape(ANY_DATABASE)})?[(][?]:((?:[A-Za-z0-9_-]|\[[.]\]|[|])+)[)]")


def topic_pattern(prefix: str, include: tuple[str, ...] = (), exclude: tuple[str, ...] = (), database: str = "") -> str:
    """Return a Java regular expression for the topics of a connector: all of them, those of some tables only, or all
    but some. For excluded tables a database may precede the schema (SQL Server); for included ones ``database`` is the
    expression of what precedes it.
    """
    tables = "|".join(_literal(table) for table in include or exclude)
    selection = f"{database}(?:{tables})" if include else f"(?!{ANY_DATABASE}(?:{tables})$).*" if exclude else ".*"
    return f"{_literal(prefix)}[.]{selection}"


def includes_table(source: SourceSpec, table: str) -> bool:
    """Return whether a source reads a table. A regular expression written by the user is assumed to include it."""
    prefix, name = topic_pattern(source.name).removesuffix(".*"), sanitize_for_topic(table)
    if source.topics.startswith(f"{prefix}(?!(?:"):
        return re.fullmatch(source.topics, source.topic(table)) is not None
    included = list_included(source)
    return not included or any(each == name or each.endswith(f".{name}") for each in included)


def list_included(source: SourceSpec) -> tuple[str, ...]:
    """Return the tables of ``include``, as they are named in topics."""
    match = _INCLUDED.fullmatch(source.topics.removeprefix(topic_pattern(source.name).removesuffix(".*")))
    return () if match is None else tuple(match.group(1).replace("[.]", ".").split("|"))


def overlaps(source: SourceSpec, other: SourceSpec) -> bool:
    """Return whether a source reads topics of another one whose name begins with its own."""
    if source.topics == topic_pattern(source.name):
        return True
    topics = (f"{other.name}.{table}" for table in list_included(source))
    return any(source.matches(topic) and other.matches(topic) for topic in topics)


def _literal(name: str) -> str:
    return sanitize_for_topic(name).replace(".", "[.]")
