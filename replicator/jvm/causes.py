"""The cause of an error of Spark or of its JVM: as one line of text, and whether the JVM has ended, a service does not
answer, or an object store refuses. Imports no pyspark.
"""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAST_SECONDS = 5
NO_TEMP_FOLDER = 53
"""Spark's exit code if it cannot create a temporary folder."""
_TRACE = "Traceback (most recent call last):"
_NO_ANSWER = re.compile(
    r"[.](?:ConnectException|HttpHostConnectException|NoRouteToHostException|SocketTimeoutException"
    r"|UnknownHostException|ConnectTimeoutException|AWSNoResponseException|AWSServiceThrottledException"
    r"|AWSStatus500Exception)\b|Unable to execute HTTP request"
)
_REFUSAL = re.compile(r"Amazon S3; Status Code: 40[13];|Error Code: (?:ExpiredToken|InvalidToken|NoSuchBucket);")


def summarize(error: Exception) -> str:
    """Return a foreign error as one line: its class and first line, or the last line of a Python traceback; for errors
    of Spark and the JVM, the root cause.
    """
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    java = getattr(error, "java_exception", getattr(cause, "java_exception", None))
    text = str(root_cause(java).toString()) if java is not None else str(cause)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    first = lines[-1] if lines[0].endswith(_TRACE) else lines[0]
    name = type(cause).__name__
    summary = first if java is not None else f"{name}: {first}" if first else name
    return summary.rstrip(".")


def describe_root_cause(error: Exception) -> str:
    """As :func:`summarize`, but the root cause in the JVM also for errors that pyspark has a class for."""
    java = find_java_exception(error)
    if java is None:
        return summarize(error)
    return next(iter(str(root_cause(java).toString()).splitlines()), "").strip().rstrip(".")


def find_java_exception(error: Exception) -> Any:
    """Return the Java exception behind an error of py4j, or behind a class that pyspark has for it; None for any other
    error.
    """
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def chain(java: Any) -> Iterator[Any]:
    """Yield a Java exception and its causes, the innermost last; nothing for None."""
    while java is not None:
        yield java
        java = java.getCause()


def root_cause(java: Any) -> Any:
    """Return the innermost cause of a Java exception."""
    *_, innermost = chain(java)
    return innermost


def jvm_exit_code(error: Exception) -> int | None:
    """Return the exit code of a JVM started by this process if the error is that the JVM is gone; None for any other
    error.
    """
    pyspark: Any = sys.modules.get("pyspark")  # `--help` does not load it
    process = None if pyspark is None else getattr(pyspark.SparkContext._gateway, "proc", None)  # noqa: SLF001
    is_cut_off = type(error).__module__.startswith("py4j.") and not hasattr(error, "java_exception")
    if process is None or not (is_cut_off or isinstance(error, ConnectionError)):
        return None
    with suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_SECONDS)  # it closes its ends of pipes before it exits
    code: int | None = process.poll()
    return code


def is_unreachable(error: Exception) -> bool:
    """Whether a connection failed below Spark, or the service (an object store, a broker) was overloaded, by the
    classes of the Java causes. A job's failure contains those of its tasks only as text, and so does Spark's own error.
    """
    return _NO_ANSWER.search(f"{error}\n{getattr(error, 'stackTrace', '')}") is not None


def is_access_denied(error: Exception) -> bool:
    """Whether an object store denied access, or has no such bucket, by its error codes, found as in
    :func:`is_unreachable`.
    """
    return _REFUSAL.search(f"{error}\n{getattr(error, 'stackTrace', '')}") is not None


def is_infrastructure(error: Exception) -> bool:
    """Whether either of the two applies: no table is to blame, and trying further tables is futile."""
    return is_unreachable(error) or is_access_denied(error)
