"""Changes of a table's shape that silver follows without losing anything (docs/limits.md says which it cannot).

DDL sends no rows: a column that comes with a default is written once in every row, and no name is used twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from tests.workload.tables import Column, Table, type_of

MOST = 8
"""Changes of one table."""
_WIDER = {"int": "bigint", "decimal(10,2)": "decimal(14,4)", "varchar(40)": "varchar(200)"}
_NEW = ("int", "decimal(10,2)", "varchar(40)", "flag", "date", "moment", "body", "double")
_DEFAULTS = {"int": "7", "decimal(10,2)": "7.77", "varchar(40)": "'seven'"}


def evolve(table: Table, dice: random.Random) -> Iterator[str]:
    """One change of the table's columns, nothing where it has had its share."""
    if table.changed >= MOST:
        return
    table.changed += 1
    wide = [column for column in table.columns if column.kind in _WIDER]
    ways = [_added, _added_with_default, *([_widened] if wide else []), *([_dropped] if len(table.columns) > 2 else [])]
    yield from dice.choice(ways)(table, dice)


def _fresh(table: Table, kind: str) -> Column:
    return Column(f"c{table.changed}_{kind.partition('(')[0]}", kind)


def _added(table: Table, dice: random.Random) -> Iterator[str]:
    column = _fresh(table, dice.choice(_NEW))
    table.columns.append(column)
    yield f"ALTER TABLE {table.shape.name} ADD COLUMN {column.name} {type_of(column.kind, table.dialect)}"


def _added_with_default(table: Table, dice: random.Random) -> Iterator[str]:
    column = _fresh(table, dice.choice(list(_DEFAULTS)))
    kind = type_of(column.kind, table.dialect)
    table.columns.append(column)
    yield f"ALTER TABLE {table.shape.name} ADD COLUMN {column.name} {kind} DEFAULT {_DEFAULTS[column.kind]}"
    told = {"int": "8", "decimal(10,2)": "8.88", "varchar(40)": "'eight'"}[column.kind]
    yield f"UPDATE {table.shape.name} SET {column.name} = {told}"


def _widened(table: Table, dice: random.Random) -> Iterator[str]:
    column = dice.choice([column for column in table.columns if column.kind in _WIDER])
    kind = _WIDER[column.kind]
    table.columns[table.columns.index(column)] = replace(column, kind=kind)
    name, told = table.shape.name, type_of(kind, table.dialect)
    way = f"MODIFY {column.name}" if table.dialect == "mariadb" else f"ALTER COLUMN {column.name} TYPE"
    yield f"ALTER TABLE {name} {way} {told}"


def _dropped(table: Table, dice: random.Random) -> Iterator[str]:
    column = dice.choice(table.columns)
    table.columns.remove(column)
    yield f"ALTER TABLE {table.shape.name} DROP COLUMN {column.name}"
