"""Random stars: up to five tables, a model that is a tree of look-ups over them, a model over that one, and batches of
changes. One seed is one world and all that happens in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from replicator import gateway
from replicator.lake import Lake
from replicator.protocols import TableFormat
from replicator.spec import INCREMENTAL, Model, ModelColumn, Progress, Table, Target

CHILDREN = 4
IDS = 12
"""Keys are few, so that they meet, and come again after a delete."""

_OURS = [
    T.StructField("_seq", T.StringType()),
    T.StructField("_deleted", T.BooleanType()),
    T.StructField("_column_seq", T.MapType(T.StringType(), T.StringType())),
    T.StructField("_source_ts_ms", T.LongType()),
]
_SHAPE = {"id": T.IntegerType(), "part": T.StringType(), "v": T.IntegerType(), "tags": T.StringType()}

Row = dict[str, Any]


@dataclass
class World:
    """Tables by name, with their rows by key; the models over them; and how many batches there were."""

    seed: int
    rows: dict[str, dict[tuple[Any, ...], Row]] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    models: list[Model] = field(default_factory=list)
    batches: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.keys = {f"t{number}": ("id",) for number in range(self.chance.randint(2, 5))}
        if self.chance.random() < 0.5:
            self.keys["t0"] = ("id", "part")
        self.rows = {name: {} for name in self.keys}
        self.models = _models(self.chance, self.keys)

    def table(self, name: str, lake: Lake) -> Table:
        """A table's place in silver."""
        return lake.silver("s", f"db.{name}", self.keys[name])

    def take(self, spark: SparkSession, silver: TableFormat, lake: Lake) -> None:
        """One batch: rows of one or two tables come, change, refer to others, go, and come again."""
        used = sorted({given.rpartition(".")[2] for model in self.models for given in model.inputs.values()} - {"star"})
        names = used if not self.batches else self.chance.sample(used, self.chance.randint(1, 2))
        for name in names:
            changed = self._changes(name, 3 * IDS if not self.batches else self.chance.randint(1, 4))
            self._write(spark, silver, self.table(name, lake), name, changed)
        self.batches += 1

    def _changes(self, name: str, count: int) -> dict[tuple[Any, ...], Row | None]:
        changed: dict[tuple[Any, ...], Row | None] = {}
        for _ in range(count):
            key = tuple(self._key_value(column) for column in self.keys[name])
            is_gone = key in self.rows[name] and self.chance.random() < 0.35
            changed[key] = None if is_gone else self._row(name, key)
        return changed

    def _key_value(self, column: str) -> Any:
        return self.chance.randrange(IDS) if column == "id" else self.chance.choice("xy")

    def _row(self, name: str, key: tuple[Any, ...]) -> Row:
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
        changed: dict[tuple[Any, ...], Row | None],
    ) -> None:
        told = []
        for key, row in changed.items():
            shown = row or dict.fromkeys(_columns()) | dict(zip(self.keys[name], key, strict=True))
            told.append((*shown.values(), f"{self.batches:06}", row is None, None, self.batches, "upsert"))
            if row is None:
                self.rows[name].pop(key, None)
            else:
                self.rows[name][key] = row
        schema = T.StructType([*_fields(self.keys[name]), *_OURS, T.StructField("_op", T.StringType())])
        silver.put(gateway.frame(spark, told, schema), table, Progress("bronze", self.batches))


def live_rows(spark: SparkSession, world: World, name: str) -> DataFrame:
    """What users see of a table, straight from the world."""
    rows = [(*row.values(), world.batches) for row in world.rows[name].values()]
    schema = T.StructType([*_fields(()), T.StructField("_source_ts_ms", T.LongType())])
    return gateway.frame(spark, rows, schema)


def _columns() -> list[str]:
    return [*_SHAPE, *(f"to_{child}" for child in range(CHILDREN))]


def _fields(keys: tuple[str, ...]) -> list[T.StructField]:
    def noted(name: str) -> dict[str, Any]:
        return {"name": name, **({"key": keys.index(name)} if name in keys else {})}

    return [T.StructField(name, _SHAPE.get(name, T.IntegerType()), metadata=noted(name)) for name in _columns()]


def _models(chance: random.Random, keys: dict[str, tuple[str, ...]]) -> list[Model]:
    first = _tree(chance, keys)
    return [first, _over(chance, first, keys)] if chance.random() < 0.4 else [first]


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


def _tree(chance: random.Random, keys: dict[str, tuple[str, ...]]) -> Model:
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
        _look_up(chance, made, number, chance.choice(others))
    return made.model("star")


def _look_up(chance: random.Random, made: _Select, number: int, table: str) -> None:
    alias, parent = f"a{number}", f"a{chance.randrange(number)}"
    reference = f"{parent}.to_{number - 1}"
    kind = chance.choice(["JOIN", "LEFT JOIN"])
    more = f" AND {alias}.v <> {chance.randrange(5)}" if chance.random() < 0.2 else ""
    made.joins.append(f"{kind} {{p{number}}} {alias} ON {alias}.id = {reference}{more}")
    made.columns.append(f"{chance.choice([reference, f'{alias}.id'])} AS _l{number}")
    made.columns.append(f"coalesce({alias}.v, -1) + a0.v AS v{number}")
    made.inputs[f"p{number}"] = f"s/db.{table}"
    made.lineage[f"p{number}"] = (f"_l{number}",)
    if chance.random() < 0.2:
        made.filters.append(f"{alias}.v < 4")
    elif chance.random() < 0.25:
        made.filters.append(f"coalesce({alias}.v, 0) <> {chance.randrange(1, 5)}")


def _over(chance: random.Random, first: Model, keys: dict[str, tuple[str, ...]]) -> Model:
    """A model that reads the first one, and looks up in a table that this one may have looked up in."""
    table = chance.choice([name for name in keys if name != "t0"])
    columns = [f"m.{column} AS {column}" for column in first.key]
    columns += ["m.v AS v", "a1.v AS w", f"{chance.choice(['m.v', 'a1.id'])} AS _l1"]
    kind = chance.choice(["JOIN", "LEFT JOIN"])
    joins = ["{star} m", f"{kind} {{t}} a1 ON a1.id = m.v"]
    inputs, lineage = {"star": "star", "t": f"s/db.{table}"}, {"star": first.key, "t": ("_l1",)}
    return _Select(columns, joins, [], list(first.key), inputs, lineage).model("over")
