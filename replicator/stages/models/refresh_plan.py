"""Plan one refresh of a gold model, and why: nothing, its affected rows, or all of it (gold.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import causes
from replicator.jvm.failures import FAILURES
from replicator.spec import FULL, INCREMENTAL, Model
from replicator.stages import tuning
from replicator.stages.models import model_inputs, refresh_reasons, refresh_work
from replicator.stages.models.model_inputs import ModelInput, View
from replicator.stages.models.refresh_reasons import Reason, RefreshFacts
from replicator.stages.models.refresh_work import Keys, Work
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.incremental import affected
from replicator.transforms.incremental.affected import InputUse
from replicator.transforms.spans import Spans

NOTHING, FIRST_BUILD = "nothing", "first build"
"""Actions besides INCREMENTAL and FULL."""

NEAR_ROWS = 500_000
"""Up to this number, keys are broadcast to every task instead of being sorted together with the rows in which they are
looked up.
"""


@dataclass(frozen=True)
class Task:
    """The plan for one model. ``work`` is None if there is nothing to do.

    ``changed`` has the number of changed keys by placeholder, if they were counted; ``rows`` is the number of the
    table's rows, ``affected`` that of the rows whose key a change touches, and ``broken`` that of such keys with a NULL
    in them. ``uses`` and ``affected_keys`` (``transforms/incremental/affected.py``) are set if only affected rows are
    to be computed; ``spans`` has the value ranges of the touched keys, if known without a query (None: not yet known).
    """

    action: str
    reason: Reason
    work: Work | None = field(default=None, repr=False)
    changed: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    affected: int | None = None
    broken: int = 0
    uses: Mapping[str, InputUse] = field(default_factory=dict, repr=False)
    affected_keys: DataFrame | None = field(default=None, repr=False)
    spans: Spans | None = field(default=None, repr=False)

    @property
    def is_near(self) -> bool:
        """Whether the affected keys are few enough to be broadcast to every task."""
        return (self.affected or 0) <= NEAR_ROWS


@contextmanager
def prepare(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> Iterator[Task]:
    """Yield a model's task; what it holds is computed once and persisted while the context is open. Nothing is written.

    ``keys`` are those of the models that it may read. Raises TableMissing for an input that does not exist, ConfigError
    for SQL or lineage that Spark or the inputs refuse.
    """
    known = refresh_work.load_inputs(spark, model, at, keys)
    inputs, last = known.inputs, known.last
    changed_parts = {part for part, value in known.control.items() if last is None or last.get(part) != value}
    if not changed_parts:
        yield Task(NOTHING, refresh_reasons.UNMOVED)
        return
    work = refresh_work.build_work(spark, model, at, known)
    if work.stored is None:
        yield Task(FIRST_BUILD, refresh_reasons.NO_TABLE, work)
        return
    if changed_parts == {"parents"}:
        yield Task(INCREMENTAL, refresh_reasons.parents_moved(work.parents.moved), work, affected=0)
        return
    is_small = known.size <= at.full_bytes
    found = RefreshFacts(
        inputs, work.views, last, work.control, work.full_rows(), work.stored, lambda: work.probe, is_small=is_small
    )
    reason = refresh_reasons.reason_for_full(model, found)
    with ExitStack() as stack:
        yield Task(FULL, reason, work) if reason else _plan_by_changes(model, inputs, last or {}, work, at, stack)


def fall_back_to_full(task: Task, error: Exception) -> Task:
    """Return the task for all rows after the engine failed to compute the affected ones: joined with a part of an
    input, the model's SQL may divide by something that this part does not have. Raises the error if the store does not
    answer, or denies access.
    """
    if causes.is_infrastructure(error):
        raise error
    return Task(FULL, refresh_reasons.parts_failed(error), task.work, task.changed, task.rows)


def _plan_by_changes(
    model: Model,
    inputs: Mapping[str, ModelInput],
    last: Mapping[str, Any],
    work: Work,
    at: Warehouse,
    stack: ExitStack,
) -> Task:
    """Plan the affected rows, or all rows if those are too many: first by the number of changed keys alone."""
    found: dict[str, DataFrame] = {}
    counts: dict[str, int] = {}
    for each in {each.given: (name, each) for name, each in inputs.items()}.values():
        name, given = each
        seen = last["inputs"][name]
        if seen != given.place:
            keys = model_inputs.changed_keys(work.spark, given, work.views[name], seen)
            if keys is None:
                return Task(FULL, refresh_reasons.no_history(given.given, seen.version), work)
            found[given.given], tally = stack.enter_context(tuning.persist_and_count(keys, {"all": F.lit(True)}))
            counts[given.given] = tally["all"]
    changes = {n: counts.get(each.given, 0) for n, each in inputs.items()}
    rows = 0 if work.stored is None else at.gold.count(work.spark, at.table(model))
    task = Task(INCREMENTAL, refresh_reasons.moved(model, changes), work, changes, rows)
    max_rows = at.full_share * rows
    if not any(counts.values()):
        reason = refresh_reasons.CHECKS_CHANGED if last.get("checks") != work.control["checks"] else task.reason
        return replace(task, affected=0, reason=reason)
    if max(counts.values()) > max_rows:
        return replace(task, action=FULL, reason=refresh_reasons.many(max(counts.values()), task.rows, "changed keys"))
    uses = {n: _use(model, n, work.views[n], found.get(each.given), task.changed[n]) for n, each in inputs.items()}

    def written(name: str) -> DataFrame | None:
        return model_inputs.changed_rows(work.spark, inputs[name], work.views[name], last["inputs"][name])

    task = replace(task, uses=uses)
    try:
        task = _plan_by_grain(model, task, written) or _with_touched_rows(model, _with_spans(task, work), stack)
    except FAILURES as error:
        return fall_back_to_full(task, error)
    if (task.affected or 0) > max_rows:
        return replace(task, action=FULL, reason=refresh_reasons.many(task.affected, task.rows, "affected rows"))
    return task


def _use(model: Model, name: str, view: View, changed: DataFrame | None, count: int) -> InputUse:
    near = changed if changed is None or count > NEAR_ROWS else F.broadcast(changed)
    return InputUse(view.rows, view.keys, model.lineage[name], near if count else None)


def _plan_by_grain(model: Model, task: Task, written: Callable[[str], DataFrame | None]) -> Task | None:
    """Plan the case that only the grain input changed and its changed rows (``written``) can be read separately: no
    value ranges are needed. None in other cases.
    """
    own = affected.affected_by_key(task.uses, model.key)
    if own is None:
        return None
    [grain] = [name for name, use in task.uses.items() if use.changed is not None]
    rows = written(grain)
    if rows is None:
        return None
    uses = {**task.uses, grain: replace(task.uses[grain], rows=rows)}
    return replace(task, affected=max(task.changed.values()), affected_keys=own[0], uses=uses)


def _with_spans(task: Task, work: Work) -> Task:
    """Add the value ranges of the changed keys."""
    moved = {name: (use.changed, use.keys) for name, use in task.uses.items() if use.changed is not None}
    ranges = dict(zip(moved, refresh_work.find_spans(work, list(moved.values())), strict=True))
    return replace(task, uses={name: replace(use, spans=ranges.get(name, {})) for name, use in task.uses.items()})


def _with_touched_rows(model: Model, task: Task, stack: ExitStack) -> Task:
    """Add the rows that are to be computed."""
    work = task.work
    if work is None or work.stored is None:
        return task
    own = affected.affected_by_key(task.uses, model.key)
    if own is not None:
        keys, ranges = own
        return replace(task, affected=max(task.changed.values()), affected_keys=keys, spans=ranges)
    touched = stack.enter_context(tuning.persist(affected.affected_rows(work.query, work.stored, task.uses, model.key)))
    key = [names.quote_spark(column) for column in model.key]
    incomplete = F.lit(False)
    for column in key:
        incomplete = incomplete | F.col(column).isNull()
    row = touched.select(*key).distinct().agg(F.count("*"), F.count(F.when(incomplete, 1))).first()
    count, broken = (0, 0) if row is None else tuple(row)
    return replace(task, affected=count, broken=broken, affected_keys=touched)
