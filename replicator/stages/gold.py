"""Silver -> gold: recompute each model whose inputs have changed, its affected rows or all of it, and write only rows
that differ.

Effects of one refresh, in this order: 1. the control row (the version of every input), 2. the merge of the difference
with the control row's number as progress. The merge makes the control row valid; a control row without a merge is
written again. If the model gained or widened columns, a replacement of all rows takes the place of the merge, so that
no reader sees the new columns without values.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.errors import ChecksFailed, ConfigError, ReplicatorError
from replicator.jvm.failures import FAILURES
from replicator.spec import INCREMENTAL, Applied, Model, Progress, Table
from replicator.stages import engine_errors, parallel, tuning
from replicator.stages.models import affected_rows, model_checks, model_growth, refresh_plan, refresh_work, source_cuts
from replicator.stages.models.model_parents import Parents
from replicator.stages.models.refresh_plan import NOTHING, Task
from replicator.stages.models.refresh_work import Keys, Work
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms import model as transform
from replicator.transforms.columns.reshape import apply_evolution

_PARALLEL_MODELS = 2


@dataclass(frozen=True)
class RefreshResult:
    """The result for one model: how it was refreshed (``action``: ``incremental``, ``full``, ``first build``) and why
    (``reason``), the ``rows`` computed, the rows of its table that were ``affected`` (None: all), what the merge did,
    and seconds. ``warnings``: violated checks of severity ``warn``. ``error``: why it stopped; gold is unchanged then.
    """

    model: str
    rows: int = 0
    applied: Applied | None = None
    seconds: float = 0.0
    error: ReplicatorError | None = None
    action: str = ""
    reason: str = ""
    affected: int | None = None
    warnings: tuple[str, ...] = ()


def refresh(spark: SparkSession, models: Iterable[Model], at: Warehouse) -> list[RefreshResult]:
    """Bring models up to date, in the given (dependency) order. Returns one result per model whose inputs changed.

    A model that cannot be built has its error in its result, and the others continue: **the caller must check**. Models
    that do not read each other are built in parallel, since planning one keeps only a single core busy.
    """
    models = list(models)
    keys, built = keys_of(models), dict[str, RefreshResult | None]()
    for wave in waves(models):
        reports = parallel.run_each(lambda model: _timed(spark, model, at, keys), wave, _PARALLEL_MODELS, "gold")
        for model, report in zip(wave, reports, strict=True):
            built[model.name] = report and _with_cause(model, report, built)
    return [report for model in models if (report := built[model.name]) is not None]


def _with_cause(model: Model, built: RefreshResult, before: Mapping[str, RefreshResult | None]) -> RefreshResult:
    """Return the result of a model; if it does not fit an input that stopped in this run, with that as the way out."""
    reports = {name: before.get(name) for name in model.inputs.values()}
    stopped = [name for name, report in reports.items() if report is not None and report.error is not None]
    if not stopped or not isinstance(built.error, ConfigError):
        return built
    fix = f"Fix what stopped its input {stopped[0]} first."
    return replace(built, error=ConfigError(built.error.what, where=built.error.where, fix=fix))


def keys_of(models: Iterable[Model]) -> Keys:
    """The keys of models, by name."""
    return {model.name: model.key for model in models}


def waves(models: Iterable[Model]) -> Iterator[list[Model]]:
    """The models in their order, split wherever a model or one of its checks reads a model of the same group. Within a
    group those with the most inputs come first: facts, which take longest, while the others run beside them.
    """
    wave: list[Model] = []
    for model in models:
        if {each.name for each in wave} & model.reads:
            yield _longest_first(wave)
            wave = []
        wave.append(model)
    if wave:
        yield _longest_first(wave)


def _longest_first(wave: Sequence[Model]) -> list[Model]:
    return sorted(wave, key=lambda model: -len(model.inputs))


def _timed(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> RefreshResult | None:
    started = time.monotonic()
    try:
        report = _refresh(spark, model, at, keys)
    except ReplicatorError as error:
        report = RefreshResult(model.name, error=error)
    except FAILURES as error:
        report = RefreshResult(model.name, error=engine_errors.to_table_error(error, model.name))
    return None if report is None else replace(report, seconds=time.monotonic() - started)


def _refresh(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> RefreshResult | None:
    cuts = source_cuts.load(model, at)
    with refresh_plan.prepare(spark, model, at, keys) as task:
        if task.action == NOTHING or task.work is None:
            return None
        source_cuts.refuse_moved(model, at, cuts)
        if task.action == INCREMENTAL:
            return _refresh_affected(model, at, task, task.work)
        return _with_action(_refresh_full(model, at, task.work), task)


def _with_action(built: RefreshResult, task: Task) -> RefreshResult:
    return replace(built, action=task.action, reason=task.reason.sentence)


def _refresh_full(model: Model, at: Warehouse, work: Work) -> RefreshResult:
    fresh = transform.with_unknown_member(work.full_rows(), model.unknown_member)
    growth = None if work.stored is None else model_growth.required(model, work, work.stored, fresh)
    before = work.stored if work.stored is not None and model_growth.has_key(model, work.stored) else None
    stored = None if before is None or growth is None else apply_evolution(before, growth)
    with _count_difference(model, transform.compare(stored, fresh, model.key)) as difference:
        return _commit(model, at, work, stored, difference, fresh if growth else None)


def _refresh_affected(model: Model, at: Warehouse, task: Task, work: Work) -> RefreshResult:
    if work.stored is None or task.affected_keys is None:
        nothing = work.full_rows().limit(0).withColumn("_op", F.lit("upsert"))
        return _with_action(replace(_commit(model, at, work, work.stored, Difference(nothing)), affected=0), task)
    _refuse_broken_keys(model, task.broken)
    with ExitStack() as stack:
        try:
            diff = stack.enter_context(affected_rows.compare(model, task, work, task.affected_keys))
            difference = stack.enter_context(_count_difference(model, diff))
        except FAILURES as error:
            fallback = refresh_plan.fall_back_to_full(task, error)
        else:
            built = _commit(model, at, work, work.stored, difference)
            return _with_action(replace(built, affected=task.affected), task)
    return _with_action(_refresh_full(model, at, work), fallback)


@dataclass(frozen=True)
class Difference:
    """The ``rows`` to write (see ``transforms/model.py``) and how many rows were ``computed`` for them; with
    ``repeats`` some of them may be equal to stored rows.
    """

    rows: DataFrame
    upserts: int = 0
    deletes: int = 0
    computed: int = 0
    repeats: bool = False


@contextmanager
def _count_difference(model: Model, diff: transform.ModelDiff) -> Iterator[Difference]:
    """The difference, computed and counted in one job and persisted for the block. Raises ChecksFailed for duplicate or
    NULL keys.
    """
    with tuning.persist_and_count(diff.rows, diff.counts, diff.differs) as (rows, counts):
        _refuse_broken_keys(model, counts["broken"])
        written = rows.drop(transform.ROW_NUMBER)
        yield Difference(written, counts["upsert"], counts["delete"], counts["rows"], diff.repeats)


@dataclass(frozen=True)
class ComputedModel:
    """All rows of a model, computed from its inputs as they are now: their count, the work behind them, and violated
    checks of severity ``warn``.
    """

    model: Model
    table: Table
    rows: DataFrame
    count: int
    work: Work
    warnings: tuple[str, ...] = ()


@contextmanager
def compute_full(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> Iterator[ComputedModel]:
    """Compute a model in full, whether or not an input changed, run its checks, and persist the rows for the block.

    Raises TableMissing, ConfigError, ChecksFailed; TableStopped and AtWork while silver holds partial transactions.
    """
    cuts = source_cuts.load(model, at)
    work = refresh_work.load_work(spark, model, at, keys)
    source_cuts.refuse_moved(model, at, cuts)
    with tuning.persist(transform.with_unknown_member(work.full_rows(), model.unknown_member)) as fresh:
        count, warnings = check_full(model, fresh, work.stored, work.parents)
        yield ComputedModel(model, at.table(model), fresh, count, work, warnings)


def check_full(
    model: Model, fresh: DataFrame, stored: DataFrame | None, parents: Parents
) -> tuple[int, tuple[str, ...]]:
    """Check rows that are to replace everything ``stored``: their count, and violated checks of severity ``warn``.
    Raises ChecksFailed, also for broken keys, and ConfigError.
    """
    count = _count_rows(fresh, model)
    return count, model_checks.check_full(model, stored, fresh, count, parents)


def commit(model: Model, at: Warehouse, work: Work, write: Callable[[Table, Progress], Applied]) -> Applied:
    """Perform both effects: put the control row, then have ``write`` commit under its number."""
    at.control.put(at.lake.inputs(model.name, work.number), work.control)
    failpoints.hit("gold.inputs_noted")
    applied = write(at.table(model), Progress(model.name, work.number))
    failpoints.hit("gold.merged")
    at.control.remove(at.lake.inputs(model.name, work.before))
    failpoints.hit("gold.model_done")
    return applied


def _commit(
    model: Model,
    at: Warehouse,
    work: Work,
    stored: DataFrame | None,
    difference: Difference,
    grown: DataFrame | None = None,
) -> RefreshResult:
    """Check and commit the difference from what is ``stored``; ``grown``: all rows, if the table gets other columns."""
    last_digests = (
        (at.control.get(at.lake.inputs(model.name, work.before)) or {}).get("checks") if model.checks else None
    )
    counts = {"upsert": difference.upserts, "delete": difference.deletes}
    warnings = model_checks.check_difference(model, stored, difference.rows, counts, last_digests, work.parents)
    put = partial(at.gold.put, difference.rows, repeats=difference.repeats)
    write = put if grown is None else partial(at.gold.replace, grown)
    applied = commit(model, at, work, write)
    return RefreshResult(model.name, difference.computed, applied, warnings=warnings)


def _count_rows(fresh: DataFrame, model: Model) -> int:
    """The number of rows, counted in one job together with broken keys. Raises ChecksFailed for those."""
    counted = transform.count_keys(fresh, model.key).agg(
        F.coalesce(F.sum("count"), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.col("broken").cast("int")), F.lit(0)).alias("broken"),
    )
    row = counted.first()
    rows, broken = (0, 0) if row is None else (row["rows"], row["broken"])
    _refuse_broken_keys(model, broken)
    return int(rows)


def _refuse_broken_keys(model: Model, broken: int) -> None:
    if broken:
        raise ChecksFailed(
            f"{broken} keys of {', '.join(model.key)} are NULL or occur more than once",
            where=model.name,
            fix="The gold table was not changed. Fix the model's SQL or its `key`.",
        )
