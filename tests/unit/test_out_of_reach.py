"""What failed below Spark for want of an answer is no table's fault (reliability.md F-O1)."""

from __future__ import annotations

import re
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, NoReturn, cast

import boto3
import pytest
from botocore.exceptions import CredentialRetrievalError, MetadataRetrievalError
from botocore.utils import ContainerMetadataFetcher
from pydantic import SecretStr
from pyspark.errors import PySparkException, StreamingQueryException

from replicator import cli, session
from replicator.catalog import athena, store
from replicator.catalog.read_errors import translate_read_errors
from replicator.cli import probes
from replicator.config.settingkeys import S3Keys
from replicator.errors import ConfigError, ReplicatorError, StoreRefused, TableStopped, Unreachable, exit_code
from replicator.jvm import causes, hadoop
from replicator.s3 import access_error, client, read_error, translate_errors
from replicator.spec import Table
from replicator.stages import engine_errors
from replicator.stages.ingest import bronze_stream
from replicator.stages.models import refresh_plan, refresh_reasons
from replicator.stages.models.refresh_plan import Task

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import SparkSession

BUSY = "org.apache.hadoop.fs.s3a.AWSServiceThrottledException: PUT on s3a://b/k: Please reduce your request rate."
JOB = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0 in stage"
)
NO_ANSWER = {
    "a throttled commit": BUSY,
    "a task that was": f"{JOB} 1.0 (TID 1): {BUSY}",
    "an address where nobody is": "org.apache.spark.SparkException: x\\nCaused by: java.net.ConnectException: refused",
    "a connection that broke": "com.amazonaws.SdkClientException: Unable to execute HTTP request: Connection reset",
    "a server that fails": "Caused by: org.apache.hadoop.fs.s3a.AWSStatus500Exception: PUT on s3a://b/k",
}
OF_THE_TABLE = {
    "a value": "org.apache.spark.SparkNumberFormatException: The value 'ConnectException' is no INT",
    "a function": "java.net.SocketException: Connection reset\\n at org.apache.spark.api.python.PythonRunner",
    "a right": "java.nio.file.AccessDeniedException: s3a://b/k: Status Code: 403",
}


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("AWS_PROFILE", "nobody", r"profile \(nobody\) could not be found"),
        ("AWS_PROFILE", "", r"profile \(\) could not be found"),
        ("AWS_CONFIG_FILE", __file__, "Unable to parse config file"),
    ],
)
def test_awss_own_settings_that_are_none_are_a_mistake_of_the_configuration(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str
) -> None:
    """Exit code 2 with what is to be corrected, also where keys are given, which fix nothing: not 1 as of a table that
    stopped, nobody was asked yet.
    """
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers what it has read
    monkeypatch.setenv(variable, value)
    for keys in (None, S3Keys(access_key=SecretStr("a"), secret_key=SecretStr("b"))):
        with pytest.raises(ConfigError, match=f"{told}.* Correct or unset AWS_PROFILE, AWS_CONFIG_FILE") as caught:
            client(keys)
        assert "Give" not in str(caught.value)


@pytest.mark.parametrize("bucket", ["my+bucket", "bücket", "a b"])
def test_a_name_that_no_bucket_can_have_is_a_mistake_of_the_configuration(bucket: str) -> None:
    """It was reported as a store that does not answer, with exit code 3: "try again"."""
    root, keys = f"s3a://{bucket}/lake", S3Keys(access_key=SecretStr("a"), secret_key=SecretStr("b"))
    for probe in (probes.lake, probes.objects):
        told = f"invalid address in an object store: Invalid bucket name .{re.escape(bucket)}"
        with pytest.raises(ConfigError, match=told) as caught:
            probe(root, keys)
        assert "regex" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("AWS_DEFAULT_REGION", "eu west 1", "eu west 1"),
        ("AWS_ENDPOINT_URL", "nonsense", "Invalid endpoint: nonsense"),
        ("AWS_DEFAULTS_MODE", "zzz", "zzz"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/", "Unsupported host"),
    ],
)
def test_no_setting_of_awss_that_is_none_is_a_silent_store(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str
) -> None:
    """Exit code 2: whoever waits and tries again waits for ever."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # as above
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"cannot create a client .*{told}.* Correct or unset"):
        client(None)


def test_a_region_that_is_none_is_a_mistake_of_the_configuration() -> None:
    """The one of `s3` as well."""
    with pytest.raises(ConfigError, match=r"eu west 1.*s3\.region"):
        client(S3Keys(region="eu west 1", access_key=SecretStr("a"), secret_key=SecretStr("b")))


def test_an_agent_that_is_silent_for_a_moment_is_worth_another_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3: a container's credentials come from one, which a scheduler waits for."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # as above
    monkeypatch.setattr(ContainerMetadataFetcher, "SLEEP_TIME", 0)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/")
    with pytest.raises(Unreachable, match=r"credentials.*127\.0\.0\.1:9"):
        client(None)
    with pytest.raises(Unreachable, match=r"credentials.*127\.0\.0\.1:9"):
        athena.client(athena.AthenaSettings(region="us-east-1"))


def test_credentials_that_an_agent_does_not_renew_amid_the_work_are_worth_another_try() -> None:
    """The same once the store has been asked; of a program that fails to give them nobody knows that."""
    for cause, kind in ((MetadataRetrievalError(error_msg="timed out"), Unreachable), (None, ConfigError)):
        error = CredentialRetrievalError(provider="here", error_msg="no")
        error.__context__ = cause  # as botocore's `raise` amid an `except` leaves it
        with pytest.raises(kind, match="credentials from here"), translate_errors("s3a://b/k", "read", "Check it."):
            raise error


NO = "com.amazonaws.services.s3.model.AmazonS3Exception: No (Service: Amazon S3; Status Code: 403; Error Code: "
REFUSED = {
    "keys that do not hold": f"java.nio.file.AccessDeniedException: s3a://b/k: getFileStatus: {NO}403 Forbidden;)",
    "a task that was refused": f"{JOB} 1.0 (TID 1): java.nio.file.AccessDeniedException: s3a://b/k: {NO}AccessDenied;)",
    "a token that ran out": "AmazonS3Exception: (Service: Amazon S3; Status Code: 400; Error Code: ExpiredToken;)",
}
NO_BUCKET = "AmazonS3Exception: No (Service: Amazon S3; Status Code: 404; Error Code: NoSuchBucket; Proxy: null)"


class FromStream(Exception):
    """As Spark's own: the causes are not in its text."""

    def __init__(self, trace: str) -> None:
        super().__init__("[STREAM_FAILED] Query terminated with exception")
        self.stackTrace = trace


@pytest.mark.parametrize("told", NO_ANSWER.values(), ids=NO_ANSWER)
def test_silence_below_spark_ends_the_run_and_is_worth_another_try(told: str) -> None:
    """Out of a table's work it is raised: the next table would wait as long for the same."""
    for error in (RuntimeError(told), FromStream(told)):
        assert causes.is_unreachable(error)
        with pytest.raises(Unreachable, match="does not answer") as caught:
            engine_errors.to_table_error(error, "shop/shop.orders")
        assert (caught.value.exit_code, caught.value.where) == (3, "shop/shop.orders")


@pytest.mark.parametrize("told", REFUSED.values(), ids=REFUSED)
def test_keys_that_a_store_refuses_amid_a_tables_work_are_no_tables_fault(told: str) -> None:
    """Out of a table's work they are raised, with the settings to check; none is looked at anew, or behind it."""
    for error in (RuntimeError(told), FromStream(told)):
        with pytest.raises(
            StoreRefused, match=r"denied access to the driver: .* Check that `s3[.]access_key`.* bucket exists"
        ) as caught:
            engine_errors.to_table_error(error, "shop/shop.orders")
        assert (caught.value.exit_code, caught.value.where) == (2, "shop/shop.orders")
        with pytest.raises(type(error)):
            refresh_plan.fall_back_to_full(Task("incremental", refresh_reasons.UNMOVED), error)
    stopped = bronze_stream.translate(StreamingQueryException(told), "shop")
    assert isinstance(stopped, StoreRefused)


def test_a_bucket_that_is_not_there_is_told_as_such() -> None:
    """With what names it. Where only a trace of Spark's says so, it is one of the things to check."""
    for error, said in (
        (RuntimeError(NO_BUCKET), "a bucket does not exist: .* Create it"),
        (FromStream(NO_BUCKET), "bucket exists"),
    ):
        with pytest.raises(StoreRefused, match=said):
            engine_errors.to_table_error(error, "shop/shop.orders")
    assert str(access_error(NO_BUCKET, "s3a://lost/lake")).startswith(
        "bucket lost does not exist [s3a://lost/lake] Create it"
    )


def test_a_run_that_a_store_refused_ends_as_one_with_a_wrong_setting() -> None:
    """Where it was told as some table's, too; a table that stopped for itself counts more."""
    refused = access_error("403", "shop/shop.orders")
    assert exit_code([refused, refused]) == 2
    assert exit_code([refused, TableStopped("bad")]) == 1


@pytest.mark.parametrize("told", OF_THE_TABLE.values(), ids=OF_THE_TABLE)
def test_what_another_try_would_not_cure_stops_its_table(told: str) -> None:
    """A bad value, a function that died, a missing right: exit code 1, and the others go on."""
    assert not causes.is_unreachable(RuntimeError(told))
    stopped = engine_errors.to_table_error(RuntimeError(told), "shop/shop.orders")
    assert isinstance(stopped, TableStopped)
    assert stopped.exit_code == 1


def test_a_stream_whose_login_came_too_fast_is_worth_another_try() -> None:
    """A small broker of MSK takes one a second by IAM, and refuses others as it does wrong ones."""
    told = "org.apache.kafka.common.errors.SaslAuthenticationException: [1a2b3c]: Too many connects"
    assert isinstance(bronze_stream.translate(StreamingQueryException(told), "shop"), Unreachable)


def test_a_full_disk_is_told_with_how_to_fix_it() -> None:
    """The first line of Java's error says neither which disk, nor what to do."""
    full = RuntimeError(f"{JOB} 1.0 (TID 1): java.io.IOException: No space left on device")
    stopped = engine_errors.to_table_error(full, "shop/shop.orders")
    failed = bronze_stream.translate(StreamingQueryException("java.io.IOException: No space left on device"), "shop")
    assert all(str(error.fix).startswith("Free disk space") for error in (stopped, failed))


@pytest.mark.parametrize(("told", "code", "fix"), [
    ("java.io.IOException: No space left on device", 1, "Free disk space for the lake and Spark's"),
    ("java.io.IOException: File too large", 1, "Allow the driver's user to write larger files"),
    ("x.AmazonS3Exception: No (Service: Amazon S3; Status Code: 403; Error Code: 403 Forbidden)", 2, "Check that `s3"),
    ("x.AmazonS3Exception: No (Service: Amazon S3; Status Code: 404; Error Code: NoSuchBucket; Proxy)", 2, "Create it"),
])  # fmt: skip
def test_a_failure_that_no_table_met_is_fixed_alike(
    told: str, code: int, fix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's temporary folder may be full before there is work; keys may run out, or a bucket be deleted, while a run
    looks for news.
    """

    def failing(*_: object, **__: object) -> NoReturn:
        raise RuntimeError(told)

    monkeypatch.setattr(cli, "app", failing)
    monkeypatch.setattr(cli.stdout, "that_may_close", nullcontext)
    with pytest.raises(SystemExit, match=str(code)):
        cli._main(None)
    assert re.search(f"{re.escape(told)}.* {fix}", capsys.readouterr().err)


@pytest.mark.parametrize(("told", "error"), [
    ("AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2 operation: no (Request ID: 1)", ConfigError),
    ("AWS Error ACCESS_DENIED during HeadObject operation: No response body.", ConfigError),
    ("Kernel error -> The operation lacked the necessary privileges to complete for path t/_delta_log", ConfigError),
    ("AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: no (Request ID: 1)", ConfigError),
    ("AWS Error SLOW_DOWN during ListObjectsV2 operation: less", Unreachable),
])  # fmt: skip
def test_a_store_that_lets_nobody_in_is_no_store_that_does_not_answer(told: str, error: type[ReplicatorError]) -> None:
    """Without Spark, too: to try again later does not help."""
    assert isinstance(store.read_error("s3a://b/lake", OSError(told)), error)


@pytest.mark.parametrize(("status", "error"), [(403, ConfigError), (503, Unreachable)])
def test_nor_is_it_one_to_hadoops_client(status: int, error: type[ReplicatorError]) -> None:
    """A checkpoint in it is not damaged, and no lake is gone."""
    told = f"getFileStatus on s3a://b/x: x.AmazonS3Exception: No (Service: Amazon S3; Status Code: {status}; Error)"

    class Java(Exception):
        java_exception = SimpleNamespace(getMessage=lambda: told)

    assert isinstance(hadoop.read_error("s3a://b/x", cast("Py4JJavaError", Java(told))), error)


@pytest.mark.parametrize("said", [None, "", "\n"])
def test_an_error_that_says_nothing_is_told_by_its_name(said: str | None) -> None:
    """As an interrupted read of Java's does, or one of pyarrow's whose store cut the answer off."""
    kind = SimpleNamespace(getName=lambda: "java.io.InterruptedIOException")

    class Java(Exception):
        java_exception = SimpleNamespace(getMessage=lambda: said, getClass=lambda: kind)

    told = hadoop.read_error("s3a://b/x", cast("Py4JJavaError", Java()))
    assert "does not answer: java.io.InterruptedIOException" in str(told)
    assert "does not answer: OSError" in str(store.read_error("s3a://b/x", OSError(said or "")))


@pytest.mark.parametrize("why", ["Permission denied", "Read-only file system", "Too many open files"])
def test_a_file_that_nobody_may_touch_is_not_lost(why: str) -> None:
    """Java calls it not found, too; nothing is to be removed for that."""
    told = f"java.io.FileNotFoundException: /lake/silver/s/d.t/.part-0.c000.zstd.parquet.crc ({why})"
    assert str(engine_errors.to_table_error(RuntimeError(told), "s/d.t").fix).startswith("Give the driver's user")


@pytest.mark.parametrize(("file", "fix"), [
    ("file:/my lake/gold/fact/part-0.c000.zstd.parquet", "remove the folder /my lake/gold/fact: .* from its inputs"),
    ("s3a://b/gold/silver/s/d.t/c=1/d=/x.parquet", "remove the folder s3a://b/gold/silver/s/d.t: .* from bronze"),
    ("file:/lake/history/s/d.t/_change_data/cdc-0.parquet", "remove the folder /lake/history/s/d.t: .* from bronze"),
    ("file:/lake/silver/s/d.t/_delta_log/00000000000000000001.json", "remove the folder /lake/silver/s/d.t: "),
    ("file:/lake/twins/hudi/s/d.t/x.parquet", "remove the folder /lake/twins/hudi/s/d.t: .* from its table"),
    ("file:/lake/bronze/s/topic=s.d.t/part-0.parquet", "from a copy of the lake; without one docs/operate.md"),
    ("/local/blockmgr-1/0c/part-0.parquet", "^None$"),
])  # fmt: skip
def test_a_table_that_lost_a_file_is_told_with_what_makes_it_anew(file: str, fix: str) -> None:
    """By the file's place in the lake: bronze alone is made of nothing that the lake has."""
    stopped = engine_errors.to_table_error(
        RuntimeError(f"java.io.FileNotFoundException: File {file} does not exist"), "a model"
    )
    assert re.search(fix, str(stopped.fix))


def test_of_a_trace_of_pythons_the_last_line_tells_what_happened() -> None:
    """It is the only one that does: the first is the same for all of them."""
    trace = (
        'org.x.PythonException: Traceback (most recent call last):\n  File "w.py", line 1\nValueError: no such day.\n'
    )
    assert causes.summarize(RuntimeError(trace)) == "RuntimeError: ValueError: no such day"
    assert causes.summarize(RuntimeError("\n first \n second")) == "RuntimeError: first"
    assert causes.summarize(RuntimeError()) == "RuntimeError"


def test_an_error_of_ours_with_one_of_javas_behind_it_tells_that_one() -> None:
    """py4j's own words name a call, and nothing of what happened."""

    class Java(Exception):
        java_exception = SimpleNamespace(toString=lambda: "java.io.IOException: why", getCause=lambda: None)

    error = Unreachable("it does not answer")
    error.__cause__ = Java("An error occurred while calling o1.exists")
    assert causes.summarize(error) == "java.io.IOException: why"


class Unstarted(PySparkException):
    """As Spark's own, of a context that was not made: its cause is Java's."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self._origin = SimpleNamespace(getCause=lambda: None, toString=lambda: cause)


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("java.lang.IllegalArgumentException: spark.sql.shuffle.partitions should be int, but was many", ConfigError),
        ("org.apache.spark.SparkException: Could not parse Master URL: 'local[two]'", ConfigError),
        ("java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.", Unreachable),
        (
            "java.lang.IllegalArgumentException: requirement failed: Can only call x on a running MetricsSystem",
            Unreachable,
        ),
        ("org.apache.spark.SparkException: Yarn application has already ended! It might have been killed", Unreachable),
        ("java.io.IOException: No space left on device", Unstarted),
        (NO_BUCKET, Unstarted),
        (BUSY, Unstarted),
    ],
)
def test_what_spark_does_not_start_with_is_a_setting_a_cluster_or_told_as_elsewhere(
    cause: str, told: type[Exception]
) -> None:
    """A standalone cluster that takes no driver stops the context while it is made, and what falls over then differs;
    a full disk, and a store that refuses or is silent, are told and fixed as anywhere else.
    """

    def failing() -> NoReturn:
        raise Unstarted(cause)

    with pytest.raises(told) as caught:
        session._build(cast("SparkSession.Builder", SimpleNamespace(getOrCreate=failing)))
    assert type(caught.value) is told


@pytest.mark.parametrize(
    ("why", "is_known"),
    [
        ("NoAuthWithAWSException: No AWS Credentials provided by TemporaryAWSCredentialsProvider", True),
        ("Generic S3 error\n Error performing PUT http://169.254.169.254/latest/api/token in 5 ms", True),
        ("Generic S3 error\n Error performing GET http://127.0.0.1:9000/lake in 5 ms", False),
    ],
)
def test_a_client_that_reads_no_profiles_is_told_where_it_finds_credentials(why: str, is_known: bool) -> None:
    """Hadoop's client and delta-rs; boto3, which took the lease, knows them: to check the lake's root does not help."""
    assert ("export those of a profile" in str(read_error(why, "s3a://lake/x", is_refused=False).fix)) is is_known
    with pytest.raises(ReplicatorError) as raised, translate_read_errors(Table("t", "s3a://lake/t")):
        raise OSError(why)
    assert ("export those of a profile" in str(raised.value.fix)) is is_known
