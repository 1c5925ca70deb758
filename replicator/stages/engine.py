"""A failure of Spark or of a format's library as an error of the one table that met it."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from replicator.errors import TableStopped

FAILURES = (PySparkException, Py4JJavaError)
"""What they raise."""


def failure(error: Exception, table: str) -> TableStopped:
    """The table's error: the first line of what was said, the rest as its cause."""
    reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    stopped = TableStopped(f"the engine failed: {reason}", where=table)
    stopped.__cause__ = error
    return stopped
