"""The settings of Spark that a configuration may set: any, by their full names."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from replicator.config.strict import Text

_WITHOUT_PREFIX = re.compile(
    r"(master|app|driver|executor|sql|hadoop|jars|local|memory|serializer|kryo\w*|shuffle|eventLog|dynamicAllocation"
    r"|kubernetes|yarn|task|default|network|ui|streaming|submit)($|[.])"
)
"""Names of Spark's own settings without ``spark.``. Others, such as Hive's, may have an effect."""


def _refuse_without_prefix(settings: dict[str, str]) -> dict[str, str]:
    for name in settings:
        if _WITHOUT_PREFIX.match(name):
            raise ValueError(f"{name!r} is no setting of Spark and would be ignored; did you mean 'spark.{name}'?")
    return settings


SparkSettings = Annotated[dict[str, Text], AfterValidator(_refuse_without_prefix)]
