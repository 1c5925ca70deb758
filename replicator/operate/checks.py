"""Run the checks of the gold models on their current tables, without building anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from replicator.errors import NO_LAKE, ReplicatorError
from replicator.jvm.failures import FAILURES
from replicator.lake import Lake
from replicator.operate import plan
from replicator.protocols import TableFormat
from replicator.spec import Model
from replicator.spec.rules import FAIL
from replicator.stages import engine_errors, tuning
from replicator.stages.models import model_checks
from replicator.stages.models.model_checks import Verdict
from replicator.stages.models.model_parents import Parents


@dataclass(frozen=True)
class ModelCheckResult:
    """A model's verdicts, one per check that can be tested on a stored table; or why there are none (``error``)."""

    model: str
    verdicts: tuple[Verdict, ...] = ()
    error: ReplicatorError | None = None

    @property
    def passed(self) -> bool:
        """Whether the checks could run, and no check failed but those of severity `warn`."""
        return self.error is None and all(each.passed or each.check.severity != FAIL for each in self.verdicts)


def select_models(models: Sequence[Model], names: Sequence[str]) -> list[Model]:
    """Return the named models that have checks; without names all models that have some. Raises ConfigError for an
    unknown model.
    """
    wanted = plan.select_models(models, names)
    return [model for model in models if model.checks and model.name in wanted]


def run_checks(
    spark: SparkSession, models: Iterable[Model], gold: TableFormat, lake: Lake
) -> Iterator[ModelCheckResult]:
    """Check each model's current table. The result of a model that is not built yet, or whose check Spark refuses, has
    an error, and the others continue: **the caller must check for it**. Raises NO_LAKE.
    """
    for model in models:
        yield _check_model(spark, model, gold, lake)


def _check_model(spark: SparkSession, model: Model, gold: TableFormat, lake: Lake) -> ModelCheckResult:
    try:
        read = partial(_rows, tuning.session_for(spark, gold.size(spark, lake.gold(model.name))), gold, lake)
        return ModelCheckResult(model.name, tuple(model_checks.check_stored(model, read(model.name), Parents(read))))
    except NO_LAKE:
        raise
    except ReplicatorError as error:
        return ModelCheckResult(model.name, error=error)
    except FAILURES as error:
        return ModelCheckResult(model.name, error=engine_errors.to_table_error(error, model.name))


def _rows(spark: SparkSession, gold: TableFormat, lake: Lake, name: str) -> DataFrame:
    return gold.read(spark, lake.gold(name))
