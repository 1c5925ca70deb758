"""Run a gold model's SQL, and report SQL that fails or does not return the columns that the model's file declares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from replicator.errors import ConfigError, first_line
from replicator.spec import Model
from replicator.transforms.columns.layout import DELTA_CDF_COLUMNS, OF_SPARK
from replicator.transforms.columns.unsupported_types import has_interval_type, has_null_type, nested_types
from replicator.transforms.model import RESERVED

_UNFIT = frozenset(" ,;{}()\n\t=")
"""Characters that Delta does not allow in column names without column mapping (architecture section 4)."""

_RESERVED_BY = dict.fromkeys(DELTA_CDF_COLUMNS, "Delta's change feed") | {OF_SPARK: "Spark"}
"""Who reserves a column's name."""

_WORDS = "no spaces, brackets, commas, semicolons or ="


def rows_of(spark: SparkSession, model: Model, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of the model's SQL over these inputs. Raises ConfigError."""
    sql = model.sql if inputs else model.sql.format()
    try:
        rows = spark.sql(sql, **inputs)  # type: ignore[arg-type]
    except AnalysisException as error:
        message = f"the SQL of model {model.name} is invalid: {first_line(error)}"
        raise ConfigError(message, fix=f"Fix {model.name}.sql.") from error
    wrong = next(_wrong_columns(model, rows.schema), None)
    if wrong is not None:
        message, fix = wrong
        raise ConfigError(f"the SQL of model {model.name} {message}", fix=fix)
    return rows


def _wrong_columns(model: Model, given: T.StructType) -> Iterator[tuple[str, str]]:
    """Yield the problems with columns that no table of the model could have, each with its remedy."""
    place = f"{model.name}.sql"
    for name, count in Counter(name.casefold() for name in given.names).items():
        if count > 1:
            yield f"returns several columns named {name}", f"Rename one of them with AS in {place}, or remove it."
    for field in given:
        yield from _wrong_column(field, place)
    wanted = dict.fromkeys([*(column.name for column in model.columns), *model.lineage_columns])
    missing = [name for name in wanted if name not in given.names]
    if missing:
        message = f"does not return its columns {', '.join(missing)}; it returns {', '.join(given.names)}"
        yield message, f"Fix {place}, or {model.name}.yaml."


def _wrong_column(field: T.StructField, place: str) -> Iterator[tuple[str, str]]:
    name, kind = field.name, field.dataType
    if name.casefold() in RESERVED:
        yield f"returns a column {name}, which is a reserved name", f"Rename it with AS in {place}."
    if (owner := _RESERVED_BY.get(name.casefold())) is not None:
        yield f"returns a column {name}, which is reserved by {owner}", f"Rename it with AS in {place}."
    for unfit in _unfit(field):
        yield f"returns a column {unfit}, which is not a valid column name", f"Rename it with AS in {place}: {_WORDS}."
    if has_null_type(kind):
        yield f"returns a column {name} without a type", f"Cast it in {place}: CAST(NULL AS STRING)."
    if has_interval_type(kind):
        message = f"returns a column {name} of type {kind.simpleString()}, but tables cannot store intervals"
        yield message, f"Cast it in {place} to a number or a string."


def _unfit(field: T.StructField) -> Iterator[str]:
    """Return the names in a column, first its own, that Delta refuses."""
    structs = [each for each in nested_types(field.dataType) if isinstance(each, T.StructType)]
    names = [field.name, *(name for each in structs for name in each.names)]
    return (name for name in names if not _UNFIT.isdisjoint(name))
