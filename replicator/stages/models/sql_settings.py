"""The settings of Spark by which a model's SQL is understood: another zone makes other dates of the same moments.

Ours are in ``jvm/sparkconf.py``; a configuration, or ``spark-submit``, may say others.
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
    """Those settings as the session has them, as a control row keeps them; None: Spark has no value for it."""
    return {name: spark.conf.get(name, None) for name in _SETTINGS}


def with_settings(row: Mapping[str, Any], spark: SparkSession) -> dict[str, Any]:
    """A control row with its settings. Where it says none, as rows of earlier checkouts, those of now are taken."""
    return {"settings": current(spark), **row}
