"""``replicator aws``: what it prints and with which exit code it ends, over the configuration of scenario 5."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from replicator.aws import archive, s3_folder, s3_sink
from replicator.aws.manifest import MANIFEST, Manifest
from replicator.errors import ConfigError
from tests import readme
from tests.cli import said

ROOT = Path(__file__).parents[2]
REGION = "ap-southeast-2"
AT = ("--env", "aws", "--conf", str(ROOT / "conf/aws"))
ROLE = "arn:aws:iam::123456789012:role/replicator-{}"


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A package in a folder, as `replicator aws package` leaves it."""
    folder = tmp_path / "package"
    for name in ("lakehouse_replicator-1-py3-none-any.whl", "jobs/bronze.py", "jars/postgresql.jar", "bootstrap.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    made = Manifest("aws", archive.checksums(folder))
    (folder / MANIFEST).write_text(made.text(), encoding="utf-8")
    return folder


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """What the stacks of infra/aws put out, as docs/aws.md sets it: nothing of EMR yet."""
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("ARTIFACTS", "s3://replicator-artifacts/replicator")
    monkeypatch.setenv("LOGS", "s3://replicator-emr-logs/emr")
    for stage in ("bronze", "silver", "gold", "publish"):
        monkeypatch.setenv(f"{stage.upper()}_ROLE", ROLE.format(stage))
    return monkeypatch


@pytest.fixture
def account(stacks: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The same, with an account of moto's and its buckets."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        stacks.setenv(name, "testing")
    with mock_aws():
        for bucket in ("replicator-artifacts", "replicator-emr-logs"):
            where = {"LocationConstraint": REGION}
            boto3.client("s3", region_name=REGION).create_bucket(Bucket=bucket, CreateBucketConfiguration=where)
        yield stacks


def calls(text: str) -> list[dict[str, Any]]:
    """JSON values, one behind the other."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += 1
    return found


def test_a_dry_run_prints_the_exact_call_and_asks_nobody(stacks: pytest.MonkeyPatch, packed: Path) -> None:
    """Without credentials, from a package in a folder: sizes of the configuration, the role of the stage."""
    stacks.setenv("EMR_APPLICATION", "00f5abc")
    [call] = calls(said("aws", "submit", "silver", "--dry-run", "--package", str(packed), *AT))
    assert (call["service"], call["call"]) == ("emr-serverless", "start_job_run")
    asked = call["arguments"]
    assert (asked["applicationId"], asked["executionRoleArn"]) == ("00f5abc", ROLE.format("silver"))
    submit = asked["jobDriver"]["sparkSubmit"]
    made = Manifest.told((packed / MANIFEST).read_text(encoding="utf-8"), "x")
    assert submit["entryPoint"] == f"s3://replicator-artifacts/replicator/{made.id}/jobs/silver.py"
    assert "--conf spark.executor.memory=14g" in submit["sparkSubmitParameters"]
    assert "/usr/lib/hudi/hudi-spark-bundle.jar" in submit["sparkSubmitParameters"]
    assert "SECRETS" not in submit["sparkSubmitParameters"]


def test_feeds_are_a_stage_in_a_role_of_its_own(stacks: pytest.MonkeyPatch, packed: Path) -> None:
    """Whoever has feeds says in which role; a cluster takes the step without one too."""
    stacks.setenv("EMR_APPLICATION", "00f5abc")
    submit = ("aws", "submit", "canonical", "--dry-run", "--package", str(packed), *AT)
    with pytest.raises(ConfigError, match=r"aws\.roles\.canonical is not set"):
        said(*submit)
    stacks.setenv("CANONICAL_ROLE", ROLE.format("canonical"))
    [call] = calls(said(*submit))
    asked = call["arguments"]
    assert asked["executionRoleArn"] == ROLE.format("canonical")
    assert asked["jobDriver"]["sparkSubmit"]["entryPoint"].endswith("/jobs/canonical.py")
    stacks.setenv("EMR_APPLICATION", "")
    stacks.setenv("EMR_CLUSTER", "j-3KVXXXXXXX7UG")
    [call] = calls(said(*submit))
    [step] = call["arguments"]["Steps"]
    assert any(word.endswith("/jobs/canonical.py") for word in step["HadoopJarStep"]["Args"])


def test_a_secret_goes_to_the_stage_whose_role_may_read_it(stacks: pytest.MonkeyPatch, packed: Path) -> None:
    """By its name, and to no other stage: those would be refused when they begin."""
    stacks.setenv("EMR_CLUSTER", "j-3KVXXXXXXX7UG")
    stages = ("bronze", "silver", "gold", "publish")
    _, *added = calls(said("aws", "steps", *stages, "--dry-run", "--package", str(packed), *AT))
    variable = "spark.yarn.appMasterEnv.REPLICATOR_SECRETS=WAREHOUSE_PASSWORD=replicator-publish:password"
    words = [each["arguments"]["Steps"][0]["HadoopJarStep"]["Args"] for each in added]
    assert [variable in each for each in words] == [False, False, False, True]


def test_a_dry_run_of_steps_prints_every_call(stacks: pytest.MonkeyPatch, packed: Path) -> None:
    """First how many run at a time, then the stages, each in its role."""
    stacks.setenv("EMR_CLUSTER", "j-3KVXXXXXXX7UG")
    told = calls(said("aws", "steps", "bronze", "silver", "gold", "--dry-run", "--package", str(packed), *AT))
    assert [each["call"] for each in told] == ["modify_cluster", *["add_job_flow_steps"] * 3]
    assert told[0]["arguments"] == {"ClusterId": "j-3KVXXXXXXX7UG", "StepConcurrencyLevel": 5}
    assert [each["arguments"]["ExecutionRoleArn"] for each in told[1:]] == [
        ROLE.format(stage) for stage in ("bronze", "silver", "gold")
    ]


def test_more_than_five_at_once_is_a_mistake_of_usage(stacks: pytest.MonkeyPatch) -> None:
    """The limit of scenario 5."""
    said("aws", "steps", "bronze", "--at-once", "6", *AT, code=2)


def test_a_stage_goes_to_emr_serverless_and_is_looked_at(account: pytest.MonkeyPatch, packed: Path) -> None:
    """The current package is taken; its id is printed, and status knows it."""
    client = boto3.client("emr-serverless", region_name=REGION)
    made = client.create_application(name="x", releaseLabel="emr-7.12.0", type="SPARK", clientToken="x")
    account.setenv("EMR_APPLICATION", made["applicationId"])
    found = Manifest.told((packed / MANIFEST).read_text(encoding="utf-8"), "x")
    s3_folder.upload(packed, found, s3_folder.S3Folder("s3://replicator-artifacts/replicator", REGION), lambda _: None)
    run = said("aws", "submit", "gold", *AT).strip()
    assert client.get_job_run(applicationId=made["applicationId"], jobRunId=run)["jobRun"]["name"] == "replicator gold"
    [told] = json.loads(said("aws", "status", run, "--json", *AT))
    assert (told["id"], told["name"], told["state"]) == (run, "replicator gold", "SUCCESS")
    assert run in said("aws", "status", *AT)


def test_stages_go_to_a_cluster_as_steps(account: pytest.MonkeyPatch, packed: Path) -> None:
    """One stage by submit, several by steps; ids come in order."""
    client = boto3.client("emr", region_name=REGION)
    size = {"KeepJobFlowAliveWhenNoSteps": True, "InstanceCount": 1, "MasterInstanceType": "m6i.xlarge"}
    cluster = client.run_job_flow(Name="x", ReleaseLabel="emr-7.12.0", Instances=size, JobFlowRole="i", ServiceRole="s")
    account.setenv("EMR_CLUSTER", cluster["JobFlowId"])
    ids = [said("aws", "submit", "bronze", "--package", str(packed), *AT).strip()]
    ids += said("aws", "steps", "silver", "gold", "--at-once", "3", "--package", str(packed), *AT).split()
    told = {each["id"]: each["name"] for each in json.loads(said("aws", "status", "--json", *AT))}
    assert [told[each] for each in ids] == ["replicator bronze", "replicator silver", "replicator gold"]
    assert client.describe_cluster(ClusterId=cluster["JobFlowId"])["Cluster"]["StepConcurrencyLevel"] == 3


def test_the_log_of_a_run_is_printed(account: pytest.MonkeyPatch) -> None:
    """As it is, on stdout."""
    account.setenv("EMR_APPLICATION", "00f5abc")
    key = "emr/applications/00f5abc/jobs/r1/SPARK_DRIVER/stderr.gz"
    boto3.client("s3", region_name=REGION).put_object(Bucket="replicator-emr-logs", Key=key, Body=b"one\ntwo\n")
    assert said("aws", "logs", "r1", *AT) == "one\ntwo\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("submit", "bronze"), "aws.application is not set"),
        (("steps", "bronze"), "aws.cluster is not set"),
        (("status",), "aws.application is not set"),
        (("render", "sink", "--bucket", "landing"), "BUCKET/PREFIX"),
        (("render", "ui", "--source", "mks"), "msk"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_missing_is_named(
    arguments: tuple[str, ...], says: str, stacks: pytest.MonkeyPatch, packed: Path
) -> None:
    """The key, the flag or the nearest name; nobody is asked before."""
    with_package = ("--package", str(packed)) if arguments[0] in ("submit", "steps") else ()
    with pytest.raises(ConfigError, match=says):
        said("aws", *arguments, *with_package, *AT)


@pytest.mark.parametrize(("name", "says"), [("", "contains no package"), ("none", "none is not a package")])
def test_a_folder_without_a_package_is_refused_before_anybody_is_asked(
    name: str, says: str, stacks: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No credentials are needed to see that; nor is a folder that is not there looked for on S3."""
    stacks.setenv("EMR_APPLICATION", "00f5abc")
    with pytest.raises(ConfigError, match=f"{says}.* Give the id of an uploaded one"):
        said("aws", "submit", "gold", "--dry-run", "--package", str(tmp_path / name), *AT, code=2)


def test_a_package_of_another_environment_is_refused(stacks: pytest.MonkeyPatch, packed: Path) -> None:
    """Its configuration is another one; and an environment that is not for EMR has no packages."""
    files = Manifest.told((packed / MANIFEST).read_text(encoding="utf-8"), "x").files
    (packed / MANIFEST).write_text(Manifest("prod", files).text(), encoding="utf-8")
    stacks.setenv("EMR_APPLICATION", "00f5abc")
    with pytest.raises(ConfigError, match="'prod'"):
        said("aws", "submit", "gold", "--dry-run", "--package", str(packed), *AT)
    with pytest.raises(ConfigError, match="not for EMR"):
        said("aws", "submit", "gold", "--dry-run", "--env", "demo", "--conf", str(ROOT / "conf"))


@pytest.mark.parametrize(
    ("part", "first"),
    [
        ("spark", "kafka.security.protocol=SASL_SSL"),
        ("client", "security.protocol=SASL_SSL"),
        ("worker", "key.converter=org.apache.kafka.connect.json.JsonConverter"),
        ("ui", "KAFKA_CLUSTERS_0_NAME=msk"),
    ],
)
def test_render_prints_a_file(part: str, first: str) -> None:
    """What goes to Spark, Kafka's tools, a worker, Kafka UI."""
    assert said("aws", "render", part, *AT).splitlines()[0] == first


def test_render_prints_the_connector_of_a_source() -> None:
    """As its file in conf/sources describes it; the password stays a reference."""
    made = json.loads(said("aws", "render", "connector", *AT))
    assert (made["topic.prefix"], made["database.dbname"], made["database.sslmode"]) == ("msk", "devdb", "require")
    assert made["database.password"] == "${secretsmanager:replicator-debezium:password}"
    assert made["config.action.reload"] == "none"
    with pytest.raises(ConfigError, match="how it is captured"):
        said("aws", "render", "connector", "--env", "local", "--conf", str(ROOT / "conf/star"))


def test_render_prints_the_sink_of_a_source() -> None:
    """Topics and columns that divide are those of its file in conf/sources; one without tables has no sink."""
    made = json.loads(said("aws", "render", "sink", "--bucket", "landing/cdc-events", *AT))
    assert made["topics"] == "msk.datalake.cdc_events"
    assert made["connect.s3.kcql"].startswith("INSERT INTO landing:cdc-events SELECT * FROM `msk.datalake.cdc_events`")
    with pytest.raises(ConfigError, match="lists no tables"):
        s3_sink.connector_config("msk", {}, "landing", "cdc-events", REGION)
    several = s3_sink.connector_config("shop", {"a.b": (), "a.c": ("id",)}, "landing", "p", REGION)
    assert several["topics"] == "shop.a.b,shop.a.c"
    first, second = several["connect.s3.kcql"].split(";")
    assert ("PARTITIONBY" in first, "PARTITIONBY id" in second) == (False, True)
    odd = s3_sink.connector_config("shop", {"a.order lines": ()}, "landing", "p", REGION)
    assert (odd["topics"], "`shop.a.order_lines`" in odd["connect.s3.kcql"]) == ("shop.a.order_lines", True)


def test_the_configuration_of_the_scenario_logs_in_as_render_says() -> None:
    """conf/aws has the four options that `replicator aws render client` prints."""
    from replicator import settings

    configured = settings.load(ROOT / "conf/aws", "aws", {})
    told = dict(line.split("=", 1) for line in said("aws", "render", "client", *AT).splitlines())
    assert configured.kafka.options == told
    assert dict(configured.sources[0].options) == told


def test_what_the_readme_says_of_aws_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands in their order, without an account."""
    monkeypatch.chdir(ROOT)
    commands = [shlex.split(each) for each in readme.commands("On AWS")]
    assert {words[0] for words in commands} == {"replicator"}
    told = [said(*words[1:]) for words in commands]
    assert "models: order_items" in told[0]
    assert "sasl.mechanism=AWS_MSK_IAM" in told[-1]
