"""Compute decoded changes once, and count them in the same job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from pyspark.sql import Column, DataFrame

from replicator.debezium.schema import Form
from replicator.stages import tuning
from replicator.stages.table.transforming import BatchTransform


def compute(
    decoded: Callable[[bool], DataFrame],
    forms: Sequence[Form],
    transform: BatchTransform,
    conditions: Mapping[str, Column],
    stack: ExitStack,
) -> tuple[DataFrame, Mapping[str, int]]:
    """Compute the changes of these forms and count those that meet each condition; persisted as long as ``stack`` is
    open. ``decoded`` decodes them with or without the reasons of rejects.

    Records with the columns of the table are decoded without reasons first. If one of them would be rejected, all are
    decoded again with reasons.
    """
    if transform.transform is None and not any(map(transform.layout.find_misfit, forms)):
        with ExitStack() as tried:
            quick = tuning.in_one_task(decoded(False))
            made, counts = tried.enter_context(tuning.persist_and_count(quick, conditions))
            if not counts["rejected"]:
                stack.enter_context(tried.pop_all())
                return made, counts
    changes = transform.apply(decoded(True))
    return stack.enter_context(tuning.persist_and_count(tuning.in_one_task(changes), conditions))
