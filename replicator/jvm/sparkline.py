"""The tested lines of Spark and all differences between them: a table, so that no code checks which one runs.

A line is Spark's major and minor version. Its JARs are in ``replicator/locks``, its packages in ``requirements``.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from replicator.errors import ConfigError


@dataclass(frozen=True)
class Line:
    """One line: the tested versions, the ``formats`` in which tables can be kept, the ``java_modules`` that its JVM
    requires, and additional ``settings`` of a session.

    Classes that moved: ``ivy`` makes the resolver's settings, ``checkpoint_files`` writes streaming checkpoints to a
    local disk. The numbers of additional arguments, which may always be empty: ``ivy_streams`` after the resolver's
    arguments (where it prints), ``log_options`` before the last of ``DeltaLog.getChanges`` and after the first of its
    ``cleanUpExpiredLogs``, ``write_options`` after the mode of ``DeltaOperations.Write``.
    """

    name: str
    spark: str
    scala: str
    delta: str
    formats: tuple[str, ...]
    ivy: str
    ivy_streams: int
    checkpoint_files: str
    log_options: int
    write_options: int
    java_modules: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


_STREAMING = "org.apache.spark.sql.execution.streaming"

LINES = (
    Line(
        name="3.5",
        spark="3.5.7",
        scala="2.12",
        delta="3.3.3",
        formats=("delta", "hudi"),
        ivy="org.apache.spark.deploy.SparkSubmitUtils",
        ivy_streams=0,
        checkpoint_files=f"{_STREAMING}.FileSystemBasedCheckpointFileManager",
        log_options=0,
        write_options=3,
    ),
    Line(
        name="4.1",
        spark="4.1.4",
        scala="2.13",
        delta="4.4.0",
        formats=("delta",),
        ivy="org.apache.spark.util.MavenUtils",
        ivy_streams=1,
        checkpoint_files=f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
        log_options=1,
        write_options=8,
        java_modules=("jdk.incubator.vector",),
        settings={
            # otherwise each column expression sends its place in the Python code to the JVM
            "spark.python.sql.dataFrameDebugging.enabled": "false",
            # as before: bytes are a bytearray in Python
            "spark.sql.execution.pyspark.binaryAsBytes": "false",
        },
    ),
)

DEFAULT = LINES[0]
"""The line of an installation that requests no other."""


def of(version: str, where: str | None = None) -> Line:
    """Return the line of a version of Spark, such as ``3.5.7`` or ``3.5.6-amzn-0``, installed at *where*. Raises
    ConfigError for an unknown one.
    """
    match = re.match(r"\d+\.\d+", version)
    found = next((line for line in LINES if match is not None and line.name == match[0]), None)
    if found is None:
        known = ", ".join(line.name for line in LINES)
        fix = f"Known lines: {known}." + (" Unset PYTHONPATH if it adds this version." if where is not None else "")
        raise ConfigError(f"Spark {version!r} is not of a tested release line.", where=where, fix=fix)
    return found


def installed() -> Line:
    """Return the line of the installed Spark, by the package's metadata, without importing Spark. Raises
    ConfigError.
    """
    return of(importlib.metadata.version("pyspark"))


def refuse_formats(line: Line, formats: Collection[str]) -> None:
    """Raise ConfigError for a table format that is not available on this line."""
    missing = [name for name in formats if name not in line.formats]
    if missing:
        named = ", ".join(missing)
        lines = ", ".join(other.name for other in LINES if set(missing) <= set(other.formats)) or "no line"
        raise ConfigError(
            f"tables in {named} are not supported on Spark {line.name}: there is no release of it for this line.",
            fix=f"Use delta (`format: delta`), or run on Spark {lines}, which supports {named}.",
        )
