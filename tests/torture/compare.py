"""Everything that the layers hold against the source, after a run that came to its end (promises A, B, D and E)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import psycopg2
from psycopg2 import sql
from pyspark.sql import DataFrame, SparkSession

from replicator.errors import AtWork, TableStopped
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.spec import Model
from replicator.stages import silver
from replicator.stages.pipeline import Pipeline
from replicator.stages.refinement import Refinement
from replicator.stages.tick import transaction_cut
from replicator.transforms.live import select_live
from tests import builders
from tests.torture import people
from tests.torture.origin import CUSTOMERS, ORDERS, PEOPLE, SALES, Row, Rows
from tests.torture.world import World

_TYPES = {
    CUSTOMERS: "id INT, name STRING",
    ORDERS: "id INT, customer INT, total INT",
    SALES: "id INT, ordered INT, amount INT",
}
_PLACE = ["topic", "partition", "offset"]


def differences(spark: SparkSession, world: World) -> list[str]:
    """What is not as it must be, a sentence each; empty: all is well."""
    made, found = world.pipeline(spark), []
    for at in made.refinements:
        found += _bronze(spark, at, world)
        found += _letters(spark, at, world)
        for table in world.sources[at.source.name]:
            found += _silver(spark, at, table, world)
            if at.source.declaration(table).twins:
                twin = at.silver.read(spark, at.lake.twin(at.source.name, table, "hudi"))
                found += _unlike(f"twin of {table}", _rows(select_live(twin)), _truth(world, table))
    if world.postgres is not None:
        for model in made.models:
            found += _gold(spark, made, model, world)
    return found + (people.unlike_told(world.told(), world.origin.shown[PEOPLE].values()) if world.has_people else [])


def unlike_rebuilt(spark: SparkSession, world: World) -> list[str]:
    """What silver and its history hold otherwise than if all of bronze had been read at once (idea 4)."""
    found = []
    for at in world.pipeline(spark).refinements:
        again = Refinement(at.source, at.bronze, MemoryFormat(), MemoryControl(), at.lake)
        errors = [str(account.error) for account in silver.refine(spark, again) if account.error is not None]
        found += errors
        for table in world.sources[at.source.name]:
            places = [at.lake.silver(at.source.name, table)]
            if at.source.declaration(table).has_history:
                places.append(at.lake.history(at.source.name, table))
            for place in places:
                kept, rebuilt = (select_live(each.silver.read(spark, place)) for each in (at, again))
                found += _unlike(f"{place.name} rebuilt", _rows(rebuilt), _rows(kept))
    return found


def half_shown(spark: SparkSession, at: Refinement, states: Iterable[Rows]) -> list[str]:
    """A sentence if silver says that its transactions are whole, and shows what was the case behind none of them, which
    ``states`` tells (debezium.md H3).
    """
    try:
        stood = transaction_cut.load_consistent(at.control, at.lake, at.source.name)
    except (AtWork, TableStopped):  # nothing is built on it
        return []
    if stood is None:
        return []
    every = list(states)
    tables = {table: at.lake.silver(at.source.name, table) for table in every[0]}
    found = {table: _known(select_live(at.silver.read(spark, place)).collect()) for table, place in tables.items()}
    whole = ({table: _known(_at_rest(table, rows.values())) for table, rows in state.items()} for state in every)
    return [] if found in whole else [f"silver shows {found}, which was never so behind a transaction"]


def _known(rows: Iterable[Any]) -> Counter[Any]:
    """Rows by what is not NULL: a column that comes later is not there yet."""
    each = (row if isinstance(row, dict) else row.asDict() for row in rows)
    return Counter(tuple(sorted((c, value) for c, value in row.items() if value is not None)) for row in each)


def _bronze(spark: SparkSession, at: Refinement, world: World) -> list[str]:
    """Every record once: no place twice, and the records that were sent."""
    rows = at.bronze.read(spark, at.lake.bronze(at.source.name)).select(*_PLACE, "value").collect()
    places = Counter(tuple(row[part] for part in _PLACE) for row in rows)
    twice = [place for place, count in places.items() if count > 1]
    sent = Counter(
        (each.topic, each.value) for each in world.origin.sent if each.topic.startswith(f"{at.source.name}.")
    )
    found = Counter((row["topic"], row["value"]) for row in rows)
    told = [f"bronze has {len(twice)} places twice, such as {twice[0]}"] if twice else []
    return told + _unlike(f"bronze of {at.source.name}", found, sent)


def _letters(spark: SparkSession, at: Refinement, world: World) -> list[str]:
    """Each record that cannot be applied is a dead letter, once."""
    table = at.lake.dead_letters(at.source.name)
    there = at.bronze.version(spark, table) is not None
    buried = at.bronze.read(spark, table).select(*_PLACE) if there else None
    every = at.bronze.read(spark, at.lake.bronze(at.source.name)).select(*_PLACE, "value")
    rows = [] if buried is None else buried.join(every, _PLACE).collect()
    sent = Counter(
        (each.topic, each.value) for each in world.origin.broken if each.topic.startswith(f"{at.source.name}.")
    )
    return _unlike(f"dead letters of {at.source.name}", Counter((r["topic"], r["value"]) for r in rows), sent)


def _silver(spark: SparkSession, at: Refinement, table: str, world: World) -> list[str]:
    """The source's rows, and progress that says that all of its topic is in."""
    place, bronze = at.lake.silver(at.source.name, table), at.lake.bronze(at.source.name)
    found = _unlike(table, _rows(select_live(at.silver.read(spark, place))), _truth(world, table))
    reached = at.silver.progress(spark, place, at.bronze.identity(spark, bronze) or "")
    arrivals = at.bronze.arrivals(spark, bronze, -1, at.bronze.version(spark, bronze) or 0) or []
    newest = max(each.version for each in arrivals if each.partition == (f"{at.source.name}.{table}",))
    waits = at.source.whole_transactions and world.origin.shown is not world.origin.rows
    if reached is None or (reached.version < newest and not waits):
        found.append(f"{table} says that it has read {reached}, and bronze has more for it in {newest}")
    return found


def _gold(spark: SparkSession, made: Pipeline, model: Model, world: World) -> list[str]:
    """The model's own SQL over the source's rows; in Postgres what gold holds, at gold's version."""
    inputs: dict[str, Any] = {
        name: _source_frame(spark, world, given.partition("/")[2]) for name, given in model.inputs.items()
    }
    names = [column.name for column in model.columns]
    wanted = Counter(map(tuple, spark.sql(model.sql, **inputs).select(*names).collect()))
    gold, table = made.warehouse.gold, made.warehouse.lake.gold(model.name, model.key)
    rows = Counter(map(tuple, gold.read(spark, table).select(*names).collect()))
    served, ledger = _served(world, model, names)
    found = _unlike(f"gold {model.name}", rows, wanted) + _unlike(f"Postgres {model.name}", served, rows)
    version = gold.version(spark, table)
    progress = (gold.identity(spark, table), gold.commit_id(spark, table, version or 0), version)
    return found if ledger == [progress] else [*found, f"the ledger has {ledger} of {model.name}, gold is {progress}"]


def _served(world: World, model: Model, names: list[str]) -> tuple[Counter[Any], list[Any]]:
    at, target = world.postgres, model.target
    assert target is not None
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    login: dict[str, Any] = {
        "host": at.host,
        "port": at.port,
        "dbname": at.database,
        "user": at.user,
        "password": at.password,
    }
    with closing(psycopg2.connect(**login)) as session, session.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(target.schema, target.table)))
        rows = Counter(cursor.fetchall())
        ledger = sql.SQL(
            "SELECT split_part(input, ' ', 1), split_part(input, ' ', 2), version FROM {} WHERE table_name = %s"
        )
        cursor.execute(ledger.format(sql.Identifier(target.schema, "_replicator_ledger")), (target.table,))
        return rows, cursor.fetchall()


def _source_frame(spark: SparkSession, world: World, table: str) -> DataFrame:
    columns = [part.split()[0] for part in _TYPES[table].split(", ")]
    rows = [tuple(row[column] for column in columns) for row in world.origin.shown[table].values()]
    return builders.made(spark, rows, _TYPES[table])


def _truth(world: World, table: str) -> Counter[Any]:
    columns = dict.fromkeys(world.origin.columns(table))
    rows = _at_rest(table, world.origin.shown[table].values())
    return Counter(tuple(sorted((columns | row).items())) for row in rows)


def _at_rest(table: str, rows: Iterable[Row]) -> list[Row]:
    """Rows of the source as silver has them."""
    told = (people.at_rest(row) if table == PEOPLE else row for row in rows)
    return [row for row in told if row is not None]


def _rows(rows: DataFrame) -> Counter[Any]:
    return Counter(tuple(sorted(row.asDict().items())) for row in rows.collect())


def _unlike(what: str, found: Counter[Any], wanted: Counter[Any]) -> list[str]:
    if found == wanted:
        return []
    return [f"{what}: has {list(found - wanted)[:3]} too much, lacks {list(wanted - found)[:3]}"]
