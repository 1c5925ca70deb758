"""The Spark settings that affect the meaning of a model's SQL: another time zone makes other dates of the same
instants.

Our values are in ``jvm/sparkconf.py``; a configuration, or ``spark-submit``, may override them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.jsonGenerator.ignoreNullFields",
)


def current(spark: SparkSession) -> dict[str, str | None]:
    """Return the settings of the session, for a control row; None: Spark has no value."""
    return {name: spark.conf.get(name, None) for name in _SETTINGS}


def with_settings(row: Mapping[str, Any], spark: SparkSession) -> dict[str, Any]:
    """Return a control row with its settings. For rows without settings, from earlier releases, the current ones are
    assumed.
    """
    return {"settings": current(spark), **row}
