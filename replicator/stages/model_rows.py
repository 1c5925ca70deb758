"""The rows of a gold model's SQL, and what is said of SQL that gives none, or not those that its file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from replicator.errors import ConfigError, first_line
from replicator.spec import Model
from replicator.transforms.model import RESERVED
from replicator.transforms.untyped import is_untyped


def rows_of(spark: SparkSession, model: Model, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """The model's SQL over these rows of its inputs. Raises ConfigError."""
    sql = model.sql if inputs else model.sql.format()
    try:
        rows = spark.sql(sql, **inputs)  # type: ignore[arg-type]
    except AnalysisException as error:
        what = f"the SQL of model {model.name} is refused: {first_line(error)}"
        raise ConfigError(what, mend=f"Mend {model.name}.sql.") from error
    wrong = next(_wrong_columns(model, rows.schema), None)
    if wrong is not None:
        what, mend = wrong
        raise ConfigError(f"the SQL of model {model.name} {what}", mend=mend)
    return rows


def _wrong_columns(model: Model, given: T.StructType) -> Iterator[tuple[str, str]]:
    """What no table of the model could have, and how it is mended."""
    place = f"{model.name}.sql"
    for field in given:
        if field.name.casefold() in RESERVED:
            yield f"gives a column {field.name}, which is a name of ours", f"Call it something else in {place}."
        if is_untyped(field.dataType):
            yield f"gives a column {field.name} without a type", f"Cast it in {place}: CAST(NULL AS STRING)."
    wanted = dict.fromkeys([*(column.name for column in model.columns), *model.lineage_columns])
    missing = [name for name in wanted if name not in given.names]
    if missing:
        yield f"does not give its columns {', '.join(missing)}", f"Mend {place}, or {model.name}.yaml."
