"""Changes of rows as SQL: inserts, updates, deletes, and rows that change or exchange their keys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.workload.tables import CODES, Column, Key, Table, drawn_key, key_literals, same
from tests.workload.values import Dialect, literal


@dataclass(frozen=True)
class Scope:
    """Where a change may be made: the tables as its transaction sees them, the keys that belong to somebody else
    (``taken``), and those that it has ``touched`` itself.
    """

    dice: random.Random
    dialect: Dialect
    tables: Sequence[Table]
    taken: set[tuple[str, Key]]
    touched: set[tuple[str, Key]]

    def table(self) -> Table:
        """One of the tables."""
        return self.dice.choice(self.tables)

    def live(self, table: Table) -> list[Key]:
        """Keys of rows that may be changed."""
        return [key for at, key in table.rows.items() if (table.shape.name, at) not in self.taken]

    def some(self, table: Table, most: int) -> list[Key]:
        """Up to ``most`` such keys, none where there are none."""
        live = self.live(table)
        return self.dice.sample(live, min(len(live), self.dice.randint(1, most)))

    def fresh(self, table: Table) -> Key | None:
        """A key that no row has; None where the dice do not find one."""
        for _ in range(20):
            key = drawn_key(table.shape, self.dice)
            if not table.has(key) and (table.shape.name, same(key, self.dialect)) not in self.taken:
                return key
        return None

    def spelled(self, table: Table, key: Key) -> Key | None:
        """Another spelling of a key, which the database takes for the same; None where there is none."""
        others = [code for code in CODES if table.shape.name == "words" and self.is_same((code,), key)]
        return (self.dice.choice(others),) if others else None

    def is_same(self, one: Key, other: Key) -> bool:
        """Whether the database takes two keys for the same."""
        return same(one, self.dialect) == same(other, self.dialect)

    def touch(self, table: Table, *keys: Key) -> None:
        """These keys are this transaction's own."""
        self.touched.update((table.shape.name, same(key, self.dialect)) for key in keys)

    def value(self, column: Column) -> str:
        """A value or NULL."""
        return "NULL" if self.dice.random() < 0.15 else literal(column.kind, self.dice, self.dialect)

    def where(self, table: Table, key: Key) -> str:
        """The condition that a row has this key."""
        values = key_literals(table.shape, key, self.dialect)
        pairs = zip(table.shape.key, values, strict=True)
        return " AND ".join(f"{column.name} = {value}" for column, value in pairs)

    def any_of(self, table: Table, keys: Sequence[Key]) -> str:
        """The condition that a row has one of these keys."""
        return " OR ".join(f"({self.where(table, key)})" for key in keys)


def change(scope: Scope, counts: Counter[str], *, whole: bool) -> Iterator[str]:
    """One change, or nothing where the dice find no row for it; ``whole``: changes of all rows of a table too."""
    weights: dict[Callable[[Scope], Iterator[str]], float] = {
        insert: 6,
        update: 8,
        delete: 3,
        reborn: 3,
        upsert: 2,
        move: 4,
        exchange: 4,
        one_after_the_other: 2,
    }
    if whole:
        weights |= {update_all: 1, delete_all: 0.4, shift: 1.5}
    [made] = scope.dice.choices(list(weights), list(weights.values()))
    told = list(made(scope))
    counts[made.__name__.replace("_", " ")] += bool(told)
    counts["large values"] += sum("repeat(" in sql for sql in told)
    yield from told


def insert(scope: Scope) -> Iterator[str]:
    """Up to three rows by one statement."""
    table = scope.table()
    rows = []
    for _ in range(scope.dice.randint(1, 3)):
        key = scope.fresh(table)
        if key is not None:
            table.put(key)
            scope.touch(table, key)
            rows.append(_row(scope, table, key))
    if rows:
        yield f"INSERT INTO {table.shape.name} ({_names(table)}) VALUES {', '.join(rows)}"


def update(scope: Scope) -> Iterator[str]:
    """Some columns of one row, or of a few."""
    table = scope.table()
    keys = scope.some(table, 3)
    if keys and table.columns:
        scope.touch(table, *keys)
        yield f"UPDATE {table.shape.name} SET {_settings(scope, table)} WHERE {scope.any_of(table, keys)}"


def update_all(scope: Scope) -> Iterator[str]:
    """Every row of a table."""
    table = scope.table()
    if table.columns:
        scope.touch(table, *table.rows.values())
        yield f"UPDATE {table.shape.name} SET {_settings(scope, table)}"


def delete(scope: Scope) -> Iterator[str]:
    """One row, or a few."""
    table = scope.table()
    keys = scope.some(table, 3)
    if keys:
        scope.touch(table, *keys)
        yield from _deleted(scope, table, keys)


def delete_all(scope: Scope) -> Iterator[str]:
    """Every row of a table."""
    table = scope.table()
    table.rows.clear()
    yield f"DELETE FROM {table.shape.name}"


def reborn(scope: Scope) -> Iterator[str]:
    """A row that is deleted and made again at once, perhaps more than once."""
    table = scope.table()
    for key in scope.some(table, 1):
        scope.touch(table, key)
        for _ in range(scope.dice.randint(1, 3)):
            yield from _deleted(scope, table, [key])
            yield f"INSERT INTO {table.shape.name} ({_names(table)}) VALUES {_row(scope, table, key)}"
            table.put(key)


def upsert(scope: Scope) -> Iterator[str]:
    """An insert over a row that is there, or is not."""
    table = scope.table()
    keys = [key for key in (*scope.some(table, 1), scope.fresh(table)) if key is not None]
    if table.shape.swaps or not keys or not table.columns:  # PostgreSQL: no ON CONFLICT on a deferrable key
        return
    key = scope.dice.choice(keys)
    scope.touch(table, key)
    row = f"INTO {table.shape.name} ({_names(table)}) VALUES {_row(scope, table, key)}"
    keeps_key = table.has(key)
    if scope.dialect == "postgres":
        of_key = ", ".join(column.name for column in table.shape.key)
        yield f"INSERT {row} ON CONFLICT ({of_key}) DO UPDATE SET {_settings(scope, table)}"
    elif scope.dice.random() < 0.5:
        yield f"REPLACE {row}"
        keeps_key = False
    else:
        yield f"INSERT {row} ON DUPLICATE KEY UPDATE {_settings(scope, table)}"
    if not keeps_key:
        table.put(key)


def move(scope: Scope) -> Iterator[str]:
    """A row that changes its key, perhaps values with it or behind it, perhaps again."""
    table = scope.table()
    for key in scope.some(table, 1):
        at = key
        for _ in range(scope.dice.choice((1, 1, 1, 2, 3))):
            to = scope.dice.choice((scope.fresh(table), scope.spelled(table, at), key))
            if to is None or to == at or (to == key and table.has(key) and not scope.is_same(at, key)):
                continue
            yield _moved(scope, table, at, to, with_values=scope.dice.random() < 0.4)
            at = to
            if scope.dice.random() < 0.3 and table.columns:
                yield f"UPDATE {table.shape.name} SET {_settings(scope, table)} WHERE {scope.where(table, at)}"


def one_after_the_other(scope: Scope) -> Iterator[str]:
    """A row gives its key up and another one takes it."""
    table = scope.table()
    keys = scope.dice.sample(live, 2) if len(live := scope.live(table)) > 1 else []
    away = scope.fresh(table)
    if keys and away is not None:
        yield _moved(scope, table, keys[0], away, with_values=scope.dice.random() < 0.3)
        yield _moved(scope, table, keys[1], keys[0], with_values=scope.dice.random() < 0.3)


def exchange(scope: Scope) -> Iterator[str]:
    """Rows that exchange their keys in a circle: by one statement where keys are checked late, else through a key in
    between.
    """
    table = scope.dice.choice([table for table in scope.tables if table.shape.swaps])
    live = scope.live(table)
    if len(live) < 2:
        return
    keys = scope.dice.sample(live, min(len(live), scope.dice.choice((2, 2, 3, 4))))
    scope.touch(table, *keys)
    circle = list(zip(keys, [*keys[1:], keys[0]], strict=True))
    if scope.dialect == "postgres":
        cases = " ".join(f"WHEN {was[0]} THEN {to[0]}" for was, to in circle)
        yield f"UPDATE {table.shape.name} SET id = CASE id {cases} END WHERE {scope.any_of(table, keys)}"
        return
    between = scope.fresh(table)
    if between is not None:
        yield _moved(scope, table, keys[-1], between, with_values=False)
        for was, to in reversed(circle[:-1]):
            yield _moved(scope, table, was, to, with_values=False)
        yield _moved(scope, table, between, keys[0], with_values=False)


def shift(scope: Scope) -> Iterator[str]:
    """Every row takes the key of the next one."""
    table = scope.dice.choice([table for table in scope.tables if table.shape.swaps])
    keys = sorted(table.rows.values())
    if not keys or max(int(str(key[0])) for key in keys) > 1000:
        return
    by = scope.dice.choice((1, 1, 2))
    moved = [(int(str(key[0])) + by,) for key in keys]
    scope.touch(table, *keys, *moved)
    table.rows.clear()
    for key in moved:
        table.put(key)
    order = "" if scope.dialect == "postgres" else " ORDER BY id DESC"
    yield f"UPDATE {table.shape.name} SET id = id + {by}{order}"


def _moved(scope: Scope, table: Table, was: Key, to: Key, *, with_values: bool) -> str:
    scope.touch(table, was, to)
    table.remove(was)
    table.put(to)
    literals = key_literals(table.shape, to, scope.dialect)
    parts = [f"{column.name} = {value}" for column, value in zip(table.shape.key, literals, strict=True)]
    if with_values and table.columns:
        parts.append(_settings(scope, table))
    return f"UPDATE {table.shape.name} SET {', '.join(parts)} WHERE {scope.where(table, was)}"


def _deleted(scope: Scope, table: Table, keys: Sequence[Key]) -> Iterator[str]:
    for key in keys:
        table.remove(key)
    yield f"DELETE FROM {table.shape.name} WHERE {scope.any_of(table, keys)}"


def _names(table: Table) -> str:
    return ", ".join(column.name for column in (*table.shape.key, *table.columns))


def _row(scope: Scope, table: Table, key: Key) -> str:
    values = [*key_literals(table.shape, key, scope.dialect), *map(scope.value, table.columns)]
    return f"({', '.join(values)})"


def _settings(scope: Scope, table: Table) -> str:
    few = min(len(table.columns), scope.dice.choice((1, 1, 2, 4)))
    columns = scope.dice.sample(table.columns, few)
    return ", ".join(f"{column.name} = {scope.value(column)}" for column in columns)
