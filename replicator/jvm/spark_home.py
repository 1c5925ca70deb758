"""Where the Spark lies that a JVM of ours runs: what comes with pyspark, unless SPARK_HOME names another that fits."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replicator.jvm.sparkline import Line


def bundled() -> Path:
    """Where the installed pyspark lies, links resolved: an archive of classes is good for one path only."""
    found = find_spec("pyspark")
    assert found is not None  # noqa: S101 - it is a dependency
    assert found.origin is not None  # noqa: S101
    return Path(found.origin).resolve().parent


def choose(given: str | None, line: Line) -> Path:
    """The *given* home where it holds a Spark of this line and its Scala, else our own: pyspark and our JARs go with no
    other, and many machines have one for other work.
    """
    return Path(given) if given and fits(Path(given), line) else bundled()


def fits(home: Path, line: Line) -> bool:
    """Whether this is the home of a Spark of the line."""
    return any(home.glob(f"jars/spark-core_{line.scala}-{line.name}.*.jar"))
