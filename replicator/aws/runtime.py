"""The JARs that EMR provides, and those of the lock that it does not. Two versions of one library on a class path break
both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from replicator.errors import ConfigError

_PROVIDED_GROUPS = frozenset(
    {"io.delta", "org.apache.hudi", "org.apache.hadoop", "com.amazonaws", "joda-time", "org.wildfly.openssl"}
)
"""Groups whose JARs EMR provides: table formats, and the parts of ``s3a``."""

_PATHS: Mapping[str, tuple[str, ...]] = {
    "delta": ("/usr/share/aws/delta/lib/delta-spark.jar", "/usr/share/aws/delta/lib/delta-storage.jar"),
    "hudi": ("/usr/lib/hudi/hudi-spark-bundle.jar",),
}
_RELEASED_JAR = re.compile(r"(?:.*_)?(?:delta-[a-z0-9-]+|hudi-[a-z0-9.-]+)(?:_2\.1[23])?-\d+\.\d+.*\.jar")
"""Files of a release of Delta or Hudi, by a name with a version; EMR's own have none, or contain ``amzn``."""
_FOLDERS = frozenset(path.rpartition("/")[0] for paths in _PATHS.values() for path in paths)
"""Files there are EMR's: ``spark-submit`` follows links, and then reports the names of their targets."""

PYTHON = "python3.11"
"""The Python for which dependencies are packed; infra/aws/image and bootstrap.sh install it."""


def jars(formats: Iterable[str]) -> list[str]:
    """Return the paths of EMR's own JARs of table formats, Delta first. Raises ConfigError for a format that it does
    not provide.
    """
    return [path for name in sorted({"delta", *formats}) for path in _jar_paths(name)]


def missing_jars(lock: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a lock (coordinate -> SHA-256) that EMR does not provide: Kafka's reader, PostgreSQL's driver,
    the login to MSK.
    """
    return {
        coordinate: sha256 for coordinate, sha256 in lock.items() if coordinate.split(":")[0] not in _PROVIDED_GROUPS
    }


def refuse_duplicate_jars(class_path: str) -> None:
    """Raise ConfigError if JARs (comma-separated) contain a Delta or a Hudi in addition to the runtime's own."""
    files = [re.sub(r"^(?:file|local):/+", "/", each.strip()).rpartition("/") for each in class_path.split(",")]
    others = [file for folder, _, file in files if folder not in _FOLDERS]
    ours = [file for file in others if _RELEASED_JAR.fullmatch(file) and "amzn" not in file]
    if ours:
        raise ConfigError(
            f"`runtime: emr` uses the runtime's own Delta and Hudi, but other JARs were given: {', '.join(ours)}",
            where="spark.jars",
            fix="Omit them; `replicator aws submit` adds what is needed.",
        )


def _jar_paths(name: str) -> tuple[str, ...]:
    if name not in _PATHS:
        raise ConfigError(f"EMR has no JARs for the format {name!r}", where="formats")
    return _PATHS[name]
