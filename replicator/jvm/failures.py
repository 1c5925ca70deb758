"""The errors that Spark and its JVM raise in Python. Imports pyspark."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from replicator.jvm import causes

FAILURES = (PySparkException, Py4JJavaError)
"""Spark's own errors, and Java exceptions that pyspark has no class for. The loss of the JVM is neither."""

ALL_FAILURES = (PySparkException, Py4JError)
"""As FAILURES, and py4j's errors if the JVM is gone."""

_USER_RAISED = "P0001"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."


def error_condition(error: Exception) -> tuple[str, str] | None:
    """Return Spark's error condition and its SQLSTATE, from the first of the Java causes that has them."""
    for java in causes.chain(causes.find_java_exception(error)):
        state = _call_if_present(java, "getSqlState")
        if state is not None:
            return _call_if_present(java, "getErrorClass") or type(error).__name__, state
    return None


def is_raised_by_sql(error: Exception) -> bool:
    """Whether an expression raised the error explicitly for a row (`raise_error`, `assert_true`). Spark 3.5 gives
    neither name nor SQLSTATE for these: they are recognized as plain exceptions from the package of expressions.
    """
    found = error_condition(error)
    if found is not None:
        return found[1] == _USER_RAISED
    java = causes.find_java_exception(error)
    cause = None if java is None else causes.root_cause(java)
    if cause is None or str(cause.getClass().getName()) != "java.lang.RuntimeException":
        return False
    frame = next(iter(cause.getStackTrace()), None)
    return frame is not None and str(frame.getClassName()).startswith(_EXPRESSIONS)


def _call_if_present(java: Any, method: str) -> str | None:
    """The result of an exception's method; None if its class does not have it."""
    try:
        found = getattr(java, method)()
    except Py4JError:
        return None
    return None if found is None else str(found)


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session's context was stopped, or its JVM is gone."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())  # noqa: SLF001 - pyspark has no API for it
    except (Py4JError, ConnectionError):
        return True
