"""The only place that builds a SparkSession (stack.md 1.6).

A value set in the builder beats what ``spark-submit`` and ``spark-defaults.conf`` say, so :func:`configuration` is a
pure function from what is set already to what is missing. What only a starting JVM can take (memory, JARs, Java
options) goes to its command line; secrets never do.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator import class_archive, environment, gateway, interrupts, jars, jvm_options, sparkline
from replicator.aws import runtime as emr
from replicator.endpoint import must_answer
from replicator.errors import ConfigError, JarsMissing, ReplicatorError
from replicator.java import java_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from replicator.settings import Settings
    from replicator.sparkline import Line

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
    # plans of small batches differ in a literal only, and each costs a compilation (performance.md B10)
    "spark.sql.codegen.cache.maxEntries": "2000",
    # the JVM never compiles a function of more bytes: better one for each operator (decision 0065)
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # what is cached is read a few times within seconds: to look for the best encoding of each column takes longer
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    # a file of records is many MB of long texts: in pieces of so many bytes all cores can read it
    "spark.hadoop.parquet.block.size": str(16 << 20),
    # one calendar for all times: else a date before 1582-10-15 or an instant before 1900 stops its table
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # the state of a table's log is small: 50 tasks for it are 49 too many (B6)
    "spark.databricks.delta.snapshotPartitions": "2",
    # a checkpoint of a log, however small its table, costs more than a commit, and tables get theirs at the same tick;
    # a new process reads 50 commits no slower than 10 (B6, decision 0057)
    "spark.databricks.delta.properties.defaults.checkpointInterval": "50",
    "spark.scheduler.mode": "FAIR",
}
_HUDI = {
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    # else an array with a NULL in it cannot be written
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    # Hudi's writer does not say that it uses the one calendar that Spark has now
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
}
_EXTENSIONS = {"delta": _FIXED["spark.sql.extensions"], "hudi": _HUDI["spark.sql.extensions"]}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # VACUUM and listings start 10,000 tasks without it (stack.md 1.2)
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}
_S3A = {
    "connection.maximum": "500",  # a smaller pool hangs without an error (stack.md 1.3)
    "threads.max": "64",
    "directory.marker.retention": "keep",
    # an endpoint that is not there is told in seconds, not in a quarter of an hour
    "attempts.maximum": "4",
    "retry.limit": "4",
    "connection.establish.timeout": "5000",
    # one that is silent, or has no time (503), in minutes: Hadoop's own patience is an hour, and a day
    "connection.timeout": "60000",
    "retry.throttle.limit": "8",
}


def configuration(settings: Settings, existing: Mapping[str, str], line: Line = sparkline.DEFAULT) -> dict[str, str]:
    """What a session needs beyond *existing*: keys that are missing there, and lists that lack one of our entries.

    *existing* is what ``spark-submit``, ``spark-defaults.conf`` or a running context set, and wins; then come the
    ``spark`` keys of the configuration; then our own.
    """
    master = existing.get("spark.master") or settings.spark.get("spark.master") or "local[*]"
    wanted = {"spark.master": master, "spark.app.name": "replicator", **_FIXED, **line.settings, **_s3(settings)}
    wanted["spark.sql.warehouse.dir"] = str(settings.cache / "warehouse")
    if cores(master) is not None:
        wanted |= {**_LOCAL, "spark.sql.shuffle.partitions": str(cores(master))}
        if "://" not in settings.lake.root:
            wanted["spark.sql.streaming.checkpointFileManagerClass"] = line.checkpoint_files
    if "hudi" in settings.formats:
        wanted = _over(_HUDI, wanted)
    own = {key: value for key, value in settings.spark.items() if key not in _AT_LAUNCH}
    return _beyond(existing, _over(own, wanted))


def launch(
    settings: Settings,
    existing: Mapping[str, str],
    class_path: Iterable[Path],
    log: Path | None,
    archive: Path | None = None,
    *,
    brief: bool = False,
) -> dict[str, str]:
    """What goes to the command line of a JVM that is yet to start: no secret may be among it.

    *existing* is ``spark-defaults.conf``. *log* is where Spark's own words go; None leaves them on stderr. *archive* is
    where Spark's classes may be laid out. *brief* is for a JVM that ends before a thorough compiler would pay.
    """
    elsewhere = [conf.get("spark.driver.defaultJavaOptions", "") for conf in (existing, settings.spark)]
    wanted = {
        "spark.master": "local[*]",  # spark-submit would set its own default, which then could not be told apart
        "spark.app.name": "replicator",
        "spark.driver.memory": "1g",
        "spark.jars": ",".join(map(str, class_path)),
        "spark.ui.showConsoleProgress": str(log is None).lower(),
        _OPTIONS: jvm_options.chosen(elsewhere, brief=brief),
    }
    own = {key: value for key, value in settings.spark.items() if key in wanted.keys() | _AT_LAUNCH}
    missing = _beyond(existing, _over(own, wanted))
    given = existing.get(_OPTIONS, missing.get(_OPTIONS, ""))
    more = [class_archive.options(given, archive)] if archive is not None else []
    if log is not None and "log4j" not in given:
        rules = Path(__file__).with_name("log4j2.properties")
        more.append(f'"-Dlog4j2.configurationFile={rules}" "-Dreplicator.log={log}"')
    if any(more):
        missing[_OPTIONS] = " ".join(filter(None, [given, *more]))
    return missing


def cores(master: str) -> int | None:
    """How many cores a local master uses; None for a cluster."""
    match = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", master)
    if match is None:
        return None
    return (os.cpu_count() or 1) if match.group(1) == "*" else int(match.group(1) or 1)


def session(settings: Settings, *, debug: bool = False, brief: bool = False) -> SparkSession:
    """A session on the running JVM (``spark-submit``, or an earlier call), else on a new one.

    Raises JavaUnsuitable, JarsMissing, and Unreachable when nothing listens at the object store's address, before a
    JVM starts: its own client tells after minutes. ConfigError for a Delta or Hudi beside the runtime's own, and for a
    format that this line of Spark has not. Without
    *debug* Spark's own log goes to ``spark.log`` in the cache instead of stderr. The JVM ends with this process;
    *brief* says that this will be soon.
    """
    import pyspark  # noqa: PLC0415 - `replicator validate` and --help load no pyspark
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if settings.s3 is not None and settings.s3.endpoint and _uses_s3(settings):
        must_answer(settings.s3.endpoint, "the object store", "Check that it runs and `s3.endpoint` is right.")
    line = sparkline.of(pyspark.__version__)
    sparkline.refuse(line, settings.formats)
    submitted = _reached(settings, debug=debug, brief=brief)
    context = pyspark.SparkContext._active_spark_context  # noqa: SLF001
    for name in settings.formats:
        _refuse_without(name, pyspark.SparkContext._jvm, settings.runtime)  # noqa: SLF001
    existing = dict((context.getConf() if context else pyspark.SparkConf()).getAll())
    if submitted and settings.runtime == "emr":
        emr.refuse_ours(existing.get("spark.jars", ""))
    builder = SparkSession.builder
    for key, value in configuration(settings, existing, line).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    refuse_unextended(settings.formats, spark.sparkContext.getConf().get("spark.sql.extensions", ""))
    gateway.remember(gateway.of(spark))
    if not submitted:
        interrupts.cancelling(spark.sparkContext.cancelAllJobs)
    elif not debug:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def jvm(settings: Settings, *, debug: bool = False) -> Any:
    """The running JVM, else a new one for a short look, with our JARs and without a session: its Kafka client is the
    one that we have. Raises JavaUnsuitable, JarsMissing.
    """
    import pyspark  # noqa: PLC0415 - as above

    _reached(settings, debug=debug, brief=True)
    return pyspark.SparkContext._jvm  # noqa: SLF001


def log_file(settings: Settings) -> Path:
    """Where Spark's own log goes."""
    return settings.cache / "spark.log"


def _reached(settings: Settings, *, debug: bool, brief: bool) -> bool:
    """Have a JVM; whether it was there before."""
    import pyspark  # noqa: PLC0415 - as above

    environment.set_when_missing({"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable})
    submitted = pyspark.SparkContext._gateway is not None or environment.variable("PYSPARK_GATEWAY_PORT")  # noqa: SLF001
    if not submitted:
        _start(settings, sparkline.of(pyspark.__version__), debug=debug, brief=brief)
    pyspark.SparkContext._ensure_initialized()  # noqa: SLF001 - the only way to see spark-submit's values early
    return bool(submitted)


def _start(settings: Settings, line: Line, *, debug: bool, brief: bool) -> None:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    class_path = jars.present(jars.locked(line.name, settings.formats), settings.cache)
    # the JVM's launcher believes JAVA_HOME before the PATH, so an unsuitable one has to give way
    java = java_home(environment.variable("JAVA_HOME"))
    environment.put({"JAVA_HOME": str(java)})
    environment.set_when_missing({"SPARK_HOME": str(class_archive.spark_home())})  # the archive knows no other path
    log = None if debug else log_file(settings)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False)
    archive = class_archive.place(java)
    for key, value in launch(settings, spark_defaults(), class_path, log, archive, brief=brief).items():
        conf.set(key, value)
    try:
        with interrupts.held_back():
            SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - pyspark's own way to give a JVM its memory and JARs
    except Exception as error:
        raise ReplicatorError("The JVM of Spark did not start.", where=str(log or "see above")) from error
    interrupts.cancelling(lambda: None)  # nothing is at work yet; py4j has no trace to write either


def _refuse_without(name: str, jvm: Any, runtime: str) -> None:
    """A JVM that somebody else started has the JARs that it was given, and no others; without Hudi's extension its
    incremental reads would find nothing, and say nothing (stack.md 1.3).
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_EXTENSIONS[name])
    except Py4JJavaError as error:
        how = (
            "`replicator aws submit`"
            if runtime == "emr"
            else f'spark-submit --jars "$(replicator jars --format {name})"'
        )
        raise JarsMissing(f"Spark runs without the JARs of {name}.", mend=f"Start it with: {how} ...") from error


def refuse_unextended(formats: Iterable[str], told: str | None) -> None:
    """Raise ConfigError where a format's session extension is not among those that Spark was *told*: it takes none once
    it runs, and Hudi's reads without its own find nothing and say nothing (stack.md 1.3).
    """
    have = {each.strip() for each in (told or "").split(",")}
    missing = next((name for name in formats if _EXTENSIONS[name] not in have), None)
    if missing is not None:
        raise ConfigError(
            f"Spark runs already, without the session extension of {missing}",
            mend=f"Stop that session, or start it with spark.sql.extensions={_EXTENSIONS[missing]}.",
        )


def spark_defaults() -> dict[str, str]:
    """``spark-defaults.conf`` as a plain ``python`` would get it; empty if there is none."""
    folder = environment.variable("SPARK_CONF_DIR")
    home = environment.variable("SPARK_HOME")
    path = Path(folder or (Path(home) / "conf" if home else "")) / "spark-defaults.conf"
    if not (folder or home) or not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (re.split(r"\s*[=\s]\s*", line, maxsplit=1) for line in lines if line and not line.startswith(("#", "!")))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}


def _uses_s3(settings: Settings) -> bool:
    places = (settings.lake.root, *(source.objects for source in settings.sources))
    return any(place.startswith("s3a:") for place in places)


def _s3(settings: Settings) -> dict[str, str]:
    """Ways that hold for every store, where one is used; addresses and keys where they are given."""
    s3, told = settings.s3, _S3A if _uses_s3(settings) else {}
    if s3 is not None:
        given = {
            "endpoint": s3.endpoint,
            "endpoint.region": s3.region,
            "path.style.access": str(s3.path_style).lower(),
            "access.key": s3.access_key.get_secret_value() if s3.access_key else None,
            "secret.key": s3.secret_key.get_secret_value() if s3.secret_key else None,
        }
        told = {**{key: value for key, value in given.items() if value is not None}, **_S3A}
    return {f"spark.hadoop.fs.s3a.{key}": value for key, value in told.items()}


def _over(above: Mapping[str, str], below: Mapping[str, str]) -> dict[str, str]:
    """*above* laid over *below*; lists are joined."""
    return {**below, **{k: _joined(v, below[k]) if k in _LISTS & below.keys() else v for k, v in above.items()}}


def _beyond(existing: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """What of *wanted* is missing in *existing*, or as a list not all there."""
    missing = {key: value for key, value in wanted.items() if key not in existing}
    lists = {key: _joined(existing[key], wanted[key]) for key in _LISTS & wanted.keys() & existing.keys()}
    return missing | {key: value for key, value in lists.items() if value != existing[key]}


def _joined(first: str, second: str) -> str:
    entries = [entry.strip() for entry in f"{first},{second}".split(",")]
    return ",".join(dict.fromkeys(entry for entry in entries if entry))
