"""An input of a gold model at the version that a refresh reads: its live rows, its key, and which keys changed.

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
from replicator.spelling import meant
from replicator.stages.models import places
from replicator.stages.models.places import Place
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.columns.layout import own_key
from replicator.transforms.live import live, shown_name

EXTRA = "_source_ts_ms"
"""The one column of ours that models see of silver."""


@dataclass(frozen=True)
class ModelInput:
    """One input, silver, a history or another model, at one version. ``table.keys`` is its key where that is known
    without reading it: of a model.
    """

    given: str
    format: TableFormat
    table: Table
    identity: str
    version: int
    commit: str | None = None

    @property
    def place(self) -> Place:
        """As the control row of a refresh has it."""
        return Place(self.identity, self.version, self.commit)


@dataclass(frozen=True)
class View:
    """What a model sees of an input: ``rows`` under the source's column names, and the key as the table has it
    (``stored``) and as ``rows`` do (``keys``); no key where the table has none.
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
    """A model's inputs by placeholder, as they are now, several of one table at one version; ``keys`` are those of the
    models. Raises TableMissing.
    """
    found = {given: _found(spark, given, at, keys) for given in dict.fromkeys(model.inputs.values())}
    return {name: found[given] for name, given in model.inputs.items()}


def view(spark: SparkSession, given: ModelInput) -> View:
    """The live rows of an input."""
    rows = given.format.read(spark, given.table, given.version)
    stored = given.table.keys or own_key(rows.schema)
    keys = given.table.keys or tuple(shown_name(rows.schema[column]) for column in stored)
    return View(_shown(given, rows), stored, keys)


def changed(spark: SparkSession, given: ModelInput, seen: View, then: Place) -> DataFrame | None:
    """Distinct keys of rows that differ from those of ``then``, named as in ``seen.rows``; None where nobody knows."""
    table = replace(given.table, keys=seen.stored)
    found = places.changed_keys(spark, given.format, table, then, given.place)
    if found is None:
        return None
    named = zip(seen.stored, seen.keys, strict=True)
    return found.select(*[F.col(names.spark(column)).alias(shown) for column, shown in named])


def changed_rows(spark: SparkSession, given: ModelInput, seen: View, then: Place) -> DataFrame | None:
    """Those of ``seen.rows`` whose keys differ from those of ``then``; None where they are to be looked for there, as
    those of a history: of a key it has other states than those that changed.
    """
    if given.given.endswith(HISTORY):
        return None
    table = replace(given.table, keys=seen.stored)
    found = places.changed_rows(spark, given.format, table, then, given.place)
    return None if found is None else _shown(given, found)


def _shown(given: ModelInput, rows: DataFrame) -> DataFrame:
    """The live ones, under the source's names; of a model all of them."""
    return live(rows) if given.table.keys else live(rows, EXTRA)


def _found(spark: SparkSession, given: str, at: Warehouse, keys: Mapping[str, tuple[str, ...]]) -> ModelInput:
    source, slash, name = given.partition("/")
    is_silver = bool(slash)
    table = at.lake.source_table(source, name) if is_silver else at.lake.gold(given, keys.get(given, ()))
    kind = at.silver if is_silver else at.gold
    identity, version, commit = places.now(spark, kind, table)
    if identity is None or version is None:
        near = _near(spark, source, name, at) if is_silver else ""
        mend = "Run silver for its source first." if is_silver else f"Run gold, and mend what stopped model {given}."
        raise TableMissing(f"input {given} does not exist yet{near}", where=table.location, mend=mend)
    return ModelInput(given, kind, table, identity, version, commit)


def _near(spark: SparkSession, source: str, name: str, at: Warehouse) -> str:
    """The table of the source that a misspelled one may mean; of a history, the history."""
    table = name.removesuffix(HISTORY)
    is_history = table != name
    root = at.lake.history_root(source) if is_history else at.lake.silver_root(source)
    known = map(names.decode_table, at.silver.tables(spark, root))
    return meant(f"{source}/{name}", [f"{source}/{each}{HISTORY if is_history else ''}" for each in known])
