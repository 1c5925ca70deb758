"""Equalities in the plan of a model's SQL: which columns of the model equal the key of an input's row wherever that row
is used.

Columns are equal if a projection or a widening cast passes one on, or by an equation in the condition of a join or a
filter. An equation of a left join holds only for rows that it found: it leads from a column of the looked-up side to
the other side, but not back. An equation within the looked-up side does so, too: where no row was found its columns are
NULL and lead nowhere, but a constant, or an expression that is not NULL then, may have its value without being equal.
So equations lead from columns only, and not to constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replicator.debezium.widening import widen
from replicator.jvm import gateway
from replicator.transforms.columns.layout import normalize_type
from replicator.transforms.incremental import logical_plans

_EQUATIONS = frozenset({"EqualTo", "EqualNullSafe"})
_ALWAYS = frozenset({"Inner", "Cross"})
_COLUMN = "AttributeReference"

_Text = tuple[str, str]


class Equalities:
    """The equalities of a plan; expressions are identified by their text; ``origins`` as in ``logical_plans``."""

    def __init__(self, plan: Any, origins: Mapping[int, list[Any]]) -> None:
        self._plan = plan
        self._made = dict(origins)
        for node in logical_plans.nodes(plan):
            if str(node.nodeName()) == "Generate":  # its columns are parts of what it is made of
                self._made |= {logical_plans.attribute_id(each): [] for each in gateway.iterate(node.generatorOutput())}
        self._leads: dict[_Text, set[_Text]] = {}
        for one, other in self._steps():
            self._leads.setdefault(one, set()).add(other)

    def shows(self, selected: Any | None, read: int, key: str) -> bool:
        """Whether a ``selected`` expression equals the column ``key`` of the input that is read as the RDD ``read``."""
        starts = [each for each in self._columns(read) if str(each.name()).casefold() == key.casefold()]
        if selected is None or len(starts) != 1:
            return False
        reached, open_ends = set[_Text](), [self._text(starts[0])]
        while open_ends:
            reached.add(at := open_ends.pop())
            open_ends += self._leads.get(at, set()) - reached
        return not reached.isdisjoint(self._readings(selected))

    def _columns(self, read: int) -> Iterator[Any]:
        for node in logical_plans.nodes(self._plan):
            if str(node.nodeName()) == "LogicalRDD" and int(node.rdd().id()) == read:
                yield from gateway.iterate(node.output())

    def _readings(self, expression: Any) -> Iterator[_Text]:
        """An expression and, for a COALESCE, its first argument, recursively."""
        while True:
            expression = self._root(expression)
            yield self._text(expression)
            if logical_plans.kind(expression) != "Coalesce":
                return
            expression = next(iter(gateway.iterate(expression.children())))

    def _text(self, expression: Any) -> _Text:
        """The expression as Spark prints it, with the ids of columns, and as SQL, which has its texts in quotes."""
        same = self._root(expression).canonicalized()
        return str(same.toString()), str(same.sql())

    def _root(self, expression: Any) -> Any:
        """The expression that it passes on, through aliases, widening casts and projections."""
        while True:
            if logical_plans.kind(expression) == "Alias" or _widens(expression):
                expression = expression.child()
                continue
            made = (
                self._made.get(logical_plans.attribute_id(expression), [])
                if logical_plans.kind(expression) == _COLUMN
                else []
            )
            if len(made) != 1:
                return expression
            expression = made[0]

    def _steps(self) -> Iterator[tuple[_Text, _Text]]:
        """The directed steps of all equations, from one expression to an equal one."""
        for node in logical_plans.nodes(self._plan):
            name = str(node.nodeName())
            if name == "Filter":
                yield from (step for pair in _equations(node.condition()) for step in self._both(*pair))
            elif name == "Join" and bool(node.condition().isDefined()):
                found = {logical_plans.attribute_id(each) for each in gateway.iterate(node.right().output())}
                is_always = str(node.joinType().toString()) in _ALWAYS
                for one, other in _equations(node.condition().get()):
                    if is_always:
                        yield from self._both(one, other)
                    elif _numbers(one) <= found and not _numbers(other) & found:
                        yield from self._step(one, other)
                    elif _numbers(other) <= found and not _numbers(one) & found:
                        yield from self._step(other, one)

    def _both(self, one: Any, other: Any) -> Iterator[tuple[_Text, _Text]]:
        yield from self._step(one, other)
        yield from self._step(other, one)

    def _step(self, one: Any, other: Any) -> Iterator[tuple[_Text, _Text]]:
        """The step from a column to what it equals, unless that is a constant."""
        if logical_plans.kind(self._root(one)) == _COLUMN and _numbers(self._root(other)):
            yield self._text(one), self._text(other)


def _widens(expression: Any) -> bool:
    """Whether the expression is a cast to a type that holds every value of the former one."""
    if logical_plans.kind(expression) != "Cast":
        return False
    before, after = (str(each.dataType().catalogString()) for each in (expression.child(), expression))
    wide = widen(before, after)
    return wide is not None and normalize_type(wide) == normalize_type(after)


def _equations(condition: Any) -> Iterator[tuple[Any, Any]]:
    kind = logical_plans.kind(condition)
    if kind == "And":
        for each in gateway.iterate(condition.children()):
            yield from _equations(each)
    elif kind in _EQUATIONS:
        one, other = gateway.iterate(condition.children())
        yield one, other


def _numbers(expression: Any) -> set[int]:
    return {logical_plans.attribute_id(each) for each in gateway.iterate(expression.references())}
