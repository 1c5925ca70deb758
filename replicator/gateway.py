"""Questions to the JVM that need not be asked again.

pyspark looks up ``functions`` and ``PythonUtils``, and then the method, anew for every column expression, and the JVM
searches all JARs for each star import before it finds them. A batch of silver makes thousands of expressions: building
them took longer than running them (decision 0009).
"""

from __future__ import annotations

from typing import Any

_OFTEN = ("functions", "PythonUtils")


class _Known:
    """A class of the JVM whose methods are asked for once."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._java_class, name)
        setattr(self, name, found)
        return found


def remember(jvm: Any) -> None:
    """Keep what pyspark asks for most with its view of the JVM."""
    for name in _OFTEN:
        if name not in vars(jvm):
            setattr(jvm, name, _Known(getattr(jvm, name)))
