"""What a session is told is a pure function of what is told already."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from replicator import session, settings
from replicator.cli import probes
from replicator.config import settingkeys
from replicator.errors import ConfigError, Unreachable
from replicator.jvm import jvm_options, spark_home, sparkconf, sparkline

DELTA = "io.delta.sql.DeltaSparkSessionExtension"
HUDI = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"


def bare(tmp_path: Path, **keys: Any) -> settings.Settings:
    plain = settings.bare(str(tmp_path))
    return plain.model_copy(update={k: getattr(settingkeys.Keys.model_validate({k: v}), k) for k, v in keys.items()})


def test_a_local_session_speaks_delta_in_utc_with_ansi_and_no_ui(tmp_path: Path) -> None:
    """The defaults that every result depends on."""
    conf = sparkconf.session_settings(bare(tmp_path, spark={"spark.master": "local[3]"}), {})
    assert conf["spark.sql.extensions"] == DELTA
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.sql.ansi.enabled"] == "true"
    assert conf["spark.ui.enabled"] == "false"
    assert conf["spark.sql.shuffle.partitions"] == "3"
    assert conf["spark.buffer.pageSize"] == "4m"


def test_a_local_lake_is_on_this_machine_whatever_hadoop_is_configured_for(tmp_path: Path) -> None:
    """With HADOOP_CONF_DIR, as on a cluster's edge node, Spark took its path for one in HDFS, and its leases and
    `status` did not. An address says itself where it is.
    """
    name = "spark.hadoop.fs.defaultFS"
    assert sparkconf.session_settings(bare(tmp_path), {})[name] == "file:///"
    for root in ("hdfs:///lake", "s3a://bucket/lake"):
        assert name not in sparkconf.session_settings(bare(tmp_path, lake={"root": root}), {})
    assert name not in sparkconf.session_settings(bare(tmp_path), {"spark.master": "yarn"})
    own = bare(tmp_path, spark={name: "hdfs://name:8020"})
    assert sparkconf.session_settings(own, {})[name] == "hdfs://name:8020"


def test_what_spark_submit_said_wins(tmp_path: Path) -> None:
    """Only what is missing is set: a key that exists is not in the answer."""
    existing = {"spark.master": "yarn", "spark.sql.ansi.enabled": "false", "spark.executor.cores": "4"}
    own = bare(tmp_path, spark={"spark.executor.cores": "1", "spark.sql.shuffle.partitions": "64"})
    conf = sparkconf.session_settings(own, existing)
    assert not conf.keys() & existing.keys()
    assert conf["spark.sql.shuffle.partitions"] == "64"
    assert "spark.ui.enabled" not in conf


def test_lists_are_joined_and_not_replaced(tmp_path: Path) -> None:
    """A cluster's own extensions stay, and ours are there once."""
    own = bare(tmp_path, spark={"spark.sql.extensions": "b.B"})
    assert (
        sparkconf.session_settings(own, {"spark.sql.extensions": "a.A"})["spark.sql.extensions"] == f"a.A,b.B,{DELTA}"
    )
    both = {"spark.sql.extensions": f"{DELTA},a.A"}
    assert "spark.sql.extensions" not in sparkconf.session_settings(bare(tmp_path), both)


def test_hudi_brings_its_extension_and_its_serializer_and_only_where_it_is_named(tmp_path: Path) -> None:
    """Both extensions are there once; a session of Delta alone has nothing of Hudi's."""
    both = sparkconf.session_settings(bare(tmp_path, formats=("delta", "hudi")), {})
    assert sorted(both["spark.sql.extensions"].split(",")) == [DELTA, HUDI]
    assert both["spark.kryo.registrator"] == "org.apache.spark.HoodieSparkKryoRegistrar"
    assert not [key for key in sparkconf.session_settings(bare(tmp_path), {}) if "kryo" in key]


def test_the_answer_is_complete(tmp_path: Path) -> None:
    """Told its own answer, it has nothing to add."""
    conf = sparkconf.session_settings(bare(tmp_path), {})
    assert sparkconf.session_settings(bare(tmp_path), conf) == {}


def test_s3_is_set_only_where_it_is_configured(tmp_path: Path) -> None:
    """The connection pool is large, since a small one hangs; keys that are not given leave AWS's own chain. A lake
    there with nothing but its address has the pool, and the patience, all the same.
    """
    assert not [key for key in sparkconf.session_settings(bare(tmp_path), {}) if "s3a" in key]
    alone = sparkconf.session_settings(bare(tmp_path, lake={"root": "s3a://bucket/lake"}), {})
    assert alone["spark.hadoop.fs.s3a.connection.maximum"] == "500"
    assert "spark.hadoop.fs.s3a.endpoint" not in alone
    conf = sparkconf.session_settings(bare(tmp_path, s3={"endpoint": "http://x", "path_style": True}), {})
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://x"
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert conf["spark.hadoop.fs.s3a.connection.maximum"] == "500"
    assert "spark.hadoop.fs.s3a.access.key" not in conf


def test_a_store_that_has_no_time_is_told_of_in_minutes(tmp_path: Path) -> None:
    """Hadoop waits twice as long before each try of a throttled request, up to half as long again; its own twenty tries
    would take a day.
    """
    conf = sparkconf.session_settings(bare(tmp_path, s3={"endpoint": "http://x"}), {})
    tries = int(conf["spark.hadoop.fs.s3a.retry.throttle.limit"])
    seconds = sum(0.1 * 2**turn * 1.5 for turn in range(tries))
    assert 20 < seconds < 120
    silent = int(conf["spark.hadoop.fs.s3a.connection.timeout"]) / 1000
    assert silent <= 60


def test_no_secret_goes_to_a_command_line(tmp_path: Path) -> None:
    """The JVM's arguments are seen by every user of the machine."""
    own = bare(tmp_path, s3={"access_key": "canary", "secret_key": "canary"}, spark={"spark.x.password": "canary"})
    assert "canary" not in str(sparkconf.launch_settings(own, {}, [Path("/a.jar")], tmp_path / "log"))
    assert sparkconf.session_settings(own, {})["spark.hadoop.fs.s3a.secret.key"] == "canary"


def test_a_new_jvm_gets_memory_jars_and_silence(tmp_path: Path) -> None:
    """What only a starting JVM can take, added to what spark-defaults.conf has."""
    existing = {"spark.jars": "/own.jar", "spark.driver.memory": "4g", "spark.driver.extraJavaOptions": "-Dx=1"}
    conf = sparkconf.launch_settings(bare(tmp_path), existing, [Path("/a.jar"), Path("/b.jar")], tmp_path / "log")
    assert conf["spark.jars"] == "/own.jar,/a.jar,/b.jar"
    assert "spark.driver.memory" not in conf
    assert conf["spark.driver.extraJavaOptions"].startswith('-Dx=1 "-Dlog4j2.configurationFile=')


def test_a_brief_command_compiles_quickly_unless_the_user_says_how(tmp_path: Path) -> None:
    """A thorough compiler costs a verb of some seconds more than it wins, and what lasts has its memory tidied between
    its tasks, not beside them; options of the user's own stand.
    """
    options = "spark.driver.extraJavaOptions"
    assert "TieredStopAtLevel=1" in sparkconf.launch_settings(bare(tmp_path), {}, [], None, brief=True)[options]
    assert (
        sparkconf.launch_settings(bare(tmp_path), {}, [], None)[options]
        == f"-XX:+UseParallelGC {jvm_options.LATE_COMPILATION}"
    )
    assert options not in sparkconf.launch_settings(bare(tmp_path), {options: "-XX:+UseG1GC"}, [], None)
    own = bare(tmp_path, spark={options: "-Dx=1"})
    assert sparkconf.launch_settings(own, {}, [], tmp_path / "log", brief=True)[options].startswith("-Dx=1 ")
    assert options not in sparkconf.launch_settings(bare(tmp_path), {options: "-Dx=1"}, [], None, brief=True)


@pytest.mark.parametrize("name", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_a_garbage_collector_of_the_users_stays_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A JVM that is told of two does not start, wherever it is told: the rest of our options stands."""
    options, defaults = "spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"
    theirs = {defaults: "-Dx=1 -XX:+UseG1GC"}
    quick = jvm_options.SHORT_LIVED.removeprefix("-XX:+UseSerialGC ")
    assert sparkconf.launch_settings(bare(tmp_path), theirs, [], None, brief=True)[options] == quick
    assert (
        sparkconf.launch_settings(bare(tmp_path, spark=theirs), {}, [], None)[options] == jvm_options.LATE_COMPILATION
    )
    monkeypatch.setenv(name, "-Xss4m -XX:+UseZGC")
    assert sparkconf.launch_settings(bare(tmp_path), {}, [], None)[options] == jvm_options.LATE_COMPILATION
    configured = bare(tmp_path, spark={options: "-XX:+UseSerialGC -Dx=1"})
    assert sparkconf.launch_settings(configured, {}, [], None)[options] == "-Dx=1"


def test_a_driver_maps_the_archive_of_classes_that_is_there(tmp_path: Path) -> None:
    """Beside the user's own options, unless these say what to map; none where no archive was ever made."""
    options, archive = "spark.driver.extraJavaOptions", tmp_path / "classes.jsa"
    assert "Archive" not in sparkconf.launch_settings(bare(tmp_path), {}, [], None, archive)[options]
    archive.touch()
    own = bare(tmp_path, spark={options: "-Dx=1"})
    assert sparkconf.launch_settings(own, {}, [], None, archive)[options].startswith(
        f'-Dx=1 "-XX:SharedArchiveFile={archive}"'
    )
    theirs = {options: "-XX:SharedArchiveFile=/theirs"}
    assert options not in sparkconf.launch_settings(bare(tmp_path), theirs, [], None, archive)


@pytest.mark.parametrize("watches", ["-javaagent:/a.jar", "-agentlib:jdwp=server=y", "-XX:StartFlightRecording"])
def test_no_archive_is_mapped_where_an_agent_or_a_recorder_watches_the_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watches: str
) -> None:
    """It wants to see each class, and ends a JVM that has none to show, wherever it is told of: in the conf, in Spark's
    own defaults, or in the environment, as what watches a whole cluster is.
    """
    options, archive = "spark.driver.extraJavaOptions", tmp_path / "classes.jsa"
    archive.touch()
    own = bare(tmp_path, spark={options: f"-Dx=1 {watches}"})
    assert options not in sparkconf.launch_settings(own, {options: watches}, [], None, archive)
    assert sparkconf.launch_settings(own, {}, [], None, archive)[options] == f"-Dx=1 {watches}"
    theirs = {"spark.driver.defaultJavaOptions": watches}
    assert "Archive" not in sparkconf.launch_settings(bare(tmp_path), theirs, [], None, archive)[options]
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", watches)
    assert "Archive" not in sparkconf.launch_settings(bare(tmp_path), {}, [], None, archive)[options]


@pytest.mark.parametrize(("master", "is_local"), [("local[2]", True), ("yarn", False)])
def test_only_a_local_master_is_told_its_address_and_which_python_its_workers_are(
    tmp_path: Path, master: str, is_local: bool
) -> None:
    """It would look up the name of its host, which nobody may know, and start what PYSPARK_PYTHON names for other work;
    who works with other machines has an address, and an environment of theirs.
    """
    theirs = {"spark.master": master}
    where = {"SPARK_LOCAL_IP": "127.0.0.1"} if is_local else {}
    python = {"PYSPARK_PYTHON": sys.executable} if is_local else {}
    launched = sparkconf.launch_settings(bare(tmp_path, spark=theirs), {}, [], None)
    assert (sparkconf.address_variables(launched, {}), sparkconf.worker_variables(launched, {})) == (where, python)
    launched = sparkconf.launch_settings(bare(tmp_path), theirs, [], None)
    assert (sparkconf.address_variables(launched, theirs), sparkconf.worker_variables(launched, theirs)) == (
        where,
        python,
    )


def test_a_spark_home_of_another_spark_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither pyspark nor our JARs go with it, and `doctor` says so; of the same line and Scala it is a choice."""
    line = sparkline.installed()
    other, same = tmp_path / "other", tmp_path / "same"
    for home, core in ((other, "spark-core_2.12-3.3.1.jar"), (same, f"spark-core_{line.scala}-{line.name}.0.jar")):
        (home / "jars").mkdir(parents=True)
        (home / "jars" / core).touch()
    assert spark_home.choose(None, line) == spark_home.choose(str(other), line) == spark_home.bundled()
    for unusable in ("absent", "x" * 300):  # the second one cannot be looked at
        assert spark_home.choose(str(tmp_path / unusable), line) == spark_home.bundled()
        monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / unusable))
        assert session.spark_defaults() == {}
    assert spark_home.choose(str(same), line) == same
    monkeypatch.setenv("SPARK_HOME", str(other))
    assert probes.spark().endswith(f"; SPARK_HOME is ignored: {other} does not contain Spark {line.name}")
    monkeypatch.setenv("SPARK_HOME", str(same))
    assert "SPARK_HOME" not in probes.spark()


def test_a_disk_without_room_is_not_writable(tmp_path: Path) -> None:
    """An empty file says nothing: a full disk makes one, and takes no byte."""
    assert probes.lake(str(tmp_path), None).endswith("is writable")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(ConfigError, match="The lake cannot be written"):
            probes.lake(str(tmp_path), None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_the_doctor_cannot_look_at_is_a_finding_with_the_code_of_a_run(tmp_path: Path) -> None:
    """A name that the system refuses ends no look at the rest; brokers without a port are refused, as a run does."""
    long = str(tmp_path / ("x" * 300))
    with pytest.raises(ConfigError, match="The lake cannot be written: File name too long"):
        probes.lake(long, None)
    with pytest.raises(ConfigError, match="The folder cannot be read: File name too long"):
        probes.objects(long, None)
    with pytest.raises(ConfigError, match="The cache cannot be read: File name too long"):
        probes.jar_cache(Path(long), ["delta"])
    with pytest.raises(ConfigError, match="The folder cannot be read: No such file"):
        probes.objects(str(tmp_path / "absent"), None)
    assert probes.objects(str(tmp_path), None) == f"{tmp_path} exists"
    for brokers in ("broker", "127.0.0.1:9,broker", "broker:x"):
        with pytest.raises(ConfigError, match="is not host:port"):
            probes.kafka(brokers, {})
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:99999: not a host:port address"):
        probes.kafka("127.0.0.1:99999", {})
    with pytest.raises(Unreachable, match=r"PLAINTEXT://127\.0\.0\.1:9: Connection refused"):
        probes.kafka("PLAINTEXT://127.0.0.1:9", {})


def test_debug_and_a_users_own_log4j_keep_the_words_of_spark(tmp_path: Path) -> None:
    """Nothing is silenced where somebody wants to read."""
    own_log = {"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=mine"}
    assert "log4j2" not in sparkconf.launch_settings(bare(tmp_path), {}, [], None)["spark.driver.extraJavaOptions"]
    assert "spark.driver.extraJavaOptions" not in sparkconf.launch_settings(
        bare(tmp_path), own_log, [], tmp_path / "log"
    )


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[4]", 4), ("local[2,3]", 2), ("yarn", None)])
def test_a_local_master_has_cores_and_a_cluster_its_own_rule(master: str, cores: int | None) -> None:
    """Shuffle partitions follow the cores only where the driver does the work."""
    assert sparkconf.local_cores(master) == cores


def test_spark_defaults_are_read_as_spark_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key and value are separated by blanks, an equals sign or a colon; a backslash continues a line; comments do not
    count, and neither does a letter in another encoding.
    """
    text = "# caf\xe9\nspark.a  x y\nspark.b=z\n\nspark.c\nspark.d: e\nspark.jars = /a:b.jar,\\\n  /c.jar\n"
    (tmp_path / "spark-defaults.conf").write_text(text, encoding="latin-1")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    read = {"spark.a": "x y", "spark.b": "z", "spark.d": "e", "spark.jars": "/a:b.jar,/c.jar"}
    assert session.spark_defaults() == read


def logged() -> str:
    """What Spark's log has. Every JVM writes to it, and whichever fills it renames it, under the eyes of the others."""
    log = session.log_file(settings.bare(None).cache)
    return "".join(each.read_text(errors="replace") for each in log.parent.glob(f"{log.name}*"))


@pytest.mark.spark
def test_what_libraries_print_is_no_data_and_no_warning_of_ours(spark: SparkSession) -> None:
    """What a library prints in the JVM, as Hudi's do ("# WARNING: Unable to get Instrumentation"), goes where Spark's
    own words go: stdout is data, and stderr tells what somebody can fix.
    """
    printed = f"# WARNING: {uuid4()}"
    jvm: Any = spark.sparkContext._jvm
    jvm.java.lang.System.out.println(printed)
    assert printed in logged().splitlines()


@pytest.mark.spark
def test_an_exception_that_ends_a_thread_of_the_jvm_is_logged(spark: SparkSession) -> None:
    """Java would print its stack trace to stderr: one per partition for a `maintain` of a table that lost a file, since
    Delta interrupts the threads that compact the other partitions.
    """
    reason = f"interrupted {uuid4()}"
    jvm: Any = spark.sparkContext._jvm
    threads = jvm.java.lang
    ended = threads.InterruptedException(reason)
    threads.Thread.getDefaultUncaughtExceptionHandler().uncaughtException(threads.Thread(), ended)
    assert reason in logged()


def test_a_session_that_runs_without_a_formats_extension_is_refused() -> None:
    """Spark takes none later: without Hudi's, its tables would look empty."""
    session.refuse_missing_extension(("delta", "hudi"), f"{DELTA}, {HUDI}")
    with pytest.raises(ConfigError, match="without the session extension of hudi"):
        session.refuse_missing_extension(("delta", "hudi"), DELTA)
    with pytest.raises(ConfigError, match="of delta"):
        session.refuse_missing_extension(("delta",), None)
