"""The models that a model's relationships refer to, and the keys that were removed from them since the model's newest
refresh.

Its control row has the version of each such parent (``table_versions.py``): the build of a child checks only the keys
that were removed since then.
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
    """``rows`` returns a model's rows by its name; ``moved`` are the names of models that changed; for a rule that
    refers to one of these, ``left`` returns the values of the rule's field that were removed (one column), or None if
    they are unknown.
    """

    rows: Callable[[str], DataFrame]
    left: Callable[[Relationship], DataFrame | None] = _unknown
    moved: frozenset[str] = frozenset()

    def has_moved(self, rule: Rule) -> bool:
        """Return whether the rule refers to a model that changed."""
        return isinstance(rule, Relationship) and rule.to in self.moved


def current_versions(spark: SparkSession, model: Model, at: Warehouse) -> dict[str, VersionRef] | None:
    """Return the current versions of the model's parents by name, for its control row; None if it has no parents."""
    wanted = {check.rule.to for check in model.checks if isinstance(check.rule, Relationship)} - {model.name}
    return {name: table_versions.current(spark, at.gold, at.lake.gold(name)) for name in sorted(wanted)} or None


def load(
    spark: SparkSession,
    at: Warehouse,
    keys: Mapping[str, tuple[str, ...]],
    then: Mapping[str, VersionRef] | None,
    now: Mapping[str, VersionRef] | None,
) -> Parents:
    """Load the parents, of which those whose version ``now`` differs from ``then`` count as moved; ``keys`` are those
    of the models.
    """
    before, after = then or {}, now or {}
    moved = frozenset(name for name, place in after.items() if before.get(name) != place)

    def left(rule: Relationship) -> DataFrame | None:
        version_before, key = before.get(rule.to), keys.get(rule.to, ())
        if version_before is None or key != (rule.field,):
            return None
        table = at.lake.gold(rule.to, key)
        changed = table_versions.changed_keys(spark, at.gold, table, version_before, after[rule.to])
        present = at.gold.read(spark, table).select(names.quote_spark(rule.field))
        return None if changed is None else changed.join(present, list(key), how="left_anti")

    return Parents(partial(_rows, spark, at), left, moved)


def _rows(spark: SparkSession, at: Warehouse, name: str) -> DataFrame:
    return at.gold.read(spark, at.lake.gold(name))
