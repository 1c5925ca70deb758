"""What goes to EMR and comes back, against moto: job runs, steps, their states and logs, secrets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from replicator import brokers
from replicator.aws import logs, secrets
from replicator.aws.cluster import Cluster
from replicator.aws.job import Job, serverless_request, steps
from replicator.aws.manifest import Manifest
from replicator.aws.s3_folder import S3Folder
from replicator.aws.serverless import Serverless
from replicator.cli import job as entry
from replicator.errors import ConfigError, ReplicatorError, Unreachable

REGION = "us-east-1"
ROLE = "arn:aws:iam::123456789012:role/replicator-bronze"
PACKED = Manifest("aws", {"x.whl": "a"})


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account of moto's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield


@pytest.fixture
def cluster(aws: None) -> Cluster:
    """A cluster that takes one step at a time."""
    made = boto3.client("emr", REGION).run_job_flow(
        Name="replicator",
        ReleaseLabel="emr-7.12.0",
        Instances={"KeepJobFlowAliveWhenNoSteps": True, "InstanceCount": 1, "MasterInstanceType": "m6i.xlarge"},
        JobFlowRole="i",
        ServiceRole="s",
    )
    return Cluster(made["JobFlowId"], REGION)


@pytest.fixture
def application(aws: None) -> Serverless:
    """An application of EMR Serverless."""
    made = boto3.client("emr-serverless", REGION).create_application(
        name="replicator", releaseLabel="emr-7.12.0", type="SPARK", clientToken="x"
    )
    return Serverless(made["applicationId"], REGION)


@pytest.fixture
def bucket(aws: None) -> S3Folder:
    """Where packages are."""
    boto3.client("s3", REGION).create_bucket(Bucket="artifacts")
    return S3Folder("s3://artifacts/replicator", REGION)


def jobs(*stages: Any) -> list[Job]:
    return [Job(stage, PACKED, f"s3://artifacts/replicator/{PACKED.id}") for stage in stages]


def test_a_stage_becomes_a_job_run(application: Serverless) -> None:
    """Started in its role, found in the list and by its id; moto's succeed at once."""
    [job] = jobs("bronze")
    request = serverless_request(job, application.application, ROLE, None, None)
    run = application.submit(request)
    found = application.run(run)
    assert (found.name, found.state, found.failed) == ("replicator bronze", "SUCCESS", False)
    assert found.ended is not None
    assert [each.id for each in application.runs(10)] == [run]
    told = boto3.client("emr-serverless", REGION).get_job_run(applicationId=application.application, jobRunId=run)
    assert told["jobRun"]["executionRole"] == ROLE
    assert told["jobRun"]["jobDriver"] == request["jobDriver"]


def test_a_run_that_was_cancelled_has_failed(application: Serverless) -> None:
    """With its end."""
    [job] = jobs("bronze")
    run = application.submit(serverless_request(job, application.application, ROLE, None, None))
    boto3.client("emr-serverless", REGION).cancel_job_run(applicationId=application.application, jobRunId=run)
    found = application.run(run)
    assert (found.failed, found.ended is not None) == (found.state in ("CANCELLED", "FAILED"), found.failed)
    assert found.state in ("CANCELLED", "CANCELLING")


def test_stages_become_steps_and_five_run_at_a_time(cluster: Cluster) -> None:
    """They are there in order, and each lets those behind it go on."""
    cluster.at_once(5)
    [call] = steps(jobs("bronze", "silver", "gold", "publish", "silver"), cluster.cluster, {})
    ids = cluster.submit(call)
    client = boto3.client("emr", REGION)
    assert client.describe_cluster(ClusterId=cluster.cluster)["Cluster"]["StepConcurrencyLevel"] == 5
    told = {each: client.describe_step(ClusterId=cluster.cluster, StepId=each)["Step"] for each in ids}
    assert [each["Name"].split()[1] for each in told.values()] == ["bronze", "silver", "gold", "publish", "silver"]
    assert {each["ActionOnFailure"] for each in told.values()} == {"CONTINUE"}
    assert {each.id for each in cluster.runs(10)} == set(ids)
    assert cluster.run(ids[0]).name == "replicator bronze"


def test_what_emr_refuses_is_a_mistake_of_ours(application: Serverless, cluster: Cluster) -> None:
    """A run or an application that is not there: exit code 2, with what to look at."""
    with pytest.raises(ConfigError, match="EMR Serverless refused the request"):
        application.run("00missing")
    with Stubber(cluster._client) as stub:
        stub.add_client_error("describe_step", "InvalidRequestException", "Step id 's-1' is not valid.", 400)
        with pytest.raises(ConfigError, match="EMR refused the request"):
            cluster.run("s-1")


def test_an_emr_that_is_busy_is_asked_again_later(application: Serverless) -> None:
    """Throttled for longer than the client is patient: exit code 3."""
    with Stubber(application._client) as stub:
        stub.add_client_error("get_job_run", "ThrottlingException", "slow down", 400)
        with pytest.raises(Unreachable, match="busy"):
            application.run("00f5")


@pytest.mark.parametrize(
    ("code", "status"), [("SlowDown", 503), ("InternalError", 500), ("502", 502), ("Throttling", 400), ("429", 429)]
)
def test_a_service_that_cannot_now_is_busy_whatever_its_code(bucket: S3Folder, code: str, status: int) -> None:
    """Each service has words of its own, and a gateway before it none: the answer's status tells, too."""
    with Stubber(bucket._client) as stub:
        stub.add_client_error("put_object", code, "Please reduce your request rate.", status)
        with pytest.raises(Unreachable, match=f"S3 is busy: {code}"):
            bucket.put("a", b"x")


def test_what_a_service_has_not_got_is_no_matter_of_trying_again(bucket: S3Folder) -> None:
    """NotImplemented is 501."""
    with Stubber(bucket._client) as stub:
        stub.add_client_error("put_object", "NotImplemented", "not here", 501)
        with pytest.raises(ConfigError, match="S3 refused the request"):
            bucket.put("a", b"x")


def test_a_file_that_s3_refuses_is_told_as_bytes_are(bucket: S3Folder, tmp_path: Path) -> None:
    """As a mistake of ours, in S3's words, and a busy S3 as one: boto3 wraps what it is told of files."""
    file = tmp_path / "a.jar"
    file.write_bytes(b"jar")
    with pytest.raises(ConfigError, match="S3 refused the request: NoSuchBucket"):
        S3Folder("s3://nowhere-at-all/x", REGION).put("a.jar", file)
    with Stubber(bucket._client) as stub:
        stub.add_client_error("put_object", "AccessDenied", "no", 403)
        with pytest.raises(ConfigError, match="S3 denied access: AccessDenied"):
            bucket.put("a.jar", file)
        stub.add_client_error("put_object", "SlowDown", "no", 503)
        with pytest.raises(Unreachable, match="S3 is busy"):
            bucket.put("a.jar", file)
    bucket.put("a.jar", file)
    assert bucket.get("a.jar") == b"jar"


def test_a_failed_run_tells_why(application: Serverless, cluster: Cluster) -> None:
    """EMR's own words, of a job run and of a step."""
    run = {
        "applicationId": "00f5",
        "jobRunId": "r",
        "arn": "a" * 60,
        "createdBy": ROLE,
        "executionRole": ROLE,
        "createdAt": 1,
        "updatedAt": 61,
        "releaseLabel": "emr-7.12.0",
        "state": "FAILED",
        "stateDetails": "no space left",
        "jobDriver": {"sparkSubmit": {"entryPoint": "s3://x"}},
    }
    with Stubber(application._client) as stub:
        stub.add_response("get_job_run", {"jobRun": run})
        found = application.run("r")
    assert (found.failed, found.reason, found.ended is not None) == (True, "no space left", True)
    status = {"State": "FAILED", "FailureDetails": {"Message": "exit code 1"}, "Timeline": {"CreationDateTime": 1}}
    step = {"Id": "s-1", "Name": "n", "Status": status}
    with Stubber(cluster._client) as stub:
        stub.add_response("describe_step", {"Step": step})
        told = cluster.run("s-1")
    assert (told.failed, told.reason, told.ended) == (True, "exit code 1", None)


def put(key: str, text: str) -> None:
    boto3.client("s3", REGION).put_object(Bucket="emr-logs", Key=key, Body=gzip.compress(text.encode()))


@pytest.fixture
def written(aws: None) -> S3Folder:
    """Where logs are."""
    boto3.client("s3", REGION).create_bucket(Bucket="emr-logs")
    return S3Folder("s3://emr-logs/emr", REGION)


def test_the_log_of_a_job_run_is_its_drivers(written: S3Folder) -> None:
    """Unpacked; what is not there yet is told, and is no empty log."""
    log = Serverless("00f5", REGION).log("r1", "stdout")
    with pytest.raises(ReplicatorError, match="no log yet"):
        logs.read_text(log, written)
    put("emr/applications/00f5/jobs/r1/SPARK_DRIVER/stdout.gz", "4 records\n")
    assert logs.read_text(log, written) == "4 records\n"


def test_the_log_of_a_run_that_was_tried_again_is_that_of_its_newest_attempt(written: S3Folder) -> None:
    """A continuous stage, which EMR Serverless starts again when it fails: each attempt has a folder of its own."""
    for attempt in ("1", "2", "10"):
        put(f"emr/applications/00f5/jobs/r1/attempts/{attempt}/SPARK_DRIVER/stderr.gz", f"attempt {attempt}\n")
        put(f"emr/applications/00f5/jobs/r1/attempts/{attempt}/SPARK_DRIVER/archived/stderr_1.gz", "older\n")
    assert logs.read_text(Serverless("00f5", REGION).log("r1", "stderr"), written) == "attempt 10\n"


def test_the_log_of_a_step_is_that_of_the_application_behind_it(written: S3Folder) -> None:
    """The step's own output names the application; an attempt's first container is the driver. Without one, that
    output.
    """
    log = Cluster("j-1", REGION).log("s-1", "stdout")
    put("emr/j-1/steps/s-1/stderr.gz", "cannot start\n")
    assert logs.read_text(log, written) == "cannot start\n"
    put("emr/j-1/steps/s-1/stderr.gz", "INFO Submitted application application_17_0042\n")
    for container, text in (("01_000001", "driver\n"), ("01_000002", "executor\n")):
        put(f"emr/j-1/containers/application_17_0042/container_17_0042_{container}/stdout.gz", text)
    assert logs.read_text(log, written) == "driver\n"
    put("emr/j-1/containers/application_17_0042/container_17_0042_02_000001/stdout.gz", "second attempt\n")
    assert logs.read_text(log, written) == "second attempt\n", "YARN starts a driver that fails once more"


@pytest.fixture
def secret(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret as database.yaml makes it."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    value = json.dumps({"username": "publisher", "password": "hunter2"})
    boto3.client("secretsmanager", REGION).create_secret(Name="replicator-publish", SecretString=value)


def test_variables_of_a_job_are_read_from_secrets(secret: None) -> None:
    """As submit wrote them; several keys of one secret are one question."""
    told = secrets.parse("USER_NAME=replicator-publish:username;PASSWORD=replicator-publish:password")
    assert secrets.read(told) == {"USER_NAME": "publisher", "PASSWORD": "hunter2"}


def test_secrets_that_are_not_there_are_told_without_their_neighbours(secret: None) -> None:
    """Which secret and which key; no value."""
    with pytest.raises(ConfigError, match="no key 'pasword'") as refused:
        secrets.read({"PASSWORD": "replicator-publish:pasword"})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ConfigError, match="ResourceNotFoundException"):
        secrets.read({"PASSWORD": "replicator-missing:password"})
    with pytest.raises(ConfigError, match="NAME=SECRET:KEY"):
        secrets.parse("PASSWORD")


@pytest.mark.parametrize("value", [None, True, {"a": 1}, [1], 1.5], ids=json.dumps)
def test_a_value_that_is_no_text_is_no_secret(secret: None, value: object) -> None:
    """A null would become the password `None`, and worse, the key of a hash; whole numbers have one text."""
    client = boto3.client("secretsmanager", REGION)
    client.put_secret_value(SecretId="replicator-publish", SecretString=json.dumps({"hash_key": value, "port": 5432}))
    with pytest.raises(ConfigError, match="'hash_key' is neither a text nor a whole number"):
        secrets.read({"HASH_KEY": "replicator-publish:hash_key"})
    assert secrets.read({"PORT": "replicator-publish:port"}) == {"PORT": "5432"}


def test_a_job_has_its_secrets_before_it_reads_its_configuration(
    secret: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the job's own file asks for is set when the stage's command line begins."""
    seen: dict[str, str] = {}

    def command_line(prepare: Callable[[], None]) -> None:
        import os

        prepare()
        seen["password"] = os.environ["WAREHOUSE_PASSWORD"]

    monkeypatch.setattr(entry, "main", command_line)
    monkeypatch.setattr("sys.argv", ["publish.py", "--env", "aws"])
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "")
    monkeypatch.setenv("REPLICATOR_SECRETS", "WAREHOUSE_PASSWORD=replicator-publish:password")
    entry.submit("publish")
    assert seen == {"password": "hunter2"}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("WAREHOUSE_PASSWORD", "not a list of NAME=SECRET:KEY"),
        ("WAREHOUSE_PASSWORD=replicator-missing:password", "Secrets Manager refused the request"),
    ],
)
def test_a_job_without_its_secrets_ends_as_other_verbs_do(
    secret: None, wanted: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one sentence and its exit code; 1 would say that a table stopped."""
    monkeypatch.setattr("sys.argv", ["publish.py", "--env", "aws"])
    monkeypatch.setenv("REPLICATOR_SECRETS", wanted)
    with pytest.raises(SystemExit) as end:
        entry.submit("publish")
    assert (end.value.code, says in capsys.readouterr().err) == (2, True)


def test_a_kafka_client_without_the_login_to_msk_is_told_where_there_is_one() -> None:
    """On a laptop its class is missing, whatever the options: to fix them does not help."""
    why = "Class software.amazon.msk.auth.iam.IAMClientCallbackHandler could not be found."
    told = brokers.startup_error(ValueError(why), "b-1.example:9098")
    assert "could not be found" in told.what
    assert told.fix == "Only stages on EMR have the login to MSK, from `replicator aws package`."
    assert "Fix the `options` of Kafka" in str(brokers.startup_error(ValueError("no such keystore"), "b:9092").fix)


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"])
def test_keys_that_s3_does_not_take_are_told_as_such(bucket: S3Folder, code: str) -> None:
    """By S3's own codes, which other services spell otherwise: not as a fault of the bucket."""
    with Stubber(bucket._client) as stub:
        stub.add_client_error("get_object", code, "no", 400)
        with pytest.raises(ConfigError, match=f"S3 denied access: {code}") as raised:
            bucket.get("current")
    assert str(raised.value.fix).startswith("Check credentials and permissions")
