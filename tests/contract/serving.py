"""Sinks under test, models and differences: what tests of every sink share."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from psycopg2 import errors, sql
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from replicator.protocols import Difference, Fence
from replicator.sinks.postgres import Backoff, PostgresSink
from replicator.spec import Model, ModelColumn, Progress, Target
from tests.builders import made

QUICK = Backoff(retries=2, first=0.01, longest=0.05)


@dataclass(frozen=True)
class Served:
    """A sink under test, the schema that it owns, and how to see what readers see."""

    sink: Any
    schema: str
    connection: Any = None
    """A PostgresConnection; None where the sink is in memory."""

    def fenced(self, fence: Fence) -> Any:
        """The sink, for a writer with this fence."""
        if self.connection is not None:
            return PostgresSink(self.connection, backoff=QUICK, fence=fence)
        self.sink.fence = fence
        return self.sink

    def rows(self, model: Model) -> list[tuple[Any, ...]]:
        """What readers see of a model: nothing, where it has no table yet."""
        if self.connection is None:
            rows = self.sink.tables.get(model.target.table, {}).values()
            return sorted(tuple(row[column.name] for column in model.columns) for row in rows)
        columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in model.columns)
        query = sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(self.schema, model.target.table))
        try:
            return sorted(self.run(query))
        except errors.UndefinedTable:
            return []

    def run(self, query: Any) -> list[tuple[Any, ...]]:
        with closing(self.connection.open()) as session, session, session.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall() if cursor.description else []


def model(schema: str, name: str, columns: dict[str, str], key: tuple[str, ...] = ("id",), **more: Any) -> Model:
    """A model whose columns may be NULL unless their type ends in `` !``."""
    declared = tuple(ModelColumn(c, t.removesuffix(" !"), nullable=not t.endswith(" !")) for c, t in columns.items())
    return Model(name, "", {}, key, declared, target=Target("warehouse", schema, more.pop("table", name)), **more)


def customers(schema: str) -> Model:
    return model(schema, "dim_customers", {"id": "integer", "name": "varchar(10) !", "credit": "numeric(10,2)"})


def orders(schema: str) -> Model:
    columns = {"id": "integer", "customer": "integer"}
    return model(schema, "a_fact_orders", columns, references=("dim_customers",))


CUSTOMERS = "id INT, name STRING, credit DECIMAL(10,2), _op STRING"
ORDERS = "id INT, customer INT, _op STRING"


def difference(
    spark: SparkSession, of: Model, rows: list[tuple[Any, ...]], schema: str | StructType, version: int, **more: Any
) -> Difference:
    return Difference(of, made(spark, rows, schema), Progress(more.pop("input", "gold-1"), version), **more)


def ann(name: str | None = "Ann", credit: str = "1.50", op: str = "upsert", key: int = 1) -> tuple[Any, ...]:
    return (key, name, Decimal(credit), op)


def execute(served: Served, text: str) -> list[tuple[Any, ...]]:
    """Statements about the schema of the test, which is written ``$``."""
    return served.run(sql.SQL(text.replace("$", f'"{served.schema}"')))
