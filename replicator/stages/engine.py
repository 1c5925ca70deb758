"""A failure of Spark or of a format's library as an error of the one table that met it."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from replicator import gateway
from replicator.errors import TableStopped

FAILURES = (PySparkException, Py4JJavaError)
"""What they raise."""


def failure(error: Exception, table: str) -> TableStopped:
    """The table's error in one line; all of it is its cause."""
    stopped = TableStopped(f"the engine failed: {gateway.shortened(error)}", where=table)
    stopped.__cause__ = error
    return stopped
