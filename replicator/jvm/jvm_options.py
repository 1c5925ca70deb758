"""What a JVM that we start is told: which collector and which compiler, by how long it lives."""

from __future__ import annotations

import re
from collections.abc import Iterable

from replicator import environment

_EXIT_ON_OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Else a thread dies alone, and another may wait for it without end."""

SHORT_LIVED = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m {_EXIT_ON_OUT_OF_MEMORY}"
"""For JVMs that live for seconds: the quick compiler only, with room for all that it makes (decision 0009)."""

LATE_COMPILATION = (
    f"{_EXIT_ON_OUT_OF_MEMORY} -XX:ReservedCodeCacheSize=512m -XX:Tier4InvocationThreshold=15000 "
    "-XX:Tier4MinInvocationThreshold=1800 -XX:Tier4CompileThreshold=45000 -XX:Tier4BackEdgeThreshold=120000"
)
"""The thorough compiler, at three times as many calls as it would begin by itself (decisions 0030 and 0053)."""

LONG_LIVED = f"-XX:+UseParallelGC {LATE_COMPILATION}"
"""For others: nobody waits for a pause, and what the JVM chooses itself works beside tasks, on their cores: so does its
collector, and so does its compiler.
"""

_OPTION_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables with options that a JVM of Spark's takes besides those on its command line."""

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b ?")


def choose(given: Iterable[str], *, brief: bool) -> str:
    """The options of a JVM that is told others elsewhere, too: in what is ``given`` and in the environment. A collector
    that these name stays the only one, since a JVM that is told of two does not start.
    """
    options = SHORT_LIVED if brief else LONG_LIVED
    return _COLLECTOR.sub("", options) if _COLLECTOR.search(" ".join([*given, from_environment()])) else options


def from_environment() -> str:
    """The options that the environment has for it."""
    return " ".join(environment.variable(name) or "" for name in _OPTION_VARIABLES)
