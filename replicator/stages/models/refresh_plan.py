"""What one refresh of a gold model has to do, and why: nothing, its affected rows, or all of it (gold.md).

The control row of the newest refresh tells what gold was made of. It holds whatever decides the result: the SQL's hash,
the settings by which it is understood (``sql_settings.py``), the key, the lineage, and of every input its place
(``table_versions.py``) and a digest of its columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import key_spans, names
from replicator.jvm import causes
from replicator.jvm.failures import FAILURES
from replicator.spec import FULL, INCREMENTAL, Model
from replicator.stages import tuning
from replicator.stages.models import (
    model_checks,
    model_inputs,
    model_parents,
    refresh_reasons,
    sql_settings,
    table_versions,
)
from replicator.stages.models.model_inputs import ModelInput, View
from replicator.stages.models.model_parents import Parents
from replicator.stages.models.model_rows import rows_of
from replicator.stages.models.refresh_reasons import Reason, RefreshFacts
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.incremental import affected
from replicator.transforms.incremental.affected import InputUse, Query
from replicator.transforms.incremental.eligibility import JoinAnalysis
from replicator.transforms.spans import Keys as Asked
from replicator.transforms.spans import Spans

NOTHING, FIRST_BUILD = "nothing", "first build"
"""What is to be done, beside INCREMENTAL and FULL."""

NEAR_ROWS = 500_000
"""So many keys are sent to every task, rather than sorted together with what they are looked for in."""


@dataclass(frozen=True)
class Work:
    """What computing a model takes: a session of the right size, its SQL as a function of its inputs, their ``views``
    by placeholder, the rows that its table has (``stored``; None: there is no table), and the control row of this
    refresh with its number; ``before`` is that of the newest refresh (-1: there was none). ``rekeyed``: the table may
    have another key. ``parents`` are what its checks look up. ``size`` is the bytes of all inputs.
    """

    spark: SparkSession
    query: Query
    views: Mapping[str, View]
    stored: DataFrame | None
    control: Mapping[str, Any]
    number: int
    before: int
    rekeyed: bool
    parents: Parents
    size: int

    @cached_property
    def probe(self) -> JoinAnalysis:
        """What the plan of its SQL tells."""
        return JoinAnalysis(self.query, {name: each.rows for name, each in self.views.items()})

    def whole(self) -> DataFrame:
        """All rows of the model as they are to be."""
        return self.query({name: each.rows for name, each in self.views.items()})


@dataclass(frozen=True)
class Task:
    """What is to be done with one model. ``work`` is None where that is nothing.

    ``changed`` counts the changed keys by placeholder, where somebody had to count; ``rows`` are those that the table
    has, ``affected`` those whose key a change touches, and ``broken`` such keys with a NULL in them. ``uses`` and
    ``touched`` (``transforms/incremental/affected.py``) are there where only affected rows are to be computed; ``lie``
    tells where the keys of those are, where nobody has to ask (None: not yet known).
    """

    action: str
    reason: Reason
    work: Work | None = field(default=None, repr=False)
    changed: Mapping[str, int] = field(default_factory=dict)
    rows: int | None = None
    affected: int | None = None
    broken: int = 0
    uses: Mapping[str, InputUse] = field(default_factory=dict, repr=False)
    touched: DataFrame | None = field(default=None, repr=False)
    lie: Spans | None = field(default=None, repr=False)

    @property
    def is_near(self) -> bool:
        """Whether the affected keys are few enough to be sent to every task."""
        return (self.affected or 0) <= NEAR_ROWS


Keys = Mapping[str, tuple[str, ...]]
"""The keys of models, by name."""


@contextmanager
def prepare(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> Iterator[Task]:
    """A model's task; what it holds is computed once and kept for the time of the block. Nothing is written.

    ``keys`` are those of the models that it may read. Raises TableMissing for an input that is not there, ConfigError
    for SQL or lineage that Spark or the inputs refuse.
    """
    known = _load_inputs(spark, model, at, keys)
    inputs, last = known.inputs, known.last
    unlike = {part for part, told in known.control.items() if last is None or last.get(part) != told}
    if not unlike:
        yield Task(NOTHING, refresh_reasons.UNMOVED)
        return
    work = _build_work(spark, model, at, known)
    if work.stored is None:
        yield Task(FIRST_BUILD, refresh_reasons.NO_TABLE, work)
        return
    if unlike == {"parents"}:
        yield Task(INCREMENTAL, refresh_reasons.parents_moved(work.parents.moved), work, affected=0)
        return
    is_small = known.size <= at.full_bytes
    found = RefreshFacts(
        inputs, work.views, last, work.control, work.whole(), work.stored, lambda: work.probe, is_small=is_small
    )
    reason = refresh_reasons.reason_for_full(model, found)
    with ExitStack() as kept:
        yield Task(FULL, reason, work) if reason else _plan_by_changes(model, inputs, last or {}, work, at, kept)


def fall_back_to_full(task: Task, error: Exception) -> Task:
    """The same of all rows, where the engine failed at the affected ones: joined with a part of an input the model's
    SQL may divide by what that part does not have. Raises the error where the store does not answer, or refuses.
    """
    if causes.is_infrastructure(error):
        raise error
    return Task(FULL, refresh_reasons.parts_failed(error), task.work, task.changed, task.rows)


def load_work(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> Work:
    """What computing all of a model takes, whether or not an input moved. Raises as :func:`prepare`."""
    return _build_work(spark, model, at, _load_inputs(spark, model, at, keys))


def find_spans(work: Work, keys: Asked) -> Sequence[Spans]:
    """Where the values of some columns of each frame are, to look for them there alone; not told of work that reads all
    of its tables sooner.
    """
    return key_spans.find_if_large(keys, work.size)


@dataclass(frozen=True)
class _RefreshInputs:
    """The inputs as they are now with their bytes, the control row of the newest refresh (``last``) with its number
    (``before``; -1: there was none), the parts of the next one's that are known before an input is read, and the keys
    of all models.
    """

    inputs: Mapping[str, ModelInput]
    size: int
    last: Mapping[str, Any] | None
    control: dict[str, Any]
    before: int
    keys: Keys


def _load_inputs(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> _RefreshInputs:
    inputs = model_inputs.find(spark, model, at, keys)
    done = at.gold.progress(spark, at.table(model), model.name)
    row = None if done is None else at.control.get(at.lake.inputs(model.name, done.version))
    size = sum(each.format.size(spark, each.table) for each in inputs.values())
    control = control_row(spark, model, inputs) | {"parents": model_parents.current_versions(spark, model, at)}
    last = row and sql_settings.with_settings(row, spark) | {
        p: table_versions.parse(row.get(p), control[p]) for p in ("inputs", "parents")
    }
    return _RefreshInputs(inputs, size, last, control, -1 if done is None else done.version, keys)


def _build_work(spark: SparkSession, model: Model, at: Warehouse, known: _RefreshInputs) -> Work:
    spark, table = tuning.session_for_models(spark, known.size), at.table(model)
    views = {name: model_inputs.view(spark, each) for name, each in known.inputs.items()}
    control = known.control | {"columns": {name: each.columns for name, each in views.items()}}
    version = at.gold.version(spark, table)
    stored = None if version is None else at.gold.read(spark, table)
    # as its commit: a RESTORE takes the newest number back, and what had the next one is there to be restored, too
    number = 1 + max(known.before, -1 if version is None else version)
    rekeyed = known.last is None or known.last.get("key") != control["key"]
    parents = model_parents.load(spark, at, known.keys, (known.last or {}).get("parents"), control["parents"])
    rows = partial(rows_of, spark, model)
    made = Work(spark, rows, views, stored, control, number, known.before, rekeyed, parents, known.size)
    misfit = refresh_reasons.lineage_misfit(model, views, made.whole())
    if misfit is not None:
        refresh_reasons.refuse_new_lineage(model, known.last, control, misfit)
    return made


def _plan_by_changes(
    model: Model,
    inputs: Mapping[str, ModelInput],
    last: Mapping[str, Any],
    work: Work,
    at: Warehouse,
    kept: ExitStack,
) -> Task:
    """The affected rows, or all of them where those would be too many: first by a count of the changed keys alone."""
    found: dict[str, DataFrame] = {}
    counts: dict[str, int] = {}
    for each in {each.given: (name, each) for name, each in inputs.items()}.values():
        name, given = each
        then = last["inputs"][name]
        if then != given.place:
            keys = model_inputs.changed_keys(work.spark, given, work.views[name], then)
            if keys is None:
                return Task(FULL, refresh_reasons.no_history(given.given, then.version), work)
            found[given.given], told = kept.enter_context(tuning.persist_and_count(keys, {"all": F.lit(True)}))
            counts[given.given] = told["all"]
    changes = {n: counts.get(each.given, 0) for n, each in inputs.items()}
    rows = 0 if work.stored is None else at.gold.count(work.spark, at.table(model))
    task = Task(INCREMENTAL, refresh_reasons.moved(model, changes), work, changes, rows)
    most = at.full_share * rows
    if not any(counts.values()):
        reason = refresh_reasons.CHECKS_CHANGED if last.get("checks") != work.control["checks"] else task.reason
        return replace(task, affected=0, reason=reason)
    if max(counts.values()) > most:
        return replace(task, action=FULL, reason=refresh_reasons.many(max(counts.values()), task.rows, "changed keys"))
    uses = {n: _use(model, n, work.views[n], found.get(each.given), task.changed[n]) for n, each in inputs.items()}

    def written(name: str) -> DataFrame | None:
        return model_inputs.changed_rows(work.spark, inputs[name], work.views[name], last["inputs"][name])

    task = replace(task, uses=uses)
    try:
        task = _plan_by_grain(model, task, written) or _with_touched_rows(model, _with_spans(task, work), kept)
    except FAILURES as error:
        return fall_back_to_full(task, error)
    if (task.affected or 0) > most:
        return replace(task, action=FULL, reason=refresh_reasons.many(task.affected, task.rows, "affected rows"))
    return task


def _use(model: Model, name: str, view: View, changed: DataFrame | None, count: int) -> InputUse:
    near = changed if changed is None or count > NEAR_ROWS else F.broadcast(changed)
    return InputUse(view.rows, view.keys, model.lineage[name], near if count else None)


def _plan_by_grain(model: Model, task: Task, written: Callable[[str], DataFrame | None]) -> Task | None:
    """Where the grain alone changed, and its changed rows are ``written`` apart: nobody has to ask where they lie."""
    own = affected.affected_by_key(task.uses, model.key)
    if own is None:
        return None
    [grain] = [name for name, use in task.uses.items() if use.changed is not None]
    rows = written(grain)
    if rows is None:
        return None
    uses = {**task.uses, grain: replace(task.uses[grain], rows=rows)}
    return replace(task, affected=max(task.changed.values()), touched=own[0], uses=uses)


def _with_spans(task: Task, work: Work) -> Task:
    """The same, told where the changed keys lie."""
    moved = {name: (use.changed, use.keys) for name, use in task.uses.items() if use.changed is not None}
    lie = dict(zip(moved, find_spans(work, list(moved.values())), strict=True))
    return replace(task, uses={name: replace(use, lie=lie.get(name, {})) for name, use in task.uses.items()})


def _with_touched_rows(model: Model, task: Task, kept: ExitStack) -> Task:
    """With the rows that are to be computed."""
    work = task.work
    if work is None or work.stored is None:
        return task
    own = affected.affected_by_key(task.uses, model.key)
    if own is not None:
        keys, lie = own
        return replace(task, affected=max(task.changed.values()), touched=keys, lie=lie)
    touched = kept.enter_context(tuning.persist(affected.affected_rows(work.query, work.stored, task.uses, model.key)))
    key = [names.quote_spark(column) for column in model.key]
    incomplete = F.lit(False)
    for column in key:
        incomplete = incomplete | F.col(column).isNull()
    row = touched.select(*key).distinct().agg(F.count("*"), F.count(F.when(incomplete, 1))).first()
    count, broken = (0, 0) if row is None else tuple(row)
    return replace(task, affected=count, broken=broken, touched=touched)


def control_row(spark: SparkSession, model: Model, inputs: Mapping[str, ModelInput]) -> dict[str, Any]:
    """What a refresh read, as far as it is known without reading: the model, and where every input is."""
    return {
        "settings": sql_settings.current(spark),
        "sql": hashlib.sha256(model.sql.encode()).hexdigest(),
        "key": list(model.key),
        "lineage": {name: list(columns) for name, columns in model.lineage.items()},
        "unknown_member": None if model.unknown_member is None else repr(sorted(model.unknown_member.items())),
        "checks": model_checks.digests(model),
        "inputs": {name: each.place for name, each in inputs.items()},
    }
