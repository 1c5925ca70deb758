"""A commit of a Delta table's log that was cut off: Delta's own words name neither the file nor its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replicator import damage
from replicator.formats import control
from replicator.jvm import hadoop
from replicator.jvm.failures import FAILURES


class TornCommit(PySparkException):
    """Said in place of Spark's own error, so that whoever goes on behind that does so behind this one."""


@contextmanager
def translate_errors(spark: SparkSession, location: str) -> Iterator[None]:
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

    def text(name: str) -> str:
        try:
            return hadoop.read_text(spark, f"{folder}/{name}")
        except Py4JJavaError as error:
            raise ValueError(name) from error

    name = damage.find_torn_commit((name for name, _ in control.list_files(spark, folder)), text)
    return None if name is None else f"{folder}/{name}"
