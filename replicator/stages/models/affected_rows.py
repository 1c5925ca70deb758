"""The affected rows of a model: computed from its inputs as they are now, and compared with those of its table
(gold.md, steps 4 and 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.spec import Model
from replicator.stages import tuning
from replicator.stages.models import refresh_work
from replicator.stages.models.refresh_plan import Task
from replicator.stages.models.refresh_work import Work
from replicator.transforms import model as transform
from replicator.transforms import spans
from replicator.transforms.incremental import affected
from replicator.transforms.spans import Spans


@contextmanager
def compare(model: Model, task: Task, work: Work, touched: DataFrame) -> Iterator[transform.ModelDiff]:
    """Yield the model's rows under the keys of the ``touched`` rows (see :class:`Task`) compared with those of its
    table; persisted while the context is open.
    """
    keys = touched.select(*map(names.quote_spark, model.key)).distinct()
    if not set(touched.columns).issubset(model.key):
        with _linked_rows(work, touched, _stored_rows(model, task, work, (touched, keys))) as (stored, lines, ranges):
            firm = work.probe.firm(model.lineage_columns)
            yield transform.compare(stored, _fresh(model, task, work, (lines, keys), ranges, firm), model.key)
        return
    rows = _fresh(model, task, work, (keys, keys), task.spans or {})  # the stored rows lead to no other rows
    if model.checks or not _has_types(rows, keys):
        yield transform.compare(_stored_rows(model, task, work, (touched, keys)), rows, model.key)
    else:  # the writer reads the stored rows under these keys
        yield transform.overwrite_keys(keys, rows, model.key)


def _stored_rows(model: Model, task: Task, work: Work, touched_and_keys: tuple[DataFrame, DataFrame]) -> DataFrame:
    """Return the rows of the table under the keys of the touched rows."""
    touched, keys = touched_and_keys
    if work.stored is None:
        return work.full_rows().limit(0)
    ranges = refresh_work.find_spans(work, [(touched, model.key)])[0] if task.spans is None else task.spans
    candidates = work.stored.where(spans.may_match(work.stored, model.key, ranges, model.key))
    return affected.semi_join(candidates, model.key, F.broadcast(keys) if task.is_near else keys, model.key)


def _fresh(
    model: Model,
    task: Task,
    work: Work,
    lines_and_keys: tuple[DataFrame, DataFrame],
    ranges: Spans,
    firm: Collection[str] = (),
) -> DataFrame:
    """Return the rows of the model under touched keys, computed from the lines that lead to their inputs and the
    keys.
    """
    lines, keys = lines_and_keys
    rows = affected.recompute(work.query, task.uses, lines, keys, model.key, near=task.is_near, lie=ranges, firm=firm)
    if model.unknown_member is None:
        return rows
    member = transform.unknown_member(rows, model.unknown_member)
    return rows.unionByName(affected.semi_join(member, model.key, keys, model.key))


def _has_types(rows: DataFrame, keys: DataFrame) -> bool:
    """Return whether the keys of an input have the model's types; otherwise the table may have them in another form."""
    return all(rows.schema[field.name].dataType == field.dataType for field in keys.schema)


@contextmanager
def _linked_rows(work: Work, touched: DataFrame, present: DataFrame) -> Iterator[tuple[DataFrame, DataFrame, Spans]]:
    """Yield the stored rows under touched keys, persisted; these together with the ``touched`` rows in the columns that
    lead to inputs; and the value ranges of those columns.
    """
    columns = touched.columns
    with (
        tuning.persist(present) as stored,
        tuning.persist_union(touched, stored.select(*map(names.quote_spark, columns))) as lines,
    ):
        [ranges] = refresh_work.find_spans(work, [(lines, columns)])
        yield stored, lines, ranges
