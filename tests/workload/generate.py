"""A random workload for one database: the same seed gives the same statements.

The generator keeps a model of which keys are there, so that every statement is legal. It does not know values: the
database itself is the truth that silver is compared with.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.workload import changes, evolutions
from tests.workload.tables import SHAPES, Key, Table, create
from tests.workload.values import Dialect

Model = dict[str, Table]


@dataclass(frozen=True)
class Statement:
    """SQL of one of two sessions that work at the same time."""

    session: int
    sql: str


@dataclass(frozen=True)
class Workload:
    """What runs on one database. ``setup`` comes before the connector starts; ``rounds`` are divided by quiet points,
    and ``tables`` is how they look at the end of each round. ``counts`` says how often each kind of thing happens.
    """

    dialect: Dialect
    setup: tuple[str, ...]
    rounds: tuple[tuple[Statement, ...], ...]
    tables: tuple[tuple[Table, ...], ...]
    counts: Counter[str] = field(hash=False)


def workload(seed: int, dialect: Dialect, size: int, rounds: int = 2) -> Workload:
    """About ``size`` transactions on one database, in so many rounds."""
    made = _Generator(random.Random(f"{seed} {dialect}"), dialect)
    setup = tuple(made.setup())
    played, tables = [], []
    for number in range(rounds):
        played.append(tuple(made.round(size * (number + 1) // rounds)))
        tables.append(tuple(table.copy() for table in made.model.values()))
    return Workload(dialect, setup, tuple(played), tuple(tables), made.counts)


@dataclass
class _Open:
    """A transaction at work on its own copy of the model. ``taken`` are keys that it must not touch or make."""

    session: int
    model: Model
    taken: set[tuple[str, Key]]
    alone: bool
    touched: set[tuple[str, Key]] = field(default_factory=set)


class _Generator:
    def __init__(self, dice: random.Random, dialect: Dialect) -> None:
        self.dice = dice
        self.dialect: Dialect = dialect
        self.model: Model = {shape.name: Table(shape, dialect) for shape in SHAPES}
        self.counts: Counter[str] = Counter()

    def setup(self) -> Iterator[str]:
        """The tables, with some rows that the snapshot finds."""
        for table in self.model.values():
            yield from create(table.shape, self.dialect)
        for _ in range(5 * len(self.model)):
            yield from changes.insert(self._scope(_Open(0, self.model, set(), alone=True)))

    def round(self, upto: int) -> Iterator[Statement]:
        """Transactions until so many have ended."""
        while self.counts["transactions"] < upto:
            way = self.dice.random()
            if way < 0.08:
                yield from self._single(self._lonely())
            elif way < 0.3:
                yield from self._single(self._changed_once())
            elif way < 0.55:
                yield from self._two_at_once()
            else:
                opened = self._opened(0, set(), alone=True)
                yield from self._told(0, self._transaction(opened))
                self._ended(opened)

    def _single(self, statements: Iterator[str]) -> Iterator[Statement]:
        """Statements that commit themselves."""
        for sql in statements:
            self.counts["transactions"] += 1
            yield from self._told(0, [sql])

    def _lonely(self) -> Iterator[str]:
        """What MariaDB commits by itself, and PostgreSQL where nobody asked for a transaction."""
        table = self.dice.choice(list(self.model.values()))
        if self.dice.random() < 0.35:
            self.counts["truncates"] += 1
            table.rows.clear()
            yield f"TRUNCATE TABLE {table.shape.name}"
        else:
            yield from self._evolved(self.model)

    def _evolved(self, model: Model) -> Iterator[str]:
        evolving = [table for table in model.values() if table.shape.evolves]
        yield from self._counted("changes of shape", evolutions.evolve(self.dice.choice(evolving), self.dice))

    def _changed_once(self) -> Iterator[str]:
        yield from changes.change(self._scope(_Open(0, self.model, set(), alone=True)), self.counts, whole=True)

    def _two_at_once(self) -> Iterator[Statement]:
        """Two transactions whose statements take turns, on rows of their own; the dice say which of them ends first."""
        first = self._opened(0, set(), alone=False)
        earlier = list(self._transaction(first))
        second = self._opened(1, first.touched, alone=False)
        later = list(self._transaction(second))
        queues = [(0, earlier), (1, later)]
        while queues:
            at = self.dice.randrange(len(queues))
            session, queue = queues[at]
            yield from self._told(session, [queue.pop(0)])
            if not queue:
                del queues[at]
        self.counts["side by side"] += 2
        for opened in (first, second):
            self._merged(opened)

    def _opened(self, session: int, taken: set[tuple[str, Key]], *, alone: bool) -> _Open:
        return _Open(session, {name: table.copy() for name, table in self.model.items()}, taken, alone)

    def _transaction(self, opened: _Open) -> Iterator[str]:
        """BEGIN to COMMIT or ROLLBACK; ``opened.model`` is afterwards what the transaction left."""
        before = {name: table.copy() for name, table in opened.model.items()}
        yield "BEGIN"
        for _ in range(self.dice.choice((1, 2, 3, 3, 5, 8))):
            if self.dice.random() < 0.15:
                yield from self._savepoint(opened)
            else:
                yield from self._step(opened)
        self.counts["transactions"] += 1
        if self.dice.random() < 0.15:
            self.counts["rollbacks"] += 1
            opened.model = before
            yield "ROLLBACK"
        else:
            yield "COMMIT"

    def _step(self, opened: _Open) -> Iterator[str]:
        if opened.alone and self.dialect == "postgres" and self.dice.random() < 0.05:
            yield from self._transactional(opened)
        else:
            yield from changes.change(self._scope(opened), self.counts, whole=opened.alone)

    def _transactional(self, opened: _Open) -> Iterator[str]:
        """What only PostgreSQL does inside a transaction."""
        if self.dice.random() < 0.5:
            # a table with a deferrable key cannot be truncated in the transaction that changed it
            table = self.dice.choice([table for table in opened.model.values() if not table.shape.swaps])
            table.rows.clear()
            yield from self._counted("truncates", iter([f"TRUNCATE {table.shape.name}"]))
        else:
            yield from self._evolved(opened.model)

    def _savepoint(self, opened: _Open) -> Iterator[str]:
        self.counts["savepoints"] += 1
        name = f"s{self.counts['savepoints']}"
        before = {table: state.copy() for table, state in opened.model.items()}
        yield f"SAVEPOINT {name}"
        for _ in range(self.dice.randint(1, 3)):
            yield from self._step(opened)
        if self.dice.random() < 0.6:
            opened.model = before
            yield f"ROLLBACK TO SAVEPOINT {name}"
        elif self.dice.random() < 0.5:
            yield f"RELEASE SAVEPOINT {name}"

    def _scope(self, opened: _Open) -> changes.Scope:
        return changes.Scope(self.dice, self.dialect, list(opened.model.values()), opened.taken, opened.touched)

    def _ended(self, opened: _Open) -> None:
        self.model = opened.model

    def _merged(self, opened: _Open) -> None:
        """Only what the transaction touched: another one went on beside it."""
        for name, key in sorted(opened.touched, key=str):  # a set's own order is another one in each process
            rows, left = self.model[name].rows, opened.model[name].rows
            rows.pop(key, None)
            if key in left:
                rows[key] = left[key]

    def _told(self, session: int, statements: Iterator[str] | list[str]) -> Iterator[Statement]:
        for sql in statements:
            self.counts["statements"] += 1
            yield Statement(session, sql)

    def _counted(self, what: str, statements: Iterator[str]) -> Iterator[str]:
        told = list(statements)
        self.counts[what] += bool(told)
        yield from told
