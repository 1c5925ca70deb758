"""A user's text -> one read-only query in the engine's SQL and names. Pure."""

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
NOT_A_QUERY, QUERY_HINT = "Only queries are allowed here.", "Write one SELECT; `sql` never changes the lake."


@dataclass(frozen=True)
class SqlQuery:
    """A query, the SQL dialect that it is written in, and a text for each ``:name`` in it."""

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
    """Return the query for an engine with this dialect; ``databases`` has the engine's views by database and table.

    The text is returned verbatim if nothing has to be changed. An engine that ``guards_itself`` also gets text in its
    own dialect that cannot be parsed here. Raises ConfigError for a statement that is not a query, for several
    statements, for a name that several views have, for missing or superfluous parameters, and for what cannot be
    translated.
    """
    try:
        query = _parse_single(question.text, question.dialect)
    except ConfigError:
        if guards_itself and question.dialect == dialect and not question.parameters:
            return question.text
        raise
    if query is None:
        return question.text
    changed = [_bind_parameters(query, question.parameters), _resolve_views(query, databases)]
    if question.dialect == dialect:
        return query.sql(dialect=dialect, comments=False) if any(changed) else question.text
    if question.dialect == "athena":
        unnest.rows_as_columns(query, dialect)
    return query.sql(dialect=dialect, comments=False)


def _parse_single(text: str, dialect: Dialect) -> exp.Expr | None:
    """The parsed query; None for a statement that only inspects and contains no query to change: SHOW, EXPLAIN."""
    from sqlglot import exp  # noqa: PLC0415 - of an extra, which _parse has loaded

    statements = [each for each in _parse(text, dialect) if each is not None]
    if len(statements) != 1:
        raise ConfigError(NOT_A_QUERY, fix=QUERY_HINT)
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
        raise ConfigError(NOT_A_QUERY, fix=QUERY_HINT)
    return statement


def _parse(text: str, dialect: Dialect) -> list[exp.Expr | None]:
    sqlglot = extras.load("sqlglot")
    # it parses unknown statements as commands, with a warning; these are refused below
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        return list(sqlglot.parse(_mark_parameters(text) if dialect == "duckdb" else text, read=dialect))
    except sqlglot.errors.SqlglotError as error:
        first = str(error).splitlines()[0].rstrip(".")
        raise ConfigError(f"not valid {dialect} SQL: {first}.") from error


def _mark_parameters(text: str) -> str:
    """The text with DuckDB's own ``$name`` instead of ``:name``: after ``SELECT`` or ``(`` the parser would take the
    colon for that of a prefix alias (``total: a + b``). A colon after an operand stays.
    """
    from sqlglot import TokenType, tokenize  # noqa: PLC0415 - as above

    operands = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.R_PAREN)
    enders = (*operands, TokenType.R_BRACKET, TokenType.R_BRACE)
    tokens = tokenize(text, read="duckdb")
    marked = list(text)
    for before, colon, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_name = name.start == colon.end + 1 and name.text.isidentifier()
        is_first = before.token_type not in enders and not text[colon.start - 1].isalnum()
        if colon.token_type is TokenType.COLON and is_name and is_first:
            marked[colon.start] = "$"
    return "".join(marked)


def _bind_parameters(query: exp.Expr, parameters: Mapping[str, str]) -> bool:
    """Replace each ``:name`` by its text as a literal, so that no value can be parsed as SQL; return whether there were
    any.
    """
    from sqlglot import exp  # noqa: PLC0415 - as above

    places = [each for each in query.find_all(exp.Placeholder) if each.this]
    wanted = {str(each.this) for each in places}
    if missing := sorted(wanted - set(parameters)):
        raise ConfigError(f"the query needs a value for {', '.join(missing)}", fix=f"Add --param {missing[0]}=VALUE.")
    if unused := sorted(set(parameters) - wanted):
        raise ConfigError(f"the query has no :{unused[0]}{suggest(unused[0], wanted)}")
    for each in places:
        each.replace(exp.Literal.string(parameters[str(each.this)]))
    return bool(places)


def _resolve_views(query: exp.Expr, databases: Mapping[tuple[str, str], Sequence[str]]) -> bool:
    """Replace ``database.table`` by views, which keep the table's name as alias if they have no other; return whether
    there were any.
    """
    from sqlglot import exp  # noqa: PLC0415 - as above

    own = {cte.alias for cte in query.find_all(exp.CTE)}
    found = [(table, views) for table in query.find_all(exp.Table) if (views := _find_views(table, databases, own))]
    for table, views in found:
        *_, last = table.parts
        if len(views) > 1:
            name = ".".join(part.name for part in table.parts)
            raise ConfigError(f"{name} is ambiguous", fix=f"Use one of: {', '.join(views)}.")
        if not table.alias and not isinstance(table.parent, (exp.Describe, exp.Summarize)):
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
    """The views that a name in a query may denote. A table's name may contain dots, with or without the database's name
    before it; if written as one word it is quoted, and is not one of the query's ``own`` names.
    """
    parts = [part.name.lower() for part in table.parts]
    full_name = ".".join(parts)
    database, _, name = full_name.partition(".")
    if len(parts) > 1:
        return databases.get((database, name)) or databases.get((table.db.lower(), parts[-1]), ())
    if not name or table.name in own:
        return ()
    same = [views for (_, each), views in databases.items() if each == full_name]
    return databases.get((database, name)) or [view for views in same for view in views]
