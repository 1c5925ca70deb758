"""A cache of analyzed plans: a transformation of rows that is the same in every batch is analyzed once (decision 0080).

Spark resolves each name, and checks each type, of a query every time. For a transformation of some hundred expressions
over few rows, this costs more than anything else. The result is a plan with a single leaf of which only the columns
matter: so a plan that was analyzed over no rows is applied to a batch's rows.
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
"""Settings on which the meaning of names, casts and times depends."""

_DATASETS = "dataset_id"
"""A tag that Spark puts on a plan: the numbers of its datasets."""

_MOST = 64
"""The greatest number of cached plans: rows come with few schemas."""


@dataclass(frozen=True)
class _CachedPlan:
    """Nodes of a plan, the topmost first, each the only child of the one before, down to the ``names`` under which it
    takes the columns of its rows.
    """

    nodes: tuple[Any, ...]
    names: tuple[Any, ...]


_prepared: WeakKeyDictionary[SparkContext, dict[Hashable, _CachedPlan]] = WeakKeyDictionary()


def apply(rows: DataFrame, build: Callable[..., DataFrame], *given: Hashable) -> DataFrame:
    """Return what ``build`` makes of the rows and ``given``. It must be the same for any rows with these columns, and
    use no other rows, without a join or a union. Two such results have the same columns in Spark: to join them, alias
    the columns, as in a self-join.
    """
    spark = rows.sparkSession
    plans = _prepared.setdefault(spark.sparkContext, {})
    settings = map(spark.conf.get, _ANALYSED_BY)
    key = (build, given, rows._jdf.schema().json(), *settings)  # noqa: SLF001
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= _MOST:
            plans.clear()
        plan = plans[key] = _extract_plan(build(_named(gateway.create_frame(spark, (), rows.schema)), *given))
    return _graft(rows, plan)


def _named(rows: DataFrame) -> DataFrame:
    """The rows with a new alias for each column."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - `--help` loads no pyspark

    return rows.select(*[F.col(names.quote_spark(column)).alias(column) for column in rows.columns])


def _extract_plan(built: DataFrame) -> _CachedPlan:
    plan: Any = built._jdf.queryExecution().analyzed()  # noqa: SLF001
    trees = gateway.of(built.sparkSession).org.apache.spark.sql.catalyst.trees
    plan.unsetTagValue(trees.TreeNodeTag(_DATASETS))  # otherwise all derived plans share one, which grows
    *nodes, naming, _ = _walk_down(plan)
    return _CachedPlan(tuple(nodes), tuple(gateway.iterate(naming.projectList())))


def _walk_down(node: Any) -> Iterator[Any]:
    """Yield a node and those below it. Raises ValueError if a node has several children."""
    yield node
    below = list(gateway.iterate(node.children()))
    if len(below) > 1:
        raise ValueError(f"{node.nodeName()} has several inputs")
    for child in below:
        yield from _walk_down(child)


def _graft(rows: DataFrame, cached: _CachedPlan) -> DataFrame:
    spark = rows.sparkSession
    jvm = gateway.of(spark)
    plan: Any = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    named = [
        name.withNewChildren(_seq(jvm, column))
        for name, column in zip(cached.names, gateway.iterate(plan.output()), strict=True)
    ]
    plan = jvm.org.apache.spark.sql.catalyst.plans.logical.Project(_seq(jvm, *named), plan)
    for node in reversed(cached.nodes):
        plan = node.withNewChildren(_seq(jvm, plan))
    plan.setAnalyzed()
    return gateway.from_plan(plan, spark)


def _seq(jvm: Any, *members: Any) -> Any:
    return jvm.PythonUtils.toSeq(list(members))
