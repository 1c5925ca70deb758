"""Random stars: up to five tables, some of which are known by their history, a model that is a tree of look-ups over
them, a model over that one, batches of changes, and what befalls a table beside them: columns that come and widen, a
TRUNCATE, a rebuild, a purge, upkeep, or another table in its place. One seed is one world and all that happens in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from replicator.jvm import gateway
from replicator.lake import HISTORY, Lake
from replicator.protocols import TableFormat
from replicator.spec import INCREMENTAL, Evolution, Model, ModelColumn, Progress, Table, Target

CHILDREN = 4
IDS = 12
"""Keys are few, so that they meet, and come again after a delete."""

_OURS = [
    T.StructField("_seq", T.StringType()),
    T.StructField("_deleted", T.BooleanType()),
    T.StructField("_column_seq", T.MapType(T.StringType(), T.StringType())),
    T.StructField("_source_ts_ms", T.LongType()),
]
_PAST = [T.StructField("__START_AT", T.StringType()), T.StructField("__END_AT", T.StringType())]
_SHAPE = {"id": "int", "part": "string", "v": "int", "tags": "string"}

Row = dict[str, Any]
Key = tuple[Any, ...]


@dataclass
class World:
    """Tables by name, with their rows by key, and the types of their columns; of those that models know by their
    history (``past``) all states by key and start, each with its end; the models; how many batches and writes there
    were. ``calm``: there are no histories, and nothing but rows changes.
    """

    seed: int
    calm: bool = False
    rows: dict[str, dict[Key, Row]] = field(default_factory=dict)
    states: dict[str, dict[tuple[Key, str], tuple[Row, str | None]]] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    past: frozenset[str] = frozenset()
    models: list[Model] = field(default_factory=list)
    batches: int = 0
    writes: int = 0

    def __post_init__(self) -> None:
        self.chance, self.fate = random.Random(self.seed), random.Random(f"fate {self.seed}")
        self.keys = {f"t{number}": ("id",) for number in range(self.chance.randint(2, 5))}
        if self.chance.random() < 0.5:
            self.keys["t0"] = ("id", "part")
        self.rows, self.states = {name: {} for name in self.keys}, {name: {} for name in self.keys}
        self.types = {name: {column: _SHAPE.get(column, "int") for column in _columns()} for name in self.keys}
        others = [name for name in self.keys if name != "t0" and not self.calm]
        self.past = frozenset(name for name in others if self.fate.random() < 0.3)
        self.models = _models(self.chance, self.keys, self.past)

    def table(self, name: str, lake: Lake) -> Table:
        """A table's place in silver, or that of its history."""
        if name in self.past:
            return lake.history("s", f"db.{name}", (*self.keys[name], "__START_AT"))
        return lake.silver("s", f"db.{name}", self.keys[name])

    def take(self, spark: SparkSession, silver: TableFormat, lake: Lake) -> None:
        """One batch: rows of one or two tables come, change, refer to others, go, and come again; before some of them
        one of the tables is altered.
        """
        inputs = {given for model in self.models for given in model.inputs.values()} - {"star"}
        used = sorted(given.rpartition(".")[2].removesuffix(HISTORY) for given in inputs)
        names = used if not self.batches else self.chance.sample(used, self.chance.randint(1, 2))
        if self.batches and not self.calm and self.fate.random() < 0.3:
            self._befall(spark, silver, lake, self.fate.choice(used))
        for name in names:
            changed = self._changes(name, 3 * IDS if not self.batches else self.chance.randint(1, 4))
            self._write(spark, silver, self.table(name, lake), name, changed)
        self.batches += 1

    def _befall(self, spark: SparkSession, silver: TableFormat, lake: Lake, name: str) -> None:
        table = self.table(name, lake)
        kind = self.fate.choice(["column", "wider", "truncate", "rebuild", "another", "purge", "upkeep"])
        if kind == "column":
            self.types[name][f"more_{self.batches}"] = "int"
            silver.evolve(spark, table, Evolution(added=((f"more_{self.batches}", "int"),)))
        elif kind == "wider":
            column = self.fate.choice(["id", "v", "to_0"])
            self.types[name][column] = "bigint"
            silver.evolve(spark, table, Evolution(widened=((column, "bigint"),)))
        elif kind == "truncate":
            self._write(spark, silver, table, name, dict.fromkeys(self.rows[name]))
        elif kind == "upkeep":
            silver.maintain(spark, table, 0)
        else:
            self._rewrite(spark, silver, table, name, kind)

    def _rewrite(self, spark: SparkSession, silver: TableFormat, table: Table, name: str, kind: str) -> None:
        """All rows once more: without those that were deleted, or without some ids, here or in another table."""
        gone = self.fate.randrange(IDS)
        rows = silver.read(spark, table).where("NOT _deleted" if kind == "purge" else f"id <> {gone}")
        if kind != "purge":
            self.rows[name] = {key: row for key, row in self.rows[name].items() if row["id"] != gone}
            states = self.states[name].items()
            self.states[name] = {place: state for place, state in states if state[0]["id"] != gone}
        if kind == "another":
            silver.drop(spark, table)
        silver.replace(rows, table, Progress(kind, self.batches))

    def _changes(self, name: str, count: int) -> dict[Key, Row | None]:
        changed: dict[Key, Row | None] = {}
        for _ in range(count):
            key = tuple(self._key_value(column) for column in self.keys[name])
            is_gone = key in self.rows[name] and self.chance.random() < 0.35
            changed[key] = None if is_gone else self._row(name, key)
        return changed

    def _key_value(self, column: str) -> Any:
        return self.chance.randrange(IDS) if column == "id" else self.chance.choice("xy")

    def _row(self, name: str, key: Key) -> Row:
        old = self.rows[name].get(key, {})
        row: Row = dict.fromkeys(_columns()) | {"v": self.chance.randrange(5), "tags": self._tags()}
        for child in range(CHILDREN):
            stays = old and self.chance.random() < 0.5
            fresh = self.chance.choice([None, *range(IDS + 1)])
            row[f"to_{child}"] = old[f"to_{child}"] if stays else fresh
        return row | dict(zip(self.keys[name], key, strict=True))

    def _tags(self) -> str:
        return ",".join(self.chance.sample("abc", self.chance.randint(1, 3)))

    def _write(
        self,
        spark: SparkSession,
        silver: TableFormat,
        table: Table,
        name: str,
        changed: dict[Key, Row | None],
    ) -> None:
        told = []
        self.writes += 1
        at = f"{self.writes:06}"
        for key, row in changed.items():
            blank: Row = dict.fromkeys(_columns()) | dict(zip(self.keys[name], key, strict=True))
            told += self._told(name, key, row, blank, at)
            if row is None:
                self.rows[name].pop(key, None)
            else:
                self.rows[name][key] = row
        schema = T.StructType([*self.fields(name), *_OURS, T.StructField("_op", T.StringType())])
        silver.put(gateway.create_frame(spark, told, schema), table, Progress("bronze", self.writes))

    def _told(self, name: str, key: Key, row: Row | None, blank: Row, at: str) -> list[tuple[Any, ...]]:
        """The rows of silver, or of the history, that a change of a key makes."""

        def line(values: Row, seq: str, *interval: str | None) -> tuple[Any, ...]:
            cells = [values.get(column) for column in self.types[name]]
            return *cells, *interval, seq, row is None and seq == at, None, self.batches, "upsert"

        if name not in self.past:
            return [line(row or blank, at)]
        before = [place for place, (_, end) in self.states[name].items() if place[0] == key and end is None]
        changed: dict[tuple[Key, str], tuple[Row, str | None]]
        changed = {place: (self.states[name][place][0], at) for place in before}
        if row is not None:
            changed[key, at] = (row, None)
        self.states[name] |= changed
        empty = [line(blank, at, at, at)] if row is None else []
        return [*[line(values, start, start, end) for (_, start), (values, end) in changed.items()], *empty]

    def fields(self, name: str) -> list[T.StructField]:
        """The columns of a table as silver has them."""

        def noted(column: str) -> dict[str, Any]:
            return {"name": column, **({"key": keys.index(column)} if column in keys else {})}

        keys = self.keys[name]
        kinds = {column: T._parse_datatype_string(kind) for column, kind in self.types[name].items()}
        own = [T.StructField(column, kind, metadata=noted(column)) for column, kind in kinds.items()]
        return [*own, *(_PAST if name in self.past else ())]


def live_rows(spark: SparkSession, world: World, name: str) -> DataFrame:
    """What users see of a table, or of its history, straight from the world."""
    own = world.types[name]
    rows = [[row.get(column) for column in own] for row in world.rows[name].values()]
    if name in world.past:
        states = world.states[name].items()
        rows = [[*[row.get(column) for column in own], start, end] for (_, start), (row, end) in states]
    schema = T.StructType([*world.fields(name), T.StructField("_source_ts_ms", T.LongType())])
    return gateway.create_frame(spark, [(*row, world.batches) for row in rows], schema)


def _columns() -> list[str]:
    return [*_SHAPE, *(f"to_{child}" for child in range(CHILDREN))]


def _models(chance: random.Random, keys: dict[str, tuple[str, ...]], past: frozenset[str]) -> list[Model]:
    first = _tree(chance, keys, past)
    return [first, _over(chance, first, keys, past)] if chance.random() < 0.4 else [first]


def _input(table: str, alias: str, past: frozenset[str]) -> tuple[str, str]:
    """What a model names to look up in a table, and what makes one row of the states that a history has of a key."""
    return (f"s/db.{table}{HISTORY}", f" AND {alias}.__END_AT IS NULL") if table in past else (f"s/db.{table}", "")


@dataclass
class _Select:
    """The parts of a model's SQL, as they come together."""

    columns: list[str]
    joins: list[str]
    filters: list[str]
    key: list[str]
    inputs: dict[str, str]
    lineage: dict[str, tuple[str, ...]]

    def model(self, name: str) -> Model:
        where = f" WHERE {' AND '.join(self.filters)}" if self.filters else ""
        sql = f"SELECT {', '.join(self.columns)} FROM {' '.join(self.joins)}{where}"
        shown = [column.rpartition(" AS ")[2] for column in self.columns]
        columns = tuple(ModelColumn(c, "text", c not in self.key) for c in shown if not c.startswith("_"))
        target = Target("memory", "star", name)
        made = Model(name, sql, self.inputs, tuple(self.key), columns, target=target, lineage=self.lineage)
        return Model(**{**vars(made), "refresh": INCREMENTAL})


def _tree(chance: random.Random, keys: dict[str, tuple[str, ...]], past: frozenset[str]) -> Model:
    """A grain and look-ups, each from the grain or from another look-up; a table may be looked up in twice."""
    grain = "{t0} a0"
    key = [f"{column}_key" for column in keys["t0"]]
    columns = [f"a0.{column} AS {column}_key" for column in keys["t0"]] + ["a0.v AS v"]
    made = _Select(columns, [grain], [], key, {"t0": "s/db.t0"}, {"t0": tuple(key)})
    if chance.random() < 0.3:
        made.joins = ["(SELECT *, explode(split(tags, ',')) AS tag FROM {t0}) a0"]
        made.columns.append("a0.tag AS tag")
        made.key.append("tag")
    if chance.random() < 0.4:
        made.filters.append(f"a0.v <> {chance.randrange(5)}")
    others = [name for name in keys if name != "t0"]
    for number in range(1, chance.randint(2, 5)):
        _look_up(chance, made, number, *_input(chance.choice(others), f"a{number}", past))
    return made.model("star")


def _look_up(chance: random.Random, made: _Select, number: int, given: str, holds: str) -> None:
    alias, parent = f"a{number}", f"a{chance.randrange(number)}"
    reference = f"{parent}.to_{number - 1}"
    kind = chance.choice(["JOIN", "LEFT JOIN"])
    more = f" AND {alias}.v <> {chance.randrange(5)}" if chance.random() < 0.2 else ""
    made.joins.append(f"{kind} {{p{number}}} {alias} ON {alias}.id = {reference}{holds}{more}")
    made.columns.append(f"{chance.choice([reference, f'{alias}.id'])} AS _l{number}")
    made.columns.append(f"coalesce({alias}.v, -1) + a0.v AS v{number}")
    made.inputs[f"p{number}"] = given
    made.lineage[f"p{number}"] = (f"_l{number}",)
    if chance.random() < 0.2:
        made.filters.append(f"{alias}.v < 4")
    elif chance.random() < 0.25:
        made.filters.append(f"coalesce({alias}.v, 0) <> {chance.randrange(1, 5)}")


def _over(chance: random.Random, first: Model, keys: dict[str, tuple[str, ...]], past: frozenset[str]) -> Model:
    """A model that reads the first one, and looks up in a table that this one may have looked up in."""
    table = chance.choice([name for name in keys if name != "t0"])
    columns = [f"m.{column} AS {column}" for column in first.key]
    columns += ["m.v AS v", "a1.v AS w", f"{chance.choice(['m.v', 'a1.id'])} AS _l1"]
    kind = chance.choice(["JOIN", "LEFT JOIN"])
    given, holds = _input(table, "a1", past)
    joins = ["{star} m", f"{kind} {{t}} a1 ON a1.id = m.v{holds}"]
    inputs, lineage = {"star": "star", "t": given}, {"star": first.key, "t": ("_l1",)}
    return _Select(columns, joins, [], list(first.key), inputs, lineage).model("over")
