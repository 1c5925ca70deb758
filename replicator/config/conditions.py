"""Checks of SQL over a table's rows that need no Spark (``apply_as_deletes``; ``where`` and ``derive`` of a
``transform``; ``where`` and ``select`` of a feed), based on its words. Spark finds the remaining errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from replicator.config.sqlexpressions import (
    ALL_COLUMNS,
    find_unknown_column,
    is_arithmetic,
    list_columns,
    row_level_obstacle,
    single_column,
)
from replicator.spelling import suggest

_COMPARE = "not a boolean: compare it, as in `deleted = 1`"
_BOOLEAN = "BOOLEAN"


def check_delete_condition(condition: str, generated: Sequence[str]) -> None:
    """Raise ValueError for an ``apply_as_deletes`` that reads no column, that reads one which PostgreSQL's stream never
    has (debezium.md E8), or that is no condition on each row.
    """
    words = list_columns(condition)
    column = _first(generated, words)
    if column is not None:
        raise ValueError(
            f"apply_as_deletes reads {column!r}, a generated column that is not in the stream: write its expression"
        )
    if not words:
        raise ValueError("apply_as_deletes must be a condition over columns of the table and names none of them")
    refuse_beyond_row("apply_as_deletes", condition)
    if is_arithmetic(condition):
        raise ValueError(f"apply_as_deletes returns a number, {_COMPARE}")


def refuse_beyond_row(what: str, sql: str) -> None:
    """Raise ValueError for SQL that does not depend on each row alone, or is not deterministic (debezium.md M2)."""
    obstacle = row_level_obstacle(sql)
    if obstacle is not None:
        raise ValueError(f"{what} has {obstacle}")


def refuse_undeclared_columns(condition: str, table: str, columns: Mapping[str, str]) -> None:
    """Raise ValueError for an ``apply_as_deletes`` that reads none of the declared columns, or an undeclared one, and
    for one that is a single column whose type is not ``BOOLEAN``. ``columns`` are the declared ones by their source
    names, with their Spark types; nothing is checked where there are none.
    """
    if not columns:
        return
    words = list_columns(condition)
    if not {ALL_COLUMNS, *columns} & set(words):
        hint = suggest(words[0], columns)
        raise ValueError(
            f"apply_as_deletes of {table} must be a condition over columns of the table and names none of them{hint}"
        )
    refuse_unknown_column(f"apply_as_deletes of {table}", condition, columns)
    column = single_column(condition)
    kind = _BOOLEAN if column is None else columns.get(column, _BOOLEAN)
    if kind != _BOOLEAN:
        raise ValueError(f"apply_as_deletes of {table} is {column!r} alone, which is {kind}, {_COMPARE}")


def refuse_unknown_column(what: str, sql: str, columns: Collection[str]) -> None:
    """Raise ValueError for SQL that reads a column which is not among these, by their source names."""
    unknown = find_unknown_column(sql, columns)
    if unknown is not None:
        hint = suggest(unknown, columns)
        raise ValueError(f"{what} reads {unknown!r}, which is not a declared column: declare it if it exists{hint}")


def refuse_masked_column(condition: str, table: str, hidden: Iterable[str]) -> None:
    """Raise ValueError for an ``apply_as_deletes`` that reads a column which is hidden before bronze: it would never
    match the value, and delete nothing.
    """
    column = _first(hidden, list_columns(condition))
    if column is not None:
        raise ValueError(
            f"apply_as_deletes of {table} reads {column!r}, which mask_before_bronze hides: hash or drop it in "
            "`transform` instead, which is applied after the condition"
        )


def _first(columns: Iterable[str], words: Sequence[str]) -> str | None:
    return next((name for name in columns if name in words or ALL_COLUMNS in words), None)
