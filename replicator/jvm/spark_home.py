"""The Spark installation that a new JVM runs: the one in pyspark, unless SPARK_HOME names another that fits."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replicator.jvm.sparkline import Line


def bundled() -> Path:
    """The path of the installed pyspark, with links resolved: a class archive is valid for one path only."""
    found = find_spec("pyspark")
    assert found is not None  # noqa: S101 - it is a dependency
    assert found.origin is not None  # noqa: S101
    return Path(found.origin).resolve().parent


def choose(given: str | None, line: Line) -> Path:
    """Return the *given* home if it contains a Spark of this line and its Scala, else pyspark's own: pyspark and the
    JARs work with no other, and many machines have one for other purposes.
    """
    return Path(given) if given and fits(Path(given), line) else bundled()


def fits(home: Path, line: Line) -> bool:
    """Whether this is the home of a Spark of the line, which this user may read."""
    with suppress(OSError):
        return any(home.glob(f"jars/spark-core_{line.scala}-{line.name}.*.jar"))
    return False
