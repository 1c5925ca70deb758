"""Spark as an engine of ``replicator sql``: views of the lake in a session of their own, restricted to queries."""

from __future__ import annotations

from collections import Counter
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator import names
from replicator.catalog import tables
from replicator.catalog.as_of import AsOf
from replicator.catalog.sql_query import NOT_A_QUERY, QUERY_HINT
from replicator.cli.views import gold_tables, register_views, silver_tables
from replicator.errors import ConfigError, first_line
from replicator.jvm import gateway, sandbox
from replicator.transforms.json_values import base64, stringify_map_keys, to_json
from replicator.transforms.user_view import JSON_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from replicator.lake import Lake
    from replicator.protocols import TableFormat
    from replicator.protocols.engine import Answer, Dialect
    from replicator.stages.topic_tables import TopicTables

_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
# A query that writes has one of these nodes in its plan; any other statement has one at its root.
_NO_QUERIES = (f"{_PLANS}.Command", f"{_PLANS}.ParsedStatement")
# Plans that write or start a program and are neither. Statements that a Spark release lacks are refused by its parser.
_WRITING_PLANS = frozenset(
    {"Call", "CloneTableStatement", "InsertIntoDir", "RestoreTableStatement", "ScriptTransformation",
     "UnresolvedExecuteImmediate"}
)  # fmt: skip
_UNNAMED = "PlanWithUnresolvedIdentifier"  # at the root it can resolve to any statement
_DESCRIBE = f"{_PLANS}.DescribeRelation"
_EXPLAIN = "org.apache.spark.sql.execution.command.ExplainCommand"


class SparkEngine:
    """``Engine`` on Spark, for one lake: its current state, or that of ``when``."""

    dialect: Dialect = "spark"
    guards_itself = True

    def __init__(
        self, spark: SparkSession, tables_of: TableFormat, lake: Lake, when: int | datetime | None = None
    ) -> None:
        self._spark = spark.newSession()
        self._past = AsOf(when, partial(tables_of.version_at, self._spark))
        self._tables_of = tables_of
        self._lake = lake
        self._silver = silver_tables(self._spark, tables_of, lake)
        sandbox.restrict(self._spark)

    @property
    def databases(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """The two-part names of silver's tables, see ``Engine``."""
        return tables.databases(self._silver)

    def ask(self, query: str, limit: int | None) -> Answer:
        """Run one query; no more than ``limit`` rows are computed where Spark can avoid it."""
        refuse_commands(self._spark, query)
        gold = gold_tables(self._spark, self._tables_of, self._lake)
        views = tables.views_for(query, self._silver, gold)
        known = register_views(self._spark, self._tables_of, views, query, self._past)
        rows = _rows(self._spark, query, known, self._past)
        return SparkAnswer(rows if limit is None else rows.limit(limit))

    def summary(self) -> str | None:
        """Return which versions were read, where older ones were requested."""
        return self._past.summary()


class TopicEngine:
    """``Engine`` over the contents of one topic: a view per table, named after its last part where that is unique, else
    after all parts (``shop__orders``). The view ``records`` has one row per record.
    """

    dialect: Dialect = "spark"
    guards_itself = True
    databases: Mapping[tuple[str, str], Sequence[str]] = MappingProxyType({})

    def __init__(self, contents: TopicTables) -> None:
        self._spark = contents.records.sparkSession
        self._views = {"records": contents.records}
        lasts = Counter(table.rpartition(".")[2].casefold() for table in contents.tables)
        for table, rows in contents.tables.items():
            last = table.rpartition(".")[2]
            self._views[last if lasts[last.casefold()] == 1 else table.replace(".", "__")] = rows
        sandbox.restrict(self._spark)

    def ask(self, query: str, limit: int | None) -> Answer:
        """Run one query; only the views that it names are decoded."""
        refuse_commands(self._spark, query)
        for name, rows in self._views.items():
            rows.createOrReplaceTempView(names.quote_spark(name))
        self._spark.conf.set("spark.sql.caseSensitive", "false")  # for the query; decoding is planned by now
        rows = _rows(self._spark, query, sorted(self._views))
        return SparkAnswer(rows if limit is None else rows.limit(limit))

    def summary(self) -> str | None:
        """Return the names of the views."""
        return f"views: {', '.join(sorted(self._views))}"


class SparkAnswer:
    """``Answer`` of a DataFrame. Numbers and times are formatted by Spark, so that decimals stay exact."""

    def __init__(self, rows: DataFrame) -> None:
        self._rows = rows

    @property
    def columns(self) -> Sequence[str]:
        """The names of the DataFrame's columns."""
        return self._rows.columns

    def texts(self) -> Iterator[Sequence[str | None]]:
        """Return the rows as texts, one partition at a time. Columns are addressed by position: a join may have two of
        one name.
        """
        numbered = self._numbered()
        written = [_text(F.col(field.name), field.dataType) for field in numbered.schema.fields]
        return (list(row) for row in numbered.select(*written).toLocalIterator())

    def objects(self) -> Iterator[str]:
        """Return the rows as JSON objects, one partition at a time."""
        numbered = self._numbered()
        fields = [stringify_map_keys(F.col(field.name), field.dataType) for field in numbered.schema.fields]
        row = F.struct(*[each.alias(name) for each, name in zip(fields, self.columns, strict=True)])
        lines = numbered.select(F.to_json(row, JSON_OPTIONS)).toLocalIterator()
        return (line for (line,) in lines)

    def batches(self) -> pa.RecordBatchReader:
        """Return all rows at once, in the driver's memory."""
        import pyarrow as pa

        rows: Any = self._rows
        found = rows._collect_as_arrow()  # noqa: SLF001 - public as toArrow from Spark 4 on
        empty = pa.Table.from_batches(found) if found else _no_rows(self._rows)
        return empty.to_reader()

    def _numbered(self) -> DataFrame:
        return self._rows.toDF(*[f"c{index}" for index in range(len(self._rows.columns))])


def refuse_commands(spark: SparkSession, query: str) -> None:
    """Raise ConfigError for anything but one query: statements that write, define, or change the session. DESCRIBE of a
    view and EXPLAIN of a query are allowed, since they only read.
    """
    session: Any = spark._jsparkSession  # noqa: SLF001 - Spark's own parser, called before anything runs
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    try:
        plan = session.sessionState().sqlParser().parsePlan(query)
    except ParseException as error:
        raise ConfigError(f"Invalid SQL: {first_line(error)}") from error
    if is_instance_of(gateway, plan, _DESCRIBE):
        return
    if is_instance_of(gateway, plan, _EXPLAIN):
        plan = plan.logicalPlan()
    nodes = _nodes(plan)
    kinds = {str(node.nodeName()) for node in nodes}
    if kinds & _WRITING_PLANS or str(plan.nodeName()) == _UNNAMED:
        raise ConfigError(NOT_A_QUERY, fix=QUERY_HINT)
    if any(is_instance_of(gateway, node, name) for node in nodes for name in _NO_QUERIES):
        raise ConfigError(NOT_A_QUERY, fix=QUERY_HINT)


def _rows(spark: SparkSession, query: str, known: list[str], past: AsOf | None = None) -> DataFrame:
    try:
        return spark.sql(query)
    except AnalysisException as error:
        missing = str(error).startswith("[TABLE_OR_VIEW_NOT_FOUND]")
        if missing and past is not None:
            past.explain(first_line(error))
        fix = f"Available: {', '.join(known) if known else 'no tables in this lake yet'}." if missing else None
        raise ConfigError(first_line(error), fix=fix) from error


def _nodes(plan: Any) -> list[Any]:
    found = [n for each in (plan.children(), plan.innerChildren(), plan.subqueries()) for n in gateway.iterate(each)]
    plans = [node for node in found if hasattr(node, "getClass")]
    return [plan, *(node for child in plans for node in _nodes(child))]


def _text(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.BinaryType):
        return base64(column)
    if isinstance(kind, (T.StructType, T.ArrayType, T.MapType)):
        return to_json(column, kind)
    return column.cast("string")


def _no_rows(rows: DataFrame) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(rows.schema).empty_table()
