"""The only place that starts a JVM and builds a SparkSession; their settings are in ``jvm/sparkconf.py``."""

from __future__ import annotations

import os
import re
import resource
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replicator import environment, jars, s3
from replicator.aws import runtime as emr
from replicator.errors import ConfigError, JarsMissing, ReplicatorError, Unreachable
from replicator.jvm import causes, class_archive, gateway, interrupts, spark_home, sparkconf, sparkline
from replicator.jvm.java import java_home, refuse_nameless_user
from replicator.lake import is_local

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from replicator.jvm.sparkline import Line
    from replicator.settings import Settings

_NO_CLUSTER = re.compile(r"^java\.lang\.IllegalStateException: |running MetricsSystem|application has already ended")
"""Messages of a SparkContext whose cluster ended it during its start: it is stopped, or has lost a part of itself, or
YARN reports it. Errors in Spark's own settings have another class.
"""

_IO_ERROR = "java.io.IOException: "
"""The prefix of a failure such as a full disk, for which no setting is to blame."""

_OPEN_FILES = 1024
"""A usual limit of open files per user, and enough for Spark."""


def session(settings: Settings, *, debug: bool = False, brief: bool = False) -> SparkSession:
    """Return a session on the running JVM (``spark-submit``, or an earlier call), else on a new one.

    Raises JavaUnsuitable, JarsMissing, and Unreachable if nothing listens at the object store's address or it hangs;
    this is checked before a JVM starts, since its own client takes minutes to report it. Raises ConfigError for a Delta
    or Hudi beside the runtime's own, for a format that this line of Spark does not support, and for settings with which
    Spark does not start; Unreachable also if the cluster accepts no driver. Without *debug*, Spark's log goes to
    ``spark.log`` in the cache instead of stderr. The JVM ends with this process; *brief* says that this will be soon.
    """
    import pyspark  # noqa: PLC0415 - `replicator validate` and --help load no pyspark
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if settings.s3 is not None and settings.s3.endpoint and sparkconf.uses_s3(settings):
        s3.check_reachable(settings.s3.endpoint)
    line = _line()
    sparkline.refuse_formats(line, settings.formats)
    submitted = _ensure_jvm(settings, debug=debug, brief=brief)
    context = pyspark.SparkContext._active_spark_context  # noqa: SLF001
    charset = pyspark.SparkContext._jvm.java.lang.System.getProperty("sun.jnu.encoding")  # type: ignore[union-attr]  # noqa: SLF001
    refuse_unencodable_path(settings.lake.root, str(charset))
    for name in settings.formats:
        _refuse_missing_jars(name, pyspark.SparkContext._jvm, settings.runtime)  # noqa: SLF001
    if "hudi" in settings.formats:
        _set_time_zone_utc(pyspark.SparkContext._jvm)  # noqa: SLF001
    existing = dict((context.getConf() if context else pyspark.SparkConf()).getAll())
    if submitted and settings.runtime == "emr":
        emr.refuse_duplicate_jars(existing.get("spark.jars", ""))
    builder = SparkSession.builder
    for key, value in sparkconf.session_settings(settings, existing, line).items():
        builder = builder.config(key, value)
    spark = _build(builder)
    refuse_missing_extension(settings.formats, spark.sparkContext.getConf().get("spark.sql.extensions", ""))
    gateway.cache_lookups(gateway.of(spark))
    _redirect_stdout(gateway.of(spark))
    if not submitted:
        _log_uncaught_exceptions(gateway.of(spark))
        interrupts.cancel_on_interrupt(spark.sparkContext.cancelAllJobs)
    elif not debug:
        spark.sparkContext.setLogLevel("ERROR")
    return spark


def jvm(settings: Settings, *, debug: bool = False) -> Any:
    """Return the running JVM, else a new one for a short task, with the locked JARs and without a session; it serves as
    the Kafka client. Raises JavaUnsuitable, JarsMissing.
    """
    import pyspark  # noqa: PLC0415 - as above

    _ensure_jvm(settings, debug=debug, brief=True)
    return pyspark.SparkContext._jvm  # noqa: SLF001


def _build(builder: SparkSession.Builder) -> SparkSession:
    """Build the session together with the state that Spark would otherwise create with the first query, so that an
    invalid SQL setting is reported here and not as the failure of a table. Raises ConfigError, Unreachable.
    """
    from replicator.jvm.failures import FAILURES  # noqa: PLC0415 - as above

    try:
        spark = builder.getOrCreate()
        spark._jsparkSession.sessionState()  # noqa: SLF001 - pyspark has no API for it
    except FAILURES as error:
        cause = causes.describe_root_cause(error)
        if causes.is_infrastructure(error) or cause.startswith(_IO_ERROR):
            raise
        if _NO_CLUSTER.search(cause):
            what, fix = "the cluster of `spark.master` accepted no driver", "Check it and its address, then run again."
            raise Unreachable(f"{what}: {cause}", fix=fix) from error
        fix = "Fix it below `spark` in base.yaml or the environment's file, or among the options of spark-submit."
        raise ConfigError(f"Spark does not start with these settings: {cause}.", fix=fix) from error
    return spark


def log_file(cache: Path) -> Path:
    """The file of Spark's own log."""
    return cache / "spark.log"


def _ensure_jvm(settings: Settings, *, debug: bool, brief: bool) -> bool:
    """Start a JVM unless one is running; return whether one was."""
    import pyspark  # noqa: PLC0415 - as above

    environment.set_defaults({"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable})
    submitted = pyspark.SparkContext._gateway is not None or environment.variable("PYSPARK_GATEWAY_PORT")  # noqa: SLF001
    if not submitted:
        _start(settings, _line(), debug=debug, brief=brief)
    pyspark.SparkContext._ensure_initialized()  # noqa: SLF001 - the only way to see spark-submit's values early
    return bool(submitted)


def _line() -> Line:
    """The line of the pyspark that Python finds. Raises ConfigError."""
    import pyspark  # noqa: PLC0415 - as above

    return sparkline.of(pyspark.__version__, pyspark.__file__)


def _start(settings: Settings, line: Line, *, debug: bool, brief: bool) -> None:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    environment.ensure_utf8_locale()
    refuse_nameless_user()
    class_path = jars.locate(jars.load_lock(line.name, settings.formats), settings.cache)
    # the JVM's launcher prefers JAVA_HOME to the PATH, so an unsuitable one must be replaced
    java = java_home(environment.variable("JAVA_HOME"))
    environment.set_variables({"JAVA_HOME": str(java)})
    environment.set_variables({"SPARK_HOME": str(spark_home.choose(environment.variable("SPARK_HOME"), line))})
    log = None if debug else log_file(settings.cache)
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
    conf = SparkConf(loadDefaults=False)
    archive, existing = class_archive.archive_path(java), spark_defaults()
    launched = sparkconf.launch_settings(settings, existing, class_path, log, archive, brief=brief)
    environment.set_variables(sparkconf.worker_variables(launched, existing))
    environment.set_defaults(sparkconf.address_variables(launched, existing))
    for key, value in launched.items():
        conf.set(key, value)
    try:
        with interrupts.defer():
            SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - pyspark's own way to give a JVM its memory and JARs
            interrupts.ignore_sigterm(SparkContext._jvm)  # noqa: SLF001
    except Exception as error:
        raise ReplicatorError(
            "The JVM of Spark did not start.", where=str(log or "see above"), fix=_start_hint()
        ) from error
    interrupts.cancel_on_interrupt(lambda: None)  # no job runs yet; py4j has no traceback to write either


def _start_hint() -> str | None:
    """A hint if the limit of open files is too low, or if this host's name does not resolve: Spark looks it up if AWS's
    variables are set.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= most < _OPEN_FILES:  # below zero: unlimited
        return f"{most} open files are allowed here, and Spark needs hundreds: `ulimit -n {_OPEN_FILES}` or more."
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return f"The name of this host, {name}, may not resolve to an address: add it to /etc/hosts."
    return None


def _refuse_missing_jars(name: str, jvm: Any, runtime: str) -> None:
    """Raise JarsMissing if the JVM lacks a format's session extension. A JVM that was not started here has only the
    JARs it was given; without Hudi's extension, its incremental reads would silently return nothing (stack.md 1.3).
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(sparkconf.EXTENSIONS[name])
    except Py4JJavaError as error:
        how = (
            "`replicator aws submit`"
            if runtime == "emr"
            else f'spark-submit --jars "$(replicator jars --format {name})"'
        )
        raise JarsMissing(f"Spark is running without the JARs of {name}.", fix=f"Start it with: {how} ...") from error


def _redirect_stdout(jvm: Any) -> None:
    """Redirect what libraries print in the JVM to Spark's log, since stdout is for data. On merge-on-read, Hudi prints
    warnings about which a user can do nothing.
    """
    system = jvm.java.lang.System
    log = system.getProperty("replicator.log")
    is_writable = log is not None and jvm.java.io.File(log).canWrite()
    system.setOut(jvm.java.io.PrintStream(jvm.java.io.FileOutputStream(log, True)) if is_writable else system.err)


def _log_uncaught_exceptions(jvm: Any) -> None:
    """Have exceptions that end a thread of the JVM logged: Java would print their stack traces to stderr. If OPTIMIZE
    fails in one partition, Delta interrupts its threads that compact the others, and raises the error itself.
    """
    jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(
        jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
    )


def _set_time_zone_utc(jvm: Any) -> None:
    """Set the JVM's default time zone to UTC. Hudi names commits in UTC, as its table settings require, but its table
    services may use the JVM's zone, and always use it to decide which files are old enough: commits would be dated
    hours ahead, or no log would ever be merged.
    """
    zones = jvm.java.util.TimeZone
    zones.setDefault(zones.getTimeZone("UTC"))


def refuse_unencodable_path(root: str, charset: str) -> None:
    """Raise ConfigError if a local lake's path has a character that the JVM cannot encode in its locale: it would read
    and write elsewhere.
    """
    try:
        if is_local(root):
            root.encode(charset)
    except LookupError:
        return  # for a charset unknown to Python, this cannot be checked
    except UnicodeEncodeError as error:
        what, fix = f"the JVM's locale ({charset}) cannot encode the lake's path", "Start it with LC_ALL=C.UTF-8."
        raise ConfigError(what, where=root, fix=fix) from error


def refuse_missing_extension(formats: Iterable[str], configured: str | None) -> None:
    """Raise ConfigError if a format's session extension is not in *configured*, the value of ``spark.sql.extensions``:
    a running Spark accepts none, and without its extension Hudi's reads silently return nothing (stack.md 1.3).
    """
    have = {each.strip() for each in (configured or "").split(",")}
    missing = next((name for name in formats if sparkconf.EXTENSIONS[name] not in have), None)
    if missing is not None:
        raise ConfigError(
            f"Spark is already running without the session extension of {missing}",
            fix=f"Stop that session, or start it with spark.sql.extensions={sparkconf.EXTENSIONS[missing]}.",
        )


def spark_defaults() -> dict[str, str]:
    """Return ``spark-defaults.conf`` as a plain ``python`` would get it; empty if there is none."""
    folder = environment.variable("SPARK_CONF_DIR")
    home = environment.variable("SPARK_HOME")
    path = Path(folder or (Path(home) / "conf" if home else "")) / "spark-defaults.conf"
    if not (folder or home) or not os.path.isfile(path):  # Spark, too, ignores one that this user may not look for
        return {}
    text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8", errors="replace"))
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and not line.startswith(("#", "!")))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
