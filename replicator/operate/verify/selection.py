"""Select the comparisons that a lake allows: by layer, by table, and by what a table is compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from replicator.database_snapshots import Database
from replicator.errors import ConfigError
from replicator.operate.row.trace import find_table
from replicator.operate.verify import gold, source, target, twins
from replicator.operate.verify.verdict import GOLD, LAYERS, SOURCE, TARGET, TWINS, Comparison
from replicator.protocols import Sink
from replicator.spec import Model
from replicator.stages.gold import keys_of
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.refinement import Refinement


@dataclass(frozen=True)
class VerifyInputs:
    """Everything that can be compared: silver of some sources, its copies in other ``formats``, the sources'
    ``databases`` by source, the gold models and the sinks of their targets.
    """

    sources: Sequence[Refinement]
    formats: Sequence[str]
    warehouse: Warehouse
    models: Sequence[Model] = ()
    sinks: Mapping[str, Sink] = field(default_factory=dict)
    databases: Mapping[str, Database] = field(default_factory=dict)


def resolve_name(spark: SparkSession, at: VerifyInputs, name: str) -> str:
    """Return the name of a silver table or model as verdicts use it. Raises ConfigError for an unknown name."""
    models = [model.name for model in at.models]
    if name in models:
        return name
    found, table = find_table(spark, at.sources, name, models)
    return found.lake.silver(found.source.name, table).name


def select_comparisons(
    spark: SparkSession,
    at: VerifyInputs,
    wanted: Collection[str] | None = None,
    layers: Sequence[str] = LAYERS,
    against: str | None = None,
) -> list[Comparison]:
    """Return the comparisons of these layers, in the order of the layers. With ``wanted``, only those of these silver
    tables and models; without, tables that their source's file excludes are left out. With ``against``, only those with
    that format, target or kind of database. Raises ConfigError for an unknown name.
    """
    names = None if wanted is None else {resolve_name(spark, at, name) for name in wanted}
    models = [model for model in at.models if names is None or model.name in names]
    found: list[Comparison] = []
    for each in at.sources:
        if names is not None and not any(name.startswith(f"{each.source.name}/") for name in names):
            continue
        if SOURCE in layers and each.source.name in at.databases:
            found += source.comparisons(spark, each, at.databases[each.source.name], asked=names is not None)
        found += twins.comparisons(spark, each, at.formats) if TWINS in layers else []
    if names is not None:
        found = [each for each in found if each.table in names]
    found += [gold.comparison(at.warehouse, model, keys_of(at.models)) for model in models if GOLD in layers]
    published = [(model, model.target) for model in models if model.target is not None and TARGET in layers]
    found += [target.comparison(at.warehouse, model, place, at.sinks) for model, place in published]
    known = sorted({each.against for each in found})
    if against is not None and against not in known:
        raise ConfigError(f"nothing is compared with {against!r}", fix=f"Available: {', '.join(known) or 'none'}.")
    return sorted((e for e in found if against in (None, e.against)), key=lambda each: LAYERS.index(each.layer))
