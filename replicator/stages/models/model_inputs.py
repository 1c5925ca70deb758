"""An input of a gold model at the version that a refresh reads: its live rows, its key, and the keys that changed.

The key of a history is that of its table: all states of a row belong together, and change together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import TableMissing
from replicator.lake import HISTORY
from replicator.protocols import TableFormat
from replicator.spec import Model, Table
from replicator.spelling import did_you_mean
from replicator.stages.models import table_versions
from replicator.stages.models.table_versions import VersionRef
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.columns.layout import own_key
from replicator.transforms.live import select_live, source_spelling

SOURCE_TIMESTAMP = "_source_ts_ms"
"""The only system column of silver that models see."""


@dataclass(frozen=True)
class ModelInput:
    """One input at one version: a silver table, a history or another model. ``table.keys`` is its key if that is known
    without reading it, as it is for a model.
    """

    given: str
    format: TableFormat
    table: Table
    identity: str
    version: int
    commit: str | None = None

    @property
    def place(self) -> VersionRef:
        """The reference that the control row of a refresh stores."""
        return VersionRef(self.identity, self.version, self.commit)


@dataclass(frozen=True)
class View:
    """A model's view of an input: ``rows`` with the source's column names, and the key by the names in the table
    (``stored``) and in ``rows`` (``keys``); both are empty if the table has no key.
    """

    rows: DataFrame
    stored: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def columns(self) -> str:
        """A digest of the names and types of the columns."""
        return hashlib.sha256(repr(self.rows.dtypes).encode()).hexdigest()


def find(
    spark: SparkSession, model: Model, at: Warehouse, keys: Mapping[str, tuple[str, ...]]
) -> dict[str, ModelInput]:
    """Return a model's inputs by placeholder, at their current versions; inputs from the same table have the same
    version. ``keys`` are those of the models. Raises TableMissing.
    """
    found = {given: _find_input(spark, given, at, keys) for given in dict.fromkeys(model.inputs.values())}
    return {name: found[given] for name, given in model.inputs.items()}


def view(spark: SparkSession, model_input: ModelInput) -> View:
    """Return the live rows of an input."""
    rows = model_input.format.read(spark, model_input.table, model_input.version)
    stored = model_input.table.keys or own_key(rows.schema)
    keys = model_input.table.keys or tuple(source_spelling(rows.schema[column]) for column in stored)
    return View(_live_rows(model_input, rows), stored, keys)


def changed_keys(spark: SparkSession, model_input: ModelInput, seen: View, then: VersionRef) -> DataFrame | None:
    """Return the distinct keys of rows that differ from those of ``then``, named as in ``seen.rows``; None if
    unknown.
    """
    table = replace(model_input.table, keys=seen.stored)
    found = table_versions.changed_keys(spark, model_input.format, table, then, model_input.place)
    if found is None:
        return None
    named = zip(seen.stored, seen.keys, strict=True)
    return found.select(*[F.col(names.quote_spark(column)).alias(shown) for column, shown in named])


def changed_rows(spark: SparkSession, model_input: ModelInput, seen: View, then: VersionRef) -> DataFrame | None:
    """Return the rows of ``seen.rows`` whose keys differ from those of ``then``. None if they must be looked up in
    ``seen.rows`` by key, as for a history, where a key has other states than those that changed.
    """
    if model_input.given.endswith(HISTORY):
        return None
    table = replace(model_input.table, keys=seen.stored)
    found = table_versions.changed_rows(spark, model_input.format, table, then, model_input.place)
    return None if found is None else _live_rows(model_input, found)


def _live_rows(model_input: ModelInput, rows: DataFrame) -> DataFrame:
    """Return the live rows with the source's column names; for a model all of them."""
    return select_live(rows) if model_input.table.keys else select_live(rows, SOURCE_TIMESTAMP)


def _find_input(spark: SparkSession, given: str, at: Warehouse, keys: Mapping[str, tuple[str, ...]]) -> ModelInput:
    source, slash, name = given.partition("/")
    is_silver = bool(slash)
    table = at.lake.source_table(source, name) if is_silver else at.lake.gold(given, keys.get(given, ()))
    kind = at.silver if is_silver else at.gold
    identity, version, commit = table_versions.current(spark, kind, table)
    if identity is None or version is None:
        suggestion = _suggest(spark, source, name, at) if is_silver else ""
        fix = "Run silver for its source first." if is_silver else f"Run gold, and fix what stopped model {given}."
        raise TableMissing(f"input {given} does not exist yet{suggestion}", where=table.location, fix=fix)
    return ModelInput(given, kind, table, identity, version, commit)


def _suggest(spark: SparkSession, source: str, name: str, at: Warehouse) -> str:
    """Return a hint at the table of the source that a misspelled name may mean; for a history, a history."""
    table = name.removesuffix(HISTORY)
    is_history = table != name
    root = at.lake.history_root(source) if is_history else at.lake.silver_root(source)
    known = map(names.decode_table, at.silver.tables(spark, root))
    return did_you_mean(f"{source}/{name}", [f"{source}/{each}{HISTORY if is_history else ''}" for each in known])
