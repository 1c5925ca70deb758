"""What Spark analyses once: a way from rows to rows that is the same in every batch (decision 0080).

Spark looks up each name, and checks each type, of a query anew. A way of some hundred expressions costs more of that
than of anything else where rows are few. Its result is a plan, of whose only leaf nothing but the columns matters: so a
batch's rows are put under a plan that was analysed over none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from replicator import names
from replicator.jvm import gateway

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

_ANALYSED_BY = ("spark.sql.caseSensitive", "spark.sql.ansi.enabled", "spark.sql.session.timeZone")
"""Settings that tell what names, casts and times mean."""

_DATASETS = "dataset_id"
"""A note of Spark's at a plan: the numbers of its datasets."""

_MOST = 64
"""So many are kept: rows come with few schemas."""


@dataclass(frozen=True)
class _CachedPlan:
    """Nodes of a plan, the uppermost first, each the only child of the one before, down to the ``names`` by which it
    takes the columns of its rows.
    """

    nodes: tuple[Any, ...]
    names: tuple[Any, ...]


_prepared: WeakKeyDictionary[SparkContext, dict[Hashable, _CachedPlan]] = WeakKeyDictionary()


def apply(rows: DataFrame, build: Callable[..., DataFrame], *given: Hashable) -> DataFrame:
    """What ``build`` makes of rows and what is ``given``, where that is the same for any rows with these columns: of no
    others, without a join or a union. Two such results have the same columns to Spark: what joins them names theirs by
    aliases, as those of a table that is joined with itself.
    """
    spark = rows.sparkSession
    ways = _prepared.setdefault(spark.sparkContext, {})
    settings = map(spark.conf.get, _ANALYSED_BY)
    key = (build, given, rows._jdf.schema().json(), *settings)  # noqa: SLF001
    way = ways.get(key)
    if way is None:
        if len(ways) >= _MOST:
            ways.clear()
        way = ways[key] = _extract_plan(build(_named(gateway.create_frame(spark, (), rows.schema)), *given))
    return _graft(rows, way)


def _named(rows: DataFrame) -> DataFrame:
    """The rows with a name of our own for each column."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    return rows.select(*[F.col(names.quote_spark(column)).alias(column) for column in rows.columns])


def _extract_plan(built: DataFrame) -> _CachedPlan:
    plan: Any = built._jdf.queryExecution().analyzed()  # noqa: SLF001
    trees = gateway.of(built.sparkSession).org.apache.spark.sql.catalyst.trees
    plan.unsetTagValue(trees.TreeNodeTag(_DATASETS))  # else all that is made of it shares one, which grows
    *nodes, naming, _ = _walk_down(plan)
    return _CachedPlan(tuple(nodes), tuple(gateway.iterate(naming.projectList())))


def _walk_down(node: Any) -> Iterator[Any]:
    """A node and what is below it. Raises ValueError where that is not one node below the other."""
    yield node
    below = list(gateway.iterate(node.children()))
    if len(below) > 1:
        raise ValueError(f"{node.nodeName()} has several inputs")
    for child in below:
        yield from _walk_down(child)


def _graft(rows: DataFrame, way: _CachedPlan) -> DataFrame:
    spark = rows.sparkSession
    jvm = gateway.of(spark)
    plan: Any = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    named = [
        name.withNewChildren(_seq(jvm, column))
        for name, column in zip(way.names, gateway.iterate(plan.output()), strict=True)
    ]
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(_seq(jvm, *named), plan)
    for node in reversed(way.nodes):
        plan = node.withNewChildren(_seq(jvm, plan))
    plan.setAnalyzed()
    return gateway.from_plan(plan, spark)


def _seq(jvm: Any, *members: Any) -> Any:
    return jvm.PythonUtils.toSeq(list(members))
