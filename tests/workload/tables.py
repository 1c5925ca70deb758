"""The tables of the workload: columns, keys, and how each may change its shape while it lives."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.workload.values import Dialect, text

SCHEMA = "living"
"""Database (MariaDB) or schema (PostgreSQL) of the workload."""

Key = tuple[object, ...]


@dataclass(frozen=True)
class Column:
    """A column of a kind of value (`values.literal`)."""

    name: str
    kind: str


@dataclass(frozen=True)
class Shape:
    """A table as it is made. ``swaps``: rows exchange their keys. ``evolves``: it changes its columns.

    A column of a kind that a database does not have is left out there.
    """

    name: str
    key: tuple[Column, ...]
    columns: tuple[Column, ...]
    swaps: bool = False
    evolves: bool = False


def _columns(**kinds: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in kinds.items())


CODES = (
    *("abc", "ABC", "Abc", "abc ", "x", "y", "o'clock", 'quo"te', "back\\slash", "a%b", "007", "7", "1.50", "null"),
    *('{"a":1}', "日本", "ö" * 20, "a/b", "@", "tab\t"),
)
_AREAS, _DAYS, _SUMS = ("north", "Öst"), ("1970-01-01", "2024-12-31"), ("0.00", "1.50", "-0.01", "99999999.99", "7.00")

SHAPES = (
    Shape(
        "docs",
        _columns(id="int"),
        _columns(n="int", amount="decimal(10,2)", note="varchar(40)", flag="flag", born="date", at_time="moment")
        + _columns(seen="instant", ratio="double", body="body", data="bytes", meta="json", pick="choice")
        + _columns(tags="texts", numbers="numbers", mark="uuid"),
        evolves=True,
    ),
    Shape(
        "pairs",
        _columns(area="varchar(40)", day="date", amount="decimal(10,2)"),
        _columns(n="int", note="varchar(40)", body="body"),
        evolves=True,
    ),
    Shape("words", _columns(code="varchar(40)"), _columns(n="int", body="body")),
    Shape("berths", _columns(id="int"), _columns(swimmer="varchar(40)", lane="small", body="body"), swaps=True),
)

_TYPES: dict[str, tuple[str, str]] = {
    "small": ("int", "int"),
    "flag": ("boolean", "boolean"),
    "moment": ("datetime(6)", "timestamp(6)"),
    "instant": ("timestamp(6) NULL DEFAULT NULL", "timestamptz(6)"),
    "double": ("double", "double precision"),
    "body": ("mediumtext", "text"),
    "bytes": ("mediumblob", "bytea"),
    "json": ("json", "jsonb"),
    "texts": ("", "text[]"),
    "numbers": ("", "int[]"),
    "uuid": ("", "uuid"),
    "choice": ("enum('low','mid','very high')", ""),
}
"""Kinds whose types have other names: MariaDB's, PostgreSQL's."""
_OUT_OF_LINE = ("body", "bytes", "json", "texts", "numbers")
_READ_AS_TEXT = ("json", "uuid")


def type_of(kind: str, dialect: Dialect) -> str:
    """A column's type in SQL."""
    told = _TYPES.get(kind, (kind, kind))
    return told[0] if dialect == "mariadb" else told[1]


def _of(shape: Shape, dialect: Dialect) -> list[Column]:
    return [column for column in shape.columns if type_of(column.kind, dialect)]


def create(shape: Shape, dialect: Dialect) -> list[str]:
    """The statements that make a table. Rows of PostgreSQL that swap keys need their whole former self to be sent."""
    deferred = dialect == "postgres" and shape.swaps
    own = _of(shape, dialect)
    columns = [f"{column.name} {type_of(column.kind, dialect)} NOT NULL" for column in shape.key]
    columns += [f"{column.name} {type_of(column.kind, dialect)}" for column in own]
    key = ", ".join(column.name for column in shape.key)
    columns.append(f"PRIMARY KEY ({key})" + (" DEFERRABLE INITIALLY DEFERRED" if deferred else ""))
    made = [f"CREATE TABLE {shape.name} ({', '.join(columns)})"]
    if dialect == "postgres":
        large = [column.name for column in own if column.kind in _OUT_OF_LINE]
        made += [f"ALTER TABLE {shape.name} ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in large]
    if deferred:
        made.append(f"ALTER TABLE {shape.name} REPLICA IDENTITY FULL")
    return made


def select(table: Table, dialect: Dialect) -> str:
    """The SELECT that reads a table in the types that silver has."""
    columns = [column.name for column in table.shape.key]
    for column in table.columns:
        as_text = dialect == "postgres" and column.kind in _READ_AS_TEXT
        columns.append(f"{column.name}::text AS {column.name}" if as_text else column.name)
    return f"SELECT {', '.join(columns)} FROM {table.shape.name}"


def key_literals(shape: Shape, key: Key, dialect: Dialect) -> list[str]:
    """The literals of a key's values."""
    return [str(value) if isinstance(value, int) else text(str(value), dialect) for value in key]


def drawn_key(shape: Shape, dice: random.Random) -> Key:
    """Some key; a space small enough for keys to be used again."""
    match shape.name:
        case "words":
            return (dice.choice(CODES),)
        case "pairs":
            return (dice.choice(_AREAS), dice.choice(_DAYS), dice.choice(_SUMS))
        case "berths":
            return (dice.randint(1, 14),)
    return (dice.choice((dice.randint(1, 40), dice.randint(1, 40), 2**31 - 1, -(2**31))),)


def same(key: Key, dialect: Dialect) -> Key:
    """What the database takes for the same key: MariaDB's texts fold case and trailing blanks."""
    if dialect == "postgres":
        return key
    return tuple(value.casefold().rstrip(" ") if isinstance(value, str) else value for value in key)


@dataclass
class Table:
    """A table of the model: its live keys, by what the database takes for the same, and its columns now.

    ``changed`` counts its changes of shape.
    """

    shape: Shape
    dialect: Dialect
    rows: dict[Key, Key] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    changed: int = 0

    def __post_init__(self) -> None:
        self.columns = self.columns or _of(self.shape, self.dialect)

    def copy(self) -> Table:
        """The same, to be changed on its own."""
        return Table(self.shape, self.dialect, dict(self.rows), list(self.columns), self.changed)

    def put(self, key: Key) -> None:
        """A row with this key is there."""
        self.rows[same(key, self.dialect)] = key

    def remove(self, key: Key) -> None:
        """The row with this key is gone."""
        del self.rows[same(key, self.dialect)]

    def has(self, key: Key) -> bool:
        """Whether a row with this key is there."""
        return same(key, self.dialect) in self.rows
