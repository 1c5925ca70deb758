"""Row-wise check: whether a user's SQL or function computes each row from that row alone, and from which columns, by
Spark's plan.

A change may be applied once, again, late or with others, and must give the same result each time. So the plan may only
have projections, and only deterministic expressions that do not depend on the current time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from replicator.jvm import gateway

_PASSING = frozenset({"Project", "SubqueryAlias"})
_HINTS = {
    "Filter": "select rows with `where`",
    "Join": "join in a gold model",
    "Aggregate": "group in a gold model",
    "Window": "rank in a gold model",
}


class NotRowwise(ValueError):
    """A computation is not row-wise; the message is the end of a sentence."""


@dataclass(frozen=True)
class Lineage:
    """The input columns that each column is computed from (``of``), and the one that it is unchanged (``same``), by
    name.
    """

    of: Mapping[str, frozenset[str]]
    same: Mapping[str, str]


def lineage(rows: DataFrame, made: DataFrame) -> Lineage:
    """The lineage of *made* from *rows*, which must be a plain relation. Raises NotRowwise."""
    base = {_id(each): str(each.name()) for each in gateway.iterate(_plan(rows).output())}
    of, same = {at: frozenset({name}) for at, name in base.items()}, dict(base)
    now = gateway.of(rows.sparkSession).org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
    for each in _expressions(_plan(made), set(base)):
        _refuse_nondeterministic(each, now)
        references = [_id(found) for found in gateway.iterate(each.references())]
        of[_id(each)] = frozenset[str]().union(*(of[at] for at in references))
        child = each.child() if _kind(each) == "Alias" else each
        if _kind(child) == "AttributeReference" and _id(child) in same:
            same[_id(each)] = same[_id(child)]
    out = [(_id(each), str(each.name())) for each in gateway.iterate(_plan(made).output())]
    return Lineage({name: of[at] for at, name in out}, {name: same[at] for at, name in out if at in same})


def _expressions(plan: Any, base: set[int]) -> list[Any]:
    """The expressions of a plan's projections, the lowest projection first."""
    nodes = []
    while (children := list(gateway.iterate(plan.children()))) and str(plan.nodeName()) in _PASSING:
        nodes.append(plan)
        [plan] = children
    name = str(plan.nodeName())
    if children:
        raise NotRowwise(f"it has the operator {name}: {_HINTS.get(name, 'it makes rows depend on each other')}")
    if {_id(each) for each in gateway.iterate(plan.output())} != base:
        raise NotRowwise("it does not return the rows that it was given")
    projections = [node for node in reversed(nodes) if str(node.nodeName()) == "Project"]
    if any(node.subqueries().nonEmpty() for node in projections):
        raise NotRowwise("it has a subquery, which makes rows depend on others")
    return [each for node in projections for each in gateway.iterate(node.projectList())]


def _refuse_nondeterministic(expression: Any, now: Any) -> None:
    """Raise NotRowwise for an expression that may give another value each time."""
    if not expression.deterministic():
        raise NotRowwise(f"{expression.name()} is not deterministic")
    if expression.containsPattern(now):
        raise NotRowwise(f"{expression.name()} depends on when it is computed")


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


def _plan(rows: DataFrame) -> Any:
    java_rows: Any = rows._jdf  # noqa: SLF001 - Spark shows its plans to the JVM only
    return java_rows.queryExecution().analyzed()
