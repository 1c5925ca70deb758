"""What a refresh of a gold model computes with: the current inputs, the control row of the newest refresh, and that of
this one.

The control row of the newest refresh says what gold was made from. It has everything that decides the result: the SQL's
hash, the settings that affect its meaning (``sql_settings.py``), the key, the lineage, and for each input its version
(``table_versions.py``) and a digest of its columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from replicator import key_spans
from replicator.spec import Model
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
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.incremental.affected import Query
from replicator.transforms.incremental.eligibility import JoinAnalysis
from replicator.transforms.spans import Keys as Asked
from replicator.transforms.spans import Spans

Keys = Mapping[str, tuple[str, ...]]
"""The keys of models, by name."""


@dataclass(frozen=True)
class Work:
    """The inputs of a model's computation: a session tuned for its size, its SQL as a function of its inputs
    (``query``), their ``views`` by placeholder, the rows of its table (``stored``; None: there is no table), and the
    control row of this refresh with its number.

    ``before`` is the number of the newest refresh (-1: there was none). ``rekeyed``: the table may have another key.
    ``parents`` are what its checks look up. ``size`` is the bytes of all inputs.
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
        """The analysis of the plan of its SQL."""
        return JoinAnalysis(self.query, {name: each.rows for name, each in self.views.items()})

    def full_rows(self) -> DataFrame:
        """Return all rows of the model, as they are to be."""
        return self.query({name: each.rows for name, each in self.views.items()})


@dataclass(frozen=True)
class RefreshInputs:
    """The current inputs with their bytes, the control row of the newest refresh (``last``) with its number
    (``before``; -1: there was none), the parts of the next control row that are known before an input is read, and the
    keys of all models.
    """

    inputs: Mapping[str, ModelInput]
    size: int
    last: Mapping[str, Any] | None
    control: dict[str, Any]
    before: int
    keys: Keys


def load_inputs(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> RefreshInputs:
    """Return what a model reads. Raises TableMissing for an input that does not exist, and ConfigError for one that its
    format refuses.
    """
    inputs = model_inputs.find(spark, model, at, keys)
    done = at.gold.progress(spark, at.table(model), model.name)
    row = None if done is None else at.control.get(at.lake.inputs(model.name, done.version))
    size = sum(each.format.size(spark, each.table) for each in inputs.values())
    control = control_row(spark, model, inputs) | {"parents": model_parents.current_versions(spark, model, at)}
    last = row and sql_settings.with_settings(row, spark) | {
        p: table_versions.parse(row.get(p), control[p]) for p in ("inputs", "parents")
    }
    return RefreshInputs(inputs, size, last, control, -1 if done is None else done.version, keys)


def build_work(spark: SparkSession, model: Model, at: Warehouse, known: RefreshInputs) -> Work:
    """Return the work on these inputs. Raises ConfigError for SQL or lineage that Spark or the inputs refuse."""
    spark, table = tuning.session_for_models(spark, known.size), at.table(model)
    views = {name: model_inputs.view(spark, each) for name, each in known.inputs.items()}
    control = known.control | {"columns": {name: each.columns for name, each in views.items()}}
    version = at.gold.version(spark, table)
    stored = None if version is None else at.gold.read(spark, table)
    # like its commit: a RESTORE takes back the newest number, but commits with later numbers can still be restored
    number = 1 + max(known.before, -1 if version is None else version)
    rekeyed = known.last is None or known.last.get("key") != control["key"]
    parents = model_parents.load(spark, at, known.keys, (known.last or {}).get("parents"), control["parents"])
    rows = partial(rows_of, spark, model)
    work = Work(spark, rows, views, stored, control, number, known.before, rekeyed, parents, known.size)
    misfit = refresh_reasons.lineage_misfit(model, views, work.full_rows())
    if misfit is not None:
        refresh_reasons.refuse_new_lineage(model, known.last, control, misfit)
    return work


def load_work(spark: SparkSession, model: Model, at: Warehouse, keys: Keys) -> Work:
    """Return the work for computing all of a model, whether or not an input changed. Raises as :func:`load_inputs`
    and :func:`build_work`.
    """
    return build_work(spark, model, at, load_inputs(spark, model, at, keys))


def find_spans(work: Work, keys: Asked) -> Sequence[Spans]:
    """Return the value ranges of some columns of each frame, to restrict searches to them; empty for work that reads
    whole tables faster.
    """
    return key_spans.find_if_large(keys, work.size)


def control_row(spark: SparkSession, model: Model, inputs: Mapping[str, ModelInput]) -> dict[str, Any]:
    """Return the parts of a refresh's control row that are known without reading rows: the model, and the versions of
    its inputs.
    """
    return {
        "settings": sql_settings.current(spark),
        "sql": hashlib.sha256(model.sql.encode()).hexdigest(),
        "key": list(model.key),
        "lineage": {name: list(columns) for name, columns in model.lineage.items()},
        "unknown_member": None if model.unknown_member is None else repr(sorted(model.unknown_member.items())),
        "checks": model_checks.digests(model),
        "inputs": {name: each.place for name, each in inputs.items()},
    }
