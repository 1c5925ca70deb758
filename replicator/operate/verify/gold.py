"""Comparison of gold tables with what their models compute from silver, as of the silver versions that gold was
computed from.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from replicator.operate.verify import ranges
from replicator.operate.verify.equality import Pair, find_differences, to_verdict
from replicator.operate.verify.verdict import GOLD, Comparison, Verdict, VerifyOptions
from replicator.spec import Model
from replicator.stages import tuning
from replicator.stages.models import model_comparison
from replicator.stages.models.refresh_work import Keys
from replicator.stages.models.warehouse import Warehouse


def comparison(at: Warehouse, model: Model, keys: Keys) -> Comparison:
    """Return the comparison of one model; ``keys`` are the keys of all models."""
    table = at.lake.gold(model.name, model.key)

    def size(spark: SparkSession) -> int:
        return 2 * at.gold.read(spark, table).count()

    return Comparison(GOLD, model.name, "silver", partial(_compare, at=at, model=model, keys=keys), size)


def _compare(
    spark: SparkSession, verdict: Verdict, options: VerifyOptions, *, at: Warehouse, model: Model, keys: Keys
) -> Verdict:
    spark = tuning.session_for(spark, at.gold.size(spark, at.lake.gold(model.name)))
    found = model_comparison.compare(spark, model, at, keys)
    verdict = replace(verdict, behind=found.behind, position=f"gold version {found.version}")
    with tuning.persist(found.computed) as fresh:
        pair = Pair(fresh, found.stored, model.key, ranges=ranges.build(found.stored, model.key, options.share))
        return to_verdict(verdict, pair, find_differences(pair, options), options)
