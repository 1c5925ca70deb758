"""A commit of a Delta table's log that was cut off: Delta's own words name neither the file nor its table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replicator import damage
from replicator.formats import control
from replicator.jvm import hadoop
from replicator.jvm.failures import FAILURES

_COMMIT = re.compile(r"[0-9]{20}[.]json")
_LOOKED_AT = 100
"""So many of the newest commits: what is older was read before, and seldom breaks."""


class TornCommit(PySparkException):
    """Said in place of Spark's own error, so that whoever goes on behind that does so behind this one."""


@contextmanager
def naming(spark: SparkSession, location: str) -> Iterator[None]:
    """Say which file of the log of the table there is no JSON, where Spark fails at one. Raises TornCommit."""
    try:
        yield
    except FAILURES as error:
        file = _torn(spark, location) if damage.is_torn(str(error)) else None
        if file is None:
            raise
        raise TornCommit(message=f"{damage.TORN_COMMIT}: {file}") from None


def _torn(spark: SparkSession, location: str) -> str | None:
    """The newest commit that is no JSON."""
    folder = f"{location}/_delta_log"
    names = sorted((name for name, _ in control.files(spark, folder) if _COMMIT.fullmatch(name)), reverse=True)
    commits = (f"{folder}/{name}" for name in names[:_LOOKED_AT])
    return next((path for path in commits if not _is_whole(spark, path)), None)


def _is_whole(spark: SparkSession, path: str) -> bool:
    try:
        for line in hadoop.text(spark, path).splitlines():
            json.loads(line)
    except (Py4JJavaError, ValueError):
        return False
    return True
