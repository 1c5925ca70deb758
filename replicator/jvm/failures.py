"""What Spark, and what runs in its JVM, raise in Python. Imports pyspark."""

from __future__ import annotations

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

FAILURES = (PySparkException, Py4JJavaError)
"""Spark's own errors, and exceptions of Java that pyspark has no class for. A JVM that is gone is neither."""

ALL_FAILURES = (PySparkException, Py4JError)
"""These, and what py4j says where the JVM is gone."""
