"""Spark's logical plans, read from Python: operators, and what columns are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from replicator.jvm import gateway


def plan(rows: DataFrame) -> Any:
    """The analysed plan of some rows."""
    java_rows: Any = rows._jdf  # noqa: SLF001 - Spark shows its plans to the JVM only
    return java_rows.queryExecution().analyzed()


def nodes(root: Any) -> Iterator[Any]:
    """A plan's operators, from above."""
    yield root
    for child in gateway.each(root.children()):
        yield from nodes(child)


def kind(expression: Any) -> str:
    """What Spark calls it."""
    return str(expression.getClass().getSimpleName())


def number(attribute: Any) -> int:
    """By which operators know one column from another."""
    return int(attribute.exprId().id())


def common(plan: Any) -> dict[int, Any]:
    """Common table expressions by their numbers."""
    return {int(node.id()): node.child() for node in nodes(plan) if str(node.nodeName()) == "CTERelationDef"}


def origins(plan: Any, common: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
    """The expressions that each column is made of which an operator makes, by the number of its attribute: one, or
    several where columns become rows.
    """
    for node in nodes(plan):
        name = str(node.nodeName())
        if name == "Project":
            yield from (
                (number(each), each.child()) for each in gateway.each(node.projectList()) if kind(each) == "Alias"
            )
        elif name == "Generate":
            yield from ((number(each), node.generator()) for each in gateway.each(node.generatorOutput()))
        elif name == "Expand":
            made = [number(each) for each in gateway.each(node.output())]
            for projection in gateway.each(node.projections()):
                pairs = zip(made, gateway.each(projection), strict=True)
                yield from ((own, each) for own, each in pairs if not _is_attribute(each, own))
        elif name == "CTERelationRef":
            pairs = zip(gateway.each(node.output()), gateway.each(common[int(node.cteId())].output()), strict=True)
            # a reference may have the very columns of what it refers to
            yield from ((number(own), other) for own, other in pairs if number(own) != number(other))


def _is_attribute(expression: Any, wanted: int) -> bool:
    return kind(expression) == "AttributeReference" and number(expression) == wanted


def reads(plan: Any, common: Mapping[int, Any]) -> Counter[int]:
    """How often each RDD is read."""
    name = str(plan.nodeName())
    if name == "LogicalRDD":
        return Counter([int(plan.rdd().id())])
    if name == "CTERelationRef":
        return reads(common[int(plan.cteId())], common)
    read = list(gateway.each(plan.children()))
    if name == "WithCTE":
        read = read[-1:]
    return sum((reads(each, common) for each in read), Counter[int]())
