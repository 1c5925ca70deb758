"""The models that a model's relationships lead to, and what of them has left since its newest refresh.

Its control row tells of every such parent where it was (``table_versions.py``): the build of a child looks at the keys
that left since then, and at no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from replicator import names
from replicator.spec import Model
from replicator.spec.rules import Relationship, Rule
from replicator.stages.models import table_versions
from replicator.stages.models.table_versions import VersionRef
from replicator.stages.models.warehouse import Warehouse


def _unknown(_: Relationship) -> None:
    return None


@dataclass(frozen=True)
class Parents:
    """``rows`` of a model by its name; the names of those that have ``moved``; and of such a one the values of a rule's
    field that ``left`` it (one column), None where nobody can say which.
    """

    rows: Callable[[str], DataFrame]
    left: Callable[[Relationship], DataFrame | None] = _unknown
    moved: frozenset[str] = frozenset()

    def has_moved(self, rule: Rule) -> bool:
        """Whether the rule leads to a model that has."""
        return isinstance(rule, Relationship) and rule.to in self.moved


def current_versions(spark: SparkSession, model: Model, at: Warehouse) -> dict[str, VersionRef] | None:
    """Where the model's parents are now, by name, as its control row says it; None without any."""
    wanted = {check.rule.to for check in model.checks if isinstance(check.rule, Relationship)} - {model.name}
    return {name: table_versions.current(spark, at.gold, at.lake.gold(name)) for name in sorted(wanted)} or None


def load(
    spark: SparkSession,
    at: Warehouse,
    keys: Mapping[str, tuple[str, ...]],
    then: Mapping[str, VersionRef] | None,
    now: Mapping[str, VersionRef] | None,
) -> Parents:
    """Parents that are ``now`` at other places than ``then``; ``keys`` are those of the models."""
    before, after = then or {}, now or {}
    moved = frozenset(name for name, place in after.items() if before.get(name) != place)

    def left(rule: Relationship) -> DataFrame | None:
        was, key = before.get(rule.to), keys.get(rule.to, ())
        if was is None or key != (rule.field,):
            return None
        table = at.lake.gold(rule.to, key)
        changed = table_versions.changed_keys(spark, at.gold, table, was, after[rule.to])
        present = at.gold.read(spark, table).select(names.quote_spark(rule.field))
        return None if changed is None else changed.join(present, list(key), how="left_anti")

    return Parents(partial(_rows, spark, at), left, moved)


def _rows(spark: SparkSession, at: Warehouse, name: str) -> DataFrame:
    return at.gold.read(spark, at.lake.gold(name))
