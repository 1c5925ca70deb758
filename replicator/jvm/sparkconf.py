"""The settings of a SparkSession: pure functions from what is already set to what is missing (stack.md 1.6).

A value set in the builder overrides ``spark-submit`` and ``spark-defaults.conf``, so existing values are not set again.
What only a starting JVM accepts (memory, JARs, Java options) goes to its command line; secrets never do.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.jvm import class_archive, jvm_options, sparkline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from replicator.jvm.sparkline import Line
    from replicator.settings import Settings

_LISTS = frozenset({"spark.sql.extensions", "spark.jars"})
_OPTIONS = "spark.driver.extraJavaOptions"
_AT_LAUNCH = frozenset(
    {
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraClassPath",
        _OPTIONS,
        "spark.driver.memory",
        "spark.jars",
        "spark.jars.packages",
    }
)
_FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # plans of small batches differ only in a literal, and each costs a compilation (performance.md B10)
    "spark.sql.codegen.cache.maxEntries": "2000",
    # the JIT never compiles a larger method: better one for each operator (decision 0065)
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # cached rows are read a few times within seconds: searching the best encoding of each column takes longer
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # a batch of it is built, and read back from disk, as a whole: 10,000 records in each of two tasks exceed
    # a heap of 1 GB, and smaller batches take no longer (decision 0065)
    "spark.sql.inMemoryColumnarStorage.batchSize": "1000",
    "spark.sql.parquet.compression.codec": "zstd",
    # a file of records has many MB of long texts: in row groups of this size all cores can read it
    "spark.hadoop.parquet.block.size": str(16 << 20),
    # one calendar for all times: otherwise a date before 1582-10-15 or an instant before 1900 stops its table
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # the state of a table's log is small: the default of 50 tasks is 49 too many (B6)
    "spark.databricks.delta.snapshotPartitions": "2",
    # a checkpoint of a log, however small its table, costs more than a commit, and tables get theirs at the same time;
    # a new process reads 50 commits no slower than 10 (B6, decision 0057)
    "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
    # otherwise Delta takes the times in the names of folders, which are UTC, for those of the JVM's zone
    "spark.databricks.delta.write.utcTimestampPartitionValues": "false",
    "spark.scheduler.mode": "FAIR",
}
_HUDI = {
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    # otherwise an array with a NULL in it cannot be written
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    # Hudi's writer does not record that it uses Spark's current calendar
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # folders without rows in the version read have values of other types if a partition column has
    # changed its type: otherwise no version of the table can be read
    "spark.sql.sources.validatePartitionColumns": "false",
}
EXTENSIONS = {"delta": _FIXED["spark.sql.extensions"], "hudi": _HUDI["spark.sql.extensions"]}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # otherwise each sort, aggregate and broadcast table begins with up to 64 MB, depending on the heap (decision 0069)
    "spark.buffer.pageSize": "4m",
    # VACUUM and listings start 10,000 tasks without it (stack.md 1.2)
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}
_S3A = {
    "connection.maximum": "500",  # a smaller pool hangs without an error (stack.md 1.3)
    "threads.max": "64",
    "directory.marker.retention": "keep",
    # a missing endpoint is reported in seconds, not in a quarter of an hour
    "attempts.maximum": "4",
    "retry.limit": "4",
    "connection.establish.timeout": "5000",
    # a silent or overloaded (503) one in minutes: Hadoop's defaults are an hour and a day
    "connection.timeout": "60000",
    "retry.throttle.limit": "8",
}


def session_settings(settings: Settings, existing: Mapping[str, str], line: Line = sparkline.DEFAULT) -> dict[str, str]:
    """Return what a session needs beyond *existing*: missing keys, and lists that lack an entry.

    *existing* is what ``spark-submit``, ``spark-defaults.conf`` or a running context set, and takes precedence; then
    come the ``spark`` keys of the configuration; then the defaults of this module.
    """
    master = existing.get("spark.master") or settings.spark.get("spark.master") or "local[*]"
    wanted = {"spark.master": master, "spark.app.name": "replicator", **_FIXED, **line.settings, **_s3(settings)}
    wanted["spark.sql.warehouse.dir"] = str(settings.cache / "warehouse")
    if local_cores(master) is not None:
        wanted |= {**_LOCAL, "spark.sql.shuffle.partitions": str(local_cores(master))}
        if "://" not in settings.lake.root:
            wanted["spark.sql.streaming.checkpointFileManagerClass"] = line.checkpoint_files
            # a path is one of this machine, also where HADOOP_CONF_DIR names another default, such as a cluster's HDFS:
            # leases and commands without Spark look for it here
            wanted["spark.hadoop.fs.defaultFS"] = "file:///"
    if "hudi" in settings.formats:
        wanted = _overlay(_HUDI, wanted)
    own = {key: value for key, value in settings.spark.items() if key not in _AT_LAUNCH}
    return _missing_settings(existing, _overlay(own, wanted))


def launch_settings(
    settings: Settings,
    existing: Mapping[str, str],
    class_path: Iterable[Path],
    log: Path | None,
    archive: Path | None = None,
    *,
    brief: bool = False,
) -> dict[str, str]:
    """Return what goes to the command line of a JVM to be started; it must not contain secrets.

    *existing* is ``spark-defaults.conf``. *log* is the file for Spark's log; None leaves it on stderr. *archive* is the
    path of the class archive, which may not exist. *brief* is for a JVM that ends before an optimizing compiler would
    pay off.
    """
    elsewhere = [conf.get("spark.driver.defaultJavaOptions", "") for conf in (existing, settings.spark)]
    wanted = {
        "spark.master": "local[*]",  # spark-submit would set an indistinguishable default of its own
        "spark.app.name": "replicator",
        "spark.driver.memory": "1g",
        "spark.jars": ",".join(map(str, class_path)),
        "spark.ui.showConsoleProgress": str(log is None).lower(),
        _OPTIONS: jvm_options.choose(elsewhere, brief=brief),
    }
    own = {key: value for key, value in settings.spark.items() if key in wanted.keys() | _AT_LAUNCH}
    if _OPTIONS in own:
        own[_OPTIONS] = jvm_options.yield_to_environment(own[_OPTIONS])
    missing = _missing_settings(existing, _overlay(own, wanted))
    given = existing.get(_OPTIONS, missing.get(_OPTIONS, ""))
    all_options = " ".join([given, *elsewhere, jvm_options.from_environment()])
    added_options = [class_archive.java_options(all_options, archive)] if archive is not None else []
    if log is not None and "log4j" not in given:
        rules = Path(__file__).with_name("log4j2.properties")
        added_options.append(f'"-Dlog4j2.configurationFile={rules}" "-Dreplicator.log={log}"')
    if any(added_options):
        missing[_OPTIONS] = " ".join(filter(None, [given, *added_options]))
    return missing


def address_variables(launched: Mapping[str, str], existing: Mapping[str, str]) -> dict[str, str]:
    """Variables with the address of a local master for the JVM: Spark resolves its host's name first, and exits if that
    fails, although everything runs on one machine.
    """
    return {"SPARK_LOCAL_IP": _LOCAL["spark.driver.host"]} if _is_local(launched, existing) else {}


def worker_variables(launched: Mapping[str, str], existing: Mapping[str, str]) -> dict[str, str]:
    """Variables that choose the Python of a local master's workers: this one, whatever is set for other purposes, since
    they read what this one writes.
    """
    return {"PYSPARK_PYTHON": sys.executable} if _is_local(launched, existing) else {}


def _is_local(launched: Mapping[str, str], existing: Mapping[str, str]) -> bool:
    return local_cores(launched.get("spark.master") or existing.get("spark.master", "")) is not None


def local_cores(master: str) -> int | None:
    """The number of cores that a local master uses; None for a cluster."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match.group(1) == "*" else int(match.group(1) or 1)


def uses_s3(settings: Settings) -> bool:
    """Whether the lake, or a source's objects, are in an object store."""
    places = (settings.lake.root, *(source.objects for source in settings.sources))
    return any(place.startswith("s3a:") for place in places)


def _s3(settings: Settings) -> dict[str, str]:
    """Settings for every store, if one is used; addresses and keys where they are given."""
    s3, options = settings.s3, _S3A if uses_s3(settings) else {}
    if s3 is not None:
        given = {
            "endpoint": s3.endpoint,
            "endpoint.region": s3.region,
            "path.style.access": str(s3.path_style).lower(),
            "access.key": s3.access_key.get_secret_value() if s3.access_key else None,
            "secret.key": s3.secret_key.get_secret_value() if s3.secret_key else None,
        }
        options = {**{key: value for key, value in given.items() if value is not None}, **_S3A}
    return {f"spark.hadoop.fs.s3a.{key}": value for key, value in options.items()}


def _overlay(above: Mapping[str, str], below: Mapping[str, str]) -> dict[str, str]:
    """*above* merged over *below*; lists are joined."""
    return {**below, **{k: _join_lists(v, below[k]) if k in _LISTS & below.keys() else v for k, v in above.items()}}


def _missing_settings(existing: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """What of *wanted* is missing in *existing*; lists also if they are incomplete there."""
    missing = {key: value for key, value in wanted.items() if key not in existing}
    lists = {key: _join_lists(existing[key], wanted[key]) for key in _LISTS & wanted.keys() & existing.keys()}
    return missing | {key: value for key, value in lists.items() if value != existing[key]}


def _join_lists(first: str, second: str) -> str:
    entries = [entry.strip() for entry in f"{first},{second}".split(",")]
    return ",".join(dict.fromkeys(entry for entry in entries if entry))
