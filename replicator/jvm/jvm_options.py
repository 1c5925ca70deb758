"""The options of a JVM started here: garbage collector and JIT compiler, by its expected lifetime."""

from __future__ import annotations

import re
from collections.abc import Iterable

from replicator import environment

_SERIAL = "-XX:+UseSerialGC"
_EXIT_ON_OUT_OF_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Otherwise a single thread dies, and another may wait for it forever."""

SHORT_LIVED = f"{_SERIAL} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m {_EXIT_ON_OUT_OF_MEMORY}"
"""For JVMs that live for seconds: only the fast compiler, with room for all of its code (decision 0009)."""

LATE_COMPILATION = (
    f"{_EXIT_ON_OUT_OF_MEMORY} -XX:ReservedCodeCacheSize=512m -XX:Tier4InvocationThreshold=15000 "
    "-XX:Tier4MinInvocationThreshold=1800 -XX:Tier4CompileThreshold=45000 -XX:Tier4BackEdgeThreshold=120000"
)
"""The optimizing compiler, at three times the default number of calls (decisions 0030 and 0053)."""

LONG_LIVED = f"-XX:+UseParallelGC {LATE_COMPILATION}"
"""For other JVMs: nobody waits for a pause, and the JVM's default collector works concurrently with tasks, on their
cores; so does its compiler.
"""

_OPTION_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables with options that Spark's JVM takes in addition to those on its command line."""

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b ?")


def choose(given: Iterable[str], *, brief: bool) -> str:
    """Return the options of a JVM that gets others elsewhere, too: those in ``given`` and in the environment. If these
    choose a collector, none is added, since a JVM with two does not start.
    """
    options = SHORT_LIVED if brief else LONG_LIVED
    return _COLLECTOR.sub("", options) if _COLLECTOR.search(" ".join([*given, from_environment()])) else options


def yield_to_environment(options: str) -> str:
    """Return options without their collector if the environment chooses one."""
    return _COLLECTOR.sub("", options) if _COLLECTOR.search(from_environment()) else options


def smallest_collector() -> list[str]:
    """Return the option of the collector for a small JVM, unless the environment chooses one."""
    return yield_to_environment(_SERIAL).split()


def from_environment() -> str:
    """The options from the environment."""
    return " ".join(environment.variable(name) or "" for name in _OPTION_VARIABLES)
