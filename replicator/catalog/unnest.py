"""Athena's UNNEST in dialects that sqlglot does not cover: rows become columns. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from replicator.errors import ConfigError

if TYPE_CHECKING:
    from sqlglot import exp

    from replicator.protocols.engine import Dialect


def rows_as_columns(query: exp.Expr, dialect: Dialect) -> None:
    """Change a query of Athena in place: an array of ROWs is expanded into one column per field, as in Athena.

    Raises ConfigError for WITH ORDINALITY if the target counts from another number.
    """
    from sqlglot import exp  # noqa: PLC0415 - of an extra

    for each in list(query.find_all(exp.Unnest)):
        if each.args.get("offset") and dialect == "spark":
            raise ConfigError(
                "WITH ORDINALITY is not translated for Spark, which counts from 0", fix="Use `--engine duckdb`."
            )
        fields = _fields(each)
        if fields:
            each.replace(_unnest_fields(each, fields, dialect))


def _fields(unnested: exp.Unnest) -> list[str]:
    """The fields of ``CAST(... AS ARRAY(ROW(...)))``; none for anything else."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    items = unnested.expressions
    kind = items[0].to if len(items) == 1 and isinstance(items[0], exp.Cast) else None
    if kind is None or not kind.is_type("array") or not kind.expressions or not kind.expressions[0].is_type("struct"):
        return []
    return [field.name for field in kind.expressions[0].expressions]


def _unnest_fields(unnested: exp.Unnest, fields: list[str], dialect: Dialect) -> exp.Lateral:
    from sqlglot import exp  # noqa: PLC0415 - as above

    alias = unnested.args["alias"].copy() if unnested.alias else exp.TableAlias(this=exp.to_identifier("_unnested"))
    if not alias.columns:
        alias.set("columns", [exp.to_identifier(name, quoted=True) for name in fields])
    items = unnested.expressions[0].copy()
    if dialect == "spark":
        return exp.Lateral(this=exp.Subquery(this=exp.select(exp.Inline(this=items))), alias=alias)
    rows, number = _typed_rows(items), unnested.args.get("offset")
    depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
    spread = [exp.Anonymous(this="UNNEST", expressions=[rows, depth])]
    if number:
        name = number.copy() if isinstance(number, exp.Identifier) else exp.to_identifier("ordinality")
        alias.append("columns", name)
        numbers = [rows.copy(), exp.Literal.number(1)]
        spread.append(exp.Anonymous(this="GENERATE_SUBSCRIPTS", expressions=numbers))
    return exp.Lateral(this=exp.Subquery(this=exp.select(*spread)), alias=alias)


def _typed_rows(items: exp.Cast) -> exp.Expr:
    """The rows for DuckDB. Its CAST of JSON refuses objects with additional fields, which Athena's ignores."""
    from sqlglot import exp  # noqa: PLC0415 - as above

    if not isinstance(items.this, exp.ParseJSON):
        return items
    kinds = {field.name: field.args["kind"].sql(dialect="duckdb") for field in items.to.expressions[0].expressions}
    shape = exp.Literal.string(json.dumps([kinds]))
    return exp.Anonymous(this="JSON_TRANSFORM", expressions=[items.this.this, shape])
