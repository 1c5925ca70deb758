"""Torn commits in a Delta log: files cut off by a crash. Delta's own error names neither the file nor its table."""

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
    """Replaces Spark's own error, and is a PySparkException so that its handlers catch this one too."""


@contextmanager
def translate_errors(spark: SparkSession, location: str) -> Iterator[None]:
    """Translate an error of Spark's at a torn commit into one that names the file. Raises TornCommit."""
    try:
        yield
    except FAILURES as error:
        file = _torn(spark, location) if damage.is_torn(str(error)) else None
        if file is None:
            raise
        raise TornCommit(message=f"{damage.TORN_COMMIT}: {file}") from None


def _torn(spark: SparkSession, location: str) -> str | None:
    """The path of the newest commit that is not valid JSON, if any."""
    folder = f"{location}/_delta_log"

    def text(name: str) -> str:
        try:
            return hadoop.read_text(spark, f"{folder}/{name}")
        except Py4JJavaError as error:
            raise ValueError(name) from error

    name = damage.find_torn_commit((name for name, _ in control.list_files(spark, folder)), text)
    return None if name is None else f"{folder}/{name}"
