"""The plan of the next gold run: what each model would compute, and why. Nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from replicator.errors import AtWork, ConfigError, ReplicatorError, TableMissing
from replicator.jvm.failures import FAILURES
from replicator.spec import FULL, INCREMENTAL, Model
from replicator.spelling import suggest
from replicator.stages import engine_errors
from replicator.stages.gold import keys_of
from replicator.stages.models import model_growth, refresh_plan, source_cuts
from replicator.stages.models.refresh_plan import FIRST_BUILD, NOTHING
from replicator.stages.models.refresh_work import Keys
from replicator.stages.models.warehouse import Warehouse

WAITS, STOPS = "waits", "stops"
"""Actions in addition to those of ``refresh_plan``: an input is missing or being written; the model cannot be computed
in its present state.
"""


@dataclass(frozen=True)
class ModelPlan:
    """The plan of one model: what a refresh would do (``action``) and why (``reason``, a stable name, and ``why``, a
    sentence); the number of ``changed`` keys by input, of the rows of its table that they ``affected``, and of all
    ``rows`` of the table. None: not counted.
    """

    model: str
    action: str
    reason: str
    why: str
    changed: Mapping[str, int] = field(default_factory=dict)
    affected: int | None = None
    rows: int | None = None


def select_models(models: Sequence[Model], named: Sequence[str]) -> frozenset[str]:
    """Return the names of the requested models; all if ``named`` is empty. Raises ConfigError, with the nearest
    spelling.
    """
    known = [model.name for model in models]
    for name in named:
        if name not in known:
            raise ConfigError(f"model {name!r} does not exist{suggest(name, known)}")
    return frozenset(named or known)


def plan_models(
    spark: SparkSession, models: Sequence[Model], at: Warehouse, wanted: Collection[str]
) -> Iterator[ModelPlan]:
    """Yield the plan of every wanted model, in the order in which ``models`` are built.

    Where an input is to be written first, its changes are not known yet: the plan is computed from its present
    contents, and ``why`` names it.
    """
    keys, looked_at = keys_of(models), _with_upstream(models, wanted)
    moving: dict[str, str] = {}
    for model in models:
        if model.name in looked_at:
            found = _plan_model(spark, model, at, keys, moving)
            if found.action not in (NOTHING, WAITS, STOPS):
                moving[model.name] = found.action
            if model.name in wanted:
                yield found


def _with_upstream(models: Sequence[Model], wanted: Collection[str]) -> set[str]:
    """Return the wanted models and all that they or their checks read; ``models`` lists each before its readers."""
    found = set(wanted)
    for model in reversed(models):
        if model.name in found:
            found |= model.reads
    return found


def _plan_model(spark: SparkSession, model: Model, at: Warehouse, keys: Keys, moving: Mapping[str, str]) -> ModelPlan:
    first = [input_name for input_name in model.inputs.values() if input_name in moving]
    try:
        found = _plan_from_present_inputs(spark, model, at, keys)
    except TableMissing as error:
        if any(moving.get(input_name) == FIRST_BUILD for input_name in first):
            return ModelPlan(model.name, FIRST_BUILD, "no table", f"{', '.join(first)} is built first, then this one")
        return ModelPlan(model.name, WAITS, "input missing", str(error))
    except AtWork as error:
        return ModelPlan(model.name, WAITS, "at work", str(error))
    except (ReplicatorError, *FAILURES) as error:
        why = error if isinstance(error, ReplicatorError) else engine_errors.to_table_error(error, model.name)
        are_columns_known = all(moving[input_name] == INCREMENTAL for input_name in first)
        if are_columns_known or not isinstance(why, ConfigError):
            return ModelPlan(model.name, STOPS, "error", str(why))
        found = _before_inputs(model, why, _count_rows(spark, model, at))
    if first:
        return _after_inputs(model, found, first)
    looked_up = sorted(model.reads & moving.keys())
    return _after_parents(found, looked_up) if looked_up and found.action == NOTHING else found


def _plan_from_present_inputs(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> ModelPlan:
    source_cuts.load(model, at)
    with refresh_plan.prepare(spark, model, at, keys) as task:
        if task.action == FULL and task.work is not None:
            model_growth.refuse_unfit(model, task.work)
        rows = _count_rows(spark, model, at) if task.rows is None else task.rows
        changed = {model.inputs[name]: count for name, count in task.changed.items()}
        reason = task.reason
        return ModelPlan(model.name, task.action, reason.name, reason.sentence, changed, task.affected, rows)


def _count_rows(spark: SparkSession, model: Model, at: Warehouse) -> int | None:
    table = at.lake.gold(model.name)
    return None if at.gold.version(spark, table) is None else at.gold.count(spark, table)


def _before_inputs(model: Model, error: ConfigError, rows: int | None) -> ModelPlan:
    """Return the plan of a model that does not fit its inputs as they are, before they are written."""
    what = f"with the present columns of its inputs, {error.what}"
    return ModelPlan(model.name, FIRST_BUILD if rows is None else FULL, "input first", what, rows=rows)


def _after_inputs(model: Model, found: ModelPlan, first: Sequence[str]) -> ModelPlan:
    """Adjust the plan of a model whose inputs are themselves to be written first."""
    what = f"{', '.join(first)} is built first, and its changes are not known yet"
    if found.action == NOTHING:
        return replace(found, action=model.refresh, reason="input first", why=what)
    return replace(found, why=f"{found.why}; {what}")


def _after_parents(found: ModelPlan, looked_up: Sequence[str]) -> ModelPlan:
    """Adjust the plan of a model with nothing to compute whose checks read models that are to be written first."""
    what = f"{', '.join(looked_up)} is built first: its checks read it"
    return replace(found, action=INCREMENTAL, reason="parents first", why=what, affected=0)
