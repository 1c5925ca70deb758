"""A failure of Spark or of a format's library as an error of the one table that met it."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from replicator import gateway
from replicator.errors import TableStopped

FAILURES = (PySparkException, Py4JJavaError)
"""What they raise."""


def failure(error: Exception, table: str) -> TableStopped:
    """The table's error: the first line of what was said, by Java's first cause where there is one."""
    java = getattr(error, "java_exception", None)
    told = str(error) if java is None else str(gateway.root(java).toString())
    reason = next((line for line in told.splitlines() if line.strip()), type(error).__name__)
    stopped = TableStopped(f"the engine failed: {reason}", where=table)
    stopped.__cause__ = error
    return stopped
