"""What an error of Spark, or of what runs in its JVM, comes from: in one line, and whether the JVM has ended, a service
does not answer, or an object store refuses. Imports no pyspark.
"""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from typing import Any

_LAST_SECONDS = 5
NO_TEMP_FOLDER = 53
"""Spark's own exit code where it cannot make a temporary folder."""
_TRACE = "Traceback (most recent call last):"
_NO_ANSWER = re.compile(
    r"[.](?:ConnectException|HttpHostConnectException|NoRouteToHostException|SocketTimeoutException"
    r"|UnknownHostException|ConnectTimeoutException|AWSNoResponseException|AWSServiceThrottledException"
    r"|AWSStatus500Exception)\b|Unable to execute HTTP request"
)
_REFUSAL = re.compile(r"Amazon S3; Status Code: 40[13];|Error Code: (?:ExpiredToken|InvalidToken|NoSuchBucket);")


def summarize(error: Exception) -> str:
    """An error that is not ours as one line: its class and first line, the last one of a trace of Python's; of Spark's
    and the JVM's the root cause.
    """
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    java = getattr(error, "java_exception", getattr(cause, "java_exception", None))
    text = str(root_cause(java).toString()) if java is not None else str(cause)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    first = lines[-1] if lines[0].endswith(_TRACE) else lines[0]
    name = type(cause).__name__
    told = first if java is not None else f"{name}: {first}" if first else name
    return told.rstrip(".")


def describe_root_cause(error: Exception) -> str:
    """As :func:`summarize`; of an error that pyspark has a class for, too, the root cause in the JVM."""
    java = find_java_exception(error)
    if java is None:
        return summarize(error)
    return next(iter(str(root_cause(java).toString()).splitlines()), "").strip().rstrip(".")


def find_java_exception(error: Exception) -> Any:
    """The exception of Java's that an error of py4j, or of a class that pyspark has for it, is made of; None of any
    other.
    """
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def root_cause(java: Any) -> Any:
    """The cause of an exception of Java's that has none itself."""
    while (cause := java.getCause()) is not None:
        java = cause
    return java


def jvm_exit_code(error: Exception) -> int | None:
    """The exit code of a JVM which this process had started, where the error is that it is gone; None of any other."""
    pyspark: Any = sys.modules.get("pyspark")  # `--help` loads none
    process = None if pyspark is None else getattr(pyspark.SparkContext._gateway, "proc", None)  # noqa: SLF001
    is_cut_off = type(error).__module__.startswith("py4j.") and not hasattr(error, "java_exception")
    if process is None or not (is_cut_off or isinstance(error, ConnectionError)):
        return None
    with suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_SECONDS)  # it closes its ends of pipes before it is gone
    code: int | None = process.poll()
    return code


def is_unreachable(error: Exception) -> bool:
    """Whether a connection failed below Spark, or who answered had no time (an object store, a broker): told by the
    classes of the Java causes. A job's failure has those of its tasks as text only, and so has Spark's own error.
    """
    return _NO_ANSWER.search(f"{error}\n{getattr(error, 'stackTrace', '')}") is not None


def is_access_denied(error: Exception) -> bool:
    """Whether an object store did not let us in, or has no such bucket: told by its own codes, as
    :func:`is_unreachable`.
    """
    return _REFUSAL.search(f"{error}\n{getattr(error, 'stackTrace', '')}") is not None


def is_infrastructure(error: Exception) -> bool:
    """Whether it is one of both: no table is to blame for it, and none need be tried behind it."""
    return is_unreachable(error) or is_access_denied(error)
