"""Spark's logical plans, read from Python: operators, and the expressions that columns are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from replicator.jvm import gateway


def plan(rows: DataFrame) -> Any:
    """The analysed logical plan of a DataFrame."""
    java_rows: Any = rows._jdf  # noqa: SLF001 - Spark shows its plans to the JVM only
    return java_rows.queryExecution().analyzed()


def nodes(root: Any) -> Iterator[Any]:
    """A plan's operators, from the top."""
    yield root
    for child in gateway.iterate(root.children()):
        yield from nodes(child)


def kind(expression: Any) -> str:
    """The class name of an expression."""
    return str(expression.getClass().getSimpleName())


def attribute_id(attribute: Any) -> int:
    """The id by which operators refer to a column."""
    return int(attribute.exprId().id())


def common_table_expressions(plan: Any) -> dict[int, Any]:
    """Common table expressions by their ids."""
    return {int(node.id()): node.child() for node in nodes(plan) if str(node.nodeName()) == "CTERelationDef"}


def origins(plan: Any, common: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
    """Pairs of attribute id and expression for each column that an operator computes: one pair, or several if columns
    become rows.
    """
    for node in nodes(plan):
        name = str(node.nodeName())
        if name == "Project":
            yield from (
                (attribute_id(each), each.child())
                for each in gateway.iterate(node.projectList())
                if kind(each) == "Alias"
            )
        elif name == "Generate":
            yield from ((attribute_id(each), node.generator()) for each in gateway.iterate(node.generatorOutput()))
        elif name == "Expand":
            made = [attribute_id(each) for each in gateway.iterate(node.output())]
            for projection in gateway.iterate(node.projections()):
                pairs = zip(made, gateway.iterate(projection), strict=True)
                yield from ((own, each) for own, each in pairs if not _is_attribute(each, own))
        elif name == "CTERelationRef":
            pairs = zip(
                gateway.iterate(node.output()), gateway.iterate(common[int(node.cteId())].output()), strict=True
            )
            # a reference may have the same columns as its definition
            yield from ((attribute_id(own), other) for own, other in pairs if attribute_id(own) != attribute_id(other))


def _is_attribute(expression: Any, wanted: int) -> bool:
    return kind(expression) == "AttributeReference" and attribute_id(expression) == wanted


def reads(plan: Any, common: Mapping[int, Any]) -> Counter[int]:
    """How often each RDD is read."""
    name = str(plan.nodeName())
    if name == "LogicalRDD":
        return Counter([int(plan.rdd().id())])
    if name == "CTERelationRef":
        return reads(common[int(plan.cteId())], common)
    read = list(gateway.iterate(plan.children()))
    if name == "WithCTE":
        read = read[-1:]
    return sum((reads(each, common) for each in read), Counter[int]())
