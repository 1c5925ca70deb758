"""Every check of the gold models over all that is there, without building anything."""

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
    """A model's verdicts, one per check that can be seen in a table at rest; or why there are none (``error``)."""

    model: str
    verdicts: tuple[Verdict, ...] = ()
    error: ReplicatorError | None = None

    @property
    def is_well(self) -> bool:
        """Whether it was looked at, and breaks no check but those that only warn."""
        return self.error is None and all(each.is_kept or each.check.severity != FAIL for each in self.verdicts)


def select_models(models: Sequence[Model], names: Sequence[str]) -> list[Model]:
    """The models that are named and have checks; without names all that have. Raises ConfigError for a name that no
    model has.
    """
    wanted = plan.select_models(models, names)
    return [model for model in models if model.checks and model.name in wanted]


def run_checks(
    spark: SparkSession, models: Iterable[Model], gold: TableFormat, lake: Lake
) -> Iterator[ModelCheckResult]:
    """Look at each model's table as it is now. A model that is not built yet, or whose check Spark refuses, has its
    error, and the others go on: **the caller must look**. Raises NO_LAKE.
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
