"""The rows of a model that a change touched: as its inputs make them now, beside what its table has (gold.md, steps 4
and 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.spec import Model
from replicator.stages import tuning
from replicator.stages.models import refresh_plan
from replicator.stages.models.refresh_plan import Task, Work
from replicator.transforms import model as transform
from replicator.transforms import spans
from replicator.transforms.incremental import affected
from replicator.transforms.spans import Spans


@contextmanager
def compare(model: Model, task: Task, work: Work, touched: DataFrame) -> Iterator[transform.ModelDiff]:
    """The model's rows under the keys of the ``touched`` rows (see :class:`Task`), beside those of its table, for the
    time of the block.
    """
    keys = touched.select(*map(names.quote_spark, model.key)).distinct()
    if not set(touched.columns).issubset(model.key):
        with _linked_rows(work, touched, _stored_rows(model, task, work, (touched, keys))) as (stored, lines, lie):
            firm = work.probe.firm(model.lineage_columns)
            yield transform.compare(stored, _fresh(model, task, work, (lines, keys), lie, firm), model.key)
        return
    rows = _fresh(model, task, work, (keys, keys), task.lie or {})  # rows of the table lead to no others
    if model.checks or not _has_types(rows, keys):
        yield transform.compare(_stored_rows(model, task, work, (touched, keys)), rows, model.key)
    else:  # whoever writes the rows reads what the table has there
        yield transform.overwrite_keys(keys, rows, model.key)


def _stored_rows(model: Model, task: Task, work: Work, of: tuple[DataFrame, DataFrame]) -> DataFrame:
    """The rows of the table under the keys of the touched rows, ``of`` those and the keys."""
    touched, keys = of
    if work.stored is None:
        return work.whole().limit(0)
    lie = refresh_plan.find_spans(work, [(touched, model.key)])[0] if task.lie is None else task.lie
    reached = work.stored.where(spans.may_match(work.stored, model.key, lie, model.key))
    return affected.semi_join(reached, model.key, F.broadcast(keys) if task.is_near else keys, model.key)


def _fresh(
    model: Model,
    task: Task,
    work: Work,
    of: tuple[DataFrame, DataFrame],
    lie: Spans,
    firm: Collection[str] = (),
) -> DataFrame:
    """The rows of the model under touched keys, ``of`` the lines that lead to their inputs and the keys."""
    lines, keys = of
    rows = affected.recompute(work.query, task.uses, lines, keys, model.key, near=task.is_near, lie=lie, firm=firm)
    if model.unknown_member is None:
        return rows
    member = transform.unknown_member(rows, model.unknown_member)
    return rows.unionByName(affected.semi_join(member, model.key, keys, model.key))


def _has_types(rows: DataFrame, keys: DataFrame) -> bool:
    """Whether keys of an input are of the model's types: else rows of the table may have them in another form."""
    return all(rows.schema[field.name].dataType == field.dataType for field in keys.schema)


@contextmanager
def _linked_rows(work: Work, touched: DataFrame, had: DataFrame) -> Iterator[tuple[DataFrame, DataFrame, Spans]]:
    """The rows that the table ``had`` under touched keys, kept; those and the ``touched`` ones with all that they lead
    to, and where that is.
    """
    columns = touched.columns
    with (
        tuning.persist(had) as stored,
        tuning.persist_union(touched, stored.select(*map(names.quote_spark, columns))) as lines,
    ):
        [lie] = refresh_plan.find_spans(work, [(lines, columns)])
        yield stored, lines, lie
