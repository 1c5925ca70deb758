"""A query as text -> a query that an engine may be given: one, that only reads, in the engine's SQL and names. Pure."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from replicator.catalog import extras, unnest
from replicator.errors import ConfigError
from replicator.spelling import suggest

if TYPE_CHECKING:
    from sqlglot import exp

    from replicator.protocols.engine import Dialect

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:(?:ANALYZE|VERBOSE|EXTENDED|FORMATTED)\s+|\([^)]*\)\s*)*", re.IGNORECASE)
NOT_A_QUERY, QUERY_HINT = "Only queries are answered here.", "Write one SELECT; the lake is never changed by sql."


@dataclass(frozen=True)
class SqlQuery:
    """A query, the SQL that it is written in, and a text for each ``:name`` in it."""

    text: str
    dialect: Dialect
    parameters: Mapping[str, str] = field(default_factory=dict)


def transpile(
    question: SqlQuery,
    dialect: Dialect,
    databases: Mapping[tuple[str, str], Sequence[str]],
    *,
    guards_itself: bool = False,
) -> str:
    """The question for an engine with this dialect, whose views ``databases`` has by database and table.

    Word for word as it is where nothing has to be said otherwise. An engine that ``guards_itself`` gets whatever is in
    its own dialect and not understood here. Raises ConfigError for what is no query or not one alone, for a name that
    several views have, for parameters that are missing or superfluous, and for what cannot be translated.
    """
    try:
        told = _parse_single(question.text, question.dialect)
    except ConfigError:
        if guards_itself and question.dialect == dialect and not question.parameters:
            return question.text
        raise
    if told is None:
        return question.text
    changed = [_bind_parameters(told, question.parameters), _resolve_views(told, databases)]
    if question.dialect == dialect:
        return told.sql(dialect=dialect, comments=False) if any(changed) else question.text
    if question.dialect == "athena":
        unnest.rows_as_columns(told, dialect)
    return told.sql(dialect=dialect, comments=False)


def _parse_single(text: str, dialect: Dialect) -> exp.Expr | None:
    """None for a statement that looks at something and has no query in it that could be changed: SHOW, EXPLAIN."""
    from sqlglot import exp  # noqa: PLC0415 - of an extra, which _parsed has asked for

    statements = [each for each in _parse(text, dialect) if each is not None]
    if len(statements) != 1:
        raise ConfigError(NOT_A_QUERY, mend=QUERY_HINT)
    [statement] = statements
    explained = _EXPLAIN.match(text)
    if isinstance(statement, exp.Command) and explained is not None:
        _parse_single(text[explained.end() :], dialect)
        return None
    if isinstance(statement, exp.Show) or (isinstance(statement, exp.Command) and statement.name.upper() == "SHOW"):
        return None
    writing = (exp.DML, exp.DDL, exp.Into, exp.Command)
    reading = (exp.Query, exp.Values, exp.Describe, exp.Summarize)
    if not isinstance(statement, reading) or any(statement.find_all(*writing)):
        raise ConfigError(NOT_A_QUERY, mend=QUERY_HINT)
    return statement


def _parse(text: str, dialect: Dialect) -> list[exp.Expr | None]:
    sqlglot = extras.load("sqlglot")
    # what it does not know it takes as a command, with a warning; here that is refused
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        return list(sqlglot.parse(_mark_parameters(text) if dialect == "duckdb" else text, read=dialect))
    except sqlglot.errors.SqlglotError as error:
        first = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(f"This is not SQL of {dialect}: {first}.") from error


def _mark_parameters(text: str) -> str:
    """The same with DuckDB's own ``$name`` in the place of ``:name``: behind ``SELECT`` or ``(`` the parser takes the
    colon for that of an alias written first (``total: a + b``). One behind an operand stays.
    """
    from sqlglot import TokenType, tokenize  # noqa: PLC0415 - as above

    operands = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN)
    kept = (*operands, TokenType.R_BRACKET, TokenType.R_BRACE)
    tokens = tokenize(text, read="duckdb")
    marked = list(text)
    for before, colon, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_name = name.start == colon.end + 1 and name.text.isidentifier()
        is_first = before.token_type not in kept and not text[colon.start - 1].isalnum()
        if colon.token_type is TokenType.COLON and is_name and is_first:
            marked[colon.start] = "$"
    return "".join(marked)


def _bind_parameters(query: exp.Expr, parameters: Mapping[str, str]) -> bool:
    """Texts in the place of ``:name``, as literals, so that no value can be read as SQL."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    places = [each for each in query.find_all(exp.Placeholder) if each.this]
    wanted = {str(each.this) for each in places}
    if missing := sorted(wanted - set(parameters)):
        raise ConfigError(f"the query needs a value for {', '.join(missing)}", mend=f"Add --param {missing[0]}=VALUE.")
    if unused := sorted(set(parameters) - wanted):
        raise ConfigError(f"the query has no :{unused[0]}{suggest(unused[0], wanted)}")
    for each in places:
        each.replace(exp.Literal.string(parameters[str(each.this)]))
    return bool(places)


def _resolve_views(query: exp.Expr, databases: Mapping[tuple[str, str], Sequence[str]]) -> bool:
    """Views in the place of ``database.table``; without another alias they go on by the table's name."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    own = {cte.alias for cte in query.find_all(exp.CTE)}
    found = [(table, views) for table in query.find_all(exp.Table) if (views := _find_views(table, databases, own))]
    for table, views in found:
        *_, last = table.parts
        if len(views) > 1:
            told = ".".join(part.name for part in table.parts)
            raise ConfigError(f"{told} is ambiguous", mend=f"Write one of: {', '.join(views)}.")
        if not table.alias and not isinstance(table.parent, exp.Describe):
            table.set("alias", exp.TableAlias(this=last.copy()))
        table.set("this", exp.to_identifier(views[0], quoted=True))
        table.set("db", None)
        table.set("catalog", None)
    for column in query.find_all(exp.Column) if found else ():
        if (column.db.lower(), column.table.lower()) in databases:
            column.set("db", None)
            column.set("catalog", None)
    return bool(found)


def _find_views(
    table: exp.Table, databases: Mapping[tuple[str, str], Sequence[str]], own: Collection[str]
) -> Sequence[str]:
    """The views that a name in a query may mean. One of a table may have dots, with or without the database's name
    before it; of one word it is quoted then, and none of the query's ``own``.
    """
    parts = [part.name.lower() for part in table.parts]
    told = ".".join(parts)
    database, _, name = told.partition(".")
    if len(parts) > 1:
        return databases.get((database, name)) or databases.get((table.db.lower(), parts[-1]), ())
    if not name or table.name in own:
        return ()
    same = [views for (_, each), views in databases.items() if each == told]
    return databases.get((database, name)) or [view for views in same for view in views]
