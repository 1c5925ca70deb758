"""A stage as a job: sizes, class path, variables and requests, before anybody is asked."""

from __future__ import annotations

import itertools
import shlex
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from pydantic import ValidationError

from replicator import jars
from replicator.aws import job, msk, runtime
from replicator.aws.job import Job
from replicator.aws.manifest import Manifest
from replicator.config.awskeys import AwsKeys, JobKeys
from replicator.config.kafka_options import validate
from replicator.errors import ConfigError

FILES = {
    "lakehouse_replicator-0.1.0-py3-none-any.whl": "a",
    "jobs/bronze.py": "b",
    "jobs/silver.py": "c",
    "jars/org.postgresql_postgresql-42.7.14.jar": "d",
    "conf.tar.gz": "e",
    "dependencies.tar.gz": "f",
}
PACKED = Manifest("aws", FILES)
PLACE = f"s3://artifacts/replicator/{PACKED.id}"
BRONZE = Job("bronze", PACKED, PLACE)
CATALOG = "spark.sql.catalogImplementation"
ROLE = "arn:aws:iam::123456789012:role/replicator-bronze"


def conf(words: list[str]) -> dict[str, str]:
    """Spark's settings among the words of a command."""
    return dict(value.split("=", 1) for flag, value in itertools.pairwise(words) if flag == "--conf")


def submitted(request: dict[str, Any]) -> dict[str, str]:
    return conf(shlex.split(request["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"]))


def test_a_job_runs_with_the_runtimes_own_delta_and_hudi() -> None:
    """Its class path has EMR's JARs of the formats in use, and of ours only those that EMR has not."""
    request = job.serverless_request(replace(BRONZE, formats=("delta", "hudi")), "00app", ROLE, None, None)
    assert submitted(request)["spark.jars"].split(",") == [
        "/usr/share/aws/delta/lib/delta-spark.jar",
        "/usr/share/aws/delta/lib/delta-storage.jar",
        "/usr/lib/hudi/hudi-spark-bundle.jar",
        f"{PLACE}/jars/org.postgresql_postgresql-42.7.14.jar",
    ]
    assert "hudi" not in submitted(job.serverless_request(BRONZE, "00app", ROLE, None, None))["spark.jars"]


def test_what_emr_has_is_not_packed() -> None:
    """Neither Delta nor Hudi nor what s3a is made of; Kafka's reader, PostgreSQL's driver and MSK's login are."""
    groups = {each.split(":")[0] for each in runtime.missing_jars(jars.load_lock("3.5", ["hudi", "msk"]))}
    assert groups == {
        "org.apache.spark",
        "org.apache.kafka",
        "org.apache.commons",
        "org.postgresql",
        "software.amazon.msk",
    }


@pytest.mark.parametrize("lock", [[], ["hudi"]], ids=["delta", "hudi"])
def test_ours_beside_the_runtimes_are_refused(lock: list[str]) -> None:
    """Every file of our locks that is a Delta or a Hudi, by the name that the cache gives it."""
    for coordinate in jars.load_lock("3.5", lock):
        group, artifact, version = coordinate.split(":")
        files = [f"/cache/{group}_{artifact}-{version}.jar", f"s3://bucket/{artifact}-{version}.jar"]
        for file in files:
            if group in ("io.delta", "org.apache.hudi"):
                with pytest.raises(ConfigError, match="runtime's own"):
                    runtime.refuse_duplicate_jars(f"a.jar,{file}")
            else:
                runtime.refuse_duplicate_jars(f"a.jar,{file}")


def test_the_runtimes_own_are_let_in() -> None:
    """By the paths that EMR has, by the folders that they lead to, and by names with EMR's mark."""
    runtime.refuse_duplicate_jars(
        ",".join([*runtime.jars(["hudi"]), "/usr/share/aws/delta/lib/delta-storage-s3-dynamodb.jar"])
    )
    runtime.refuse_duplicate_jars("/cache/delta-spark_2.12-3.3.0-amzn-0.jar,hudi-spark3-bundle_2.12-1.0.2-amzn-1.jar")
    runtime.refuse_duplicate_jars(
        "file:/usr/share/aws/delta/lib/delta-spark_2.12-3.3.0.jar,file:///usr/lib/hudi/hudi-spark3-bundle_2.12-1.0.2.jar"
    )


def test_a_size_becomes_settings_and_the_users_settings_win() -> None:
    """Lists of files are not replaced: what a job needs stays, the user's come behind."""
    keys = JobKeys(
        driver_cores=4,
        driver_memory="14g",
        executors=7,
        spark={"spark.sql.shuffle.partitions": "8", "spark.jars": "s3://x/own.jar", "spark.driver.cores": "8"},
    )
    told = job.spark_settings(replace(BRONZE, keys=keys), "spark.yarn.appMasterEnv")
    assert (told["spark.driver.memory"], told["spark.driver.cores"], told["spark.executor.instances"]) == (
        "14g",
        "8",
        "7",
    )
    assert told["spark.sql.shuffle.partitions"] == "8"
    assert told["spark.jars"].endswith("/jars/org.postgresql_postgresql-42.7.14.jar,s3://x/own.jar")


def test_a_job_asks_no_metastore() -> None:
    """Tables are found by their paths. With Hive's catalog, which may be Glue, a model's query asks it for the database
    `default`, and the role of a stage has no rights there.
    """
    assert submitted(job.serverless_request(BRONZE, "00app", ROLE, None, None))[CATALOG] == "in-memory"
    assert conf(job.step(BRONZE)["HadoopJarStep"]["Args"])[CATALOG] == "in-memory"
    own = replace(BRONZE, keys=JobKeys(spark={CATALOG: "hive"}))
    assert job.spark_settings(own, "spark.yarn.appMasterEnv")[CATALOG] == "hive"


def test_settings_that_bring_another_delta_are_refused() -> None:
    """Before anything is sent."""
    keys = JobKeys(spark={"spark.jars": "s3://x/delta-spark_2.12-3.3.3.jar"})
    with pytest.raises(ConfigError, match=r"delta-spark_2\.12-3\.3\.3\.jar"):
        job.serverless_request(replace(BRONZE, keys=keys), "00app", ROLE, None, None)


def test_a_job_finds_its_packages_its_configuration_and_its_secrets() -> None:
    """By archives in its folder and by variables, of which none holds a secret."""
    keys = JobKeys(secrets={"WAREHOUSE_PASSWORD": "replicator-publish:password"})
    with_secrets = replace(BRONZE, keys=keys, region="eu-west-1")
    told = submitted(job.serverless_request(with_secrets, "00app", ROLE, None, None))
    assert told["spark.archives"] == f"{PLACE}/dependencies.tar.gz#dependencies,{PLACE}/conf.tar.gz#conf"
    assert told["spark.submit.pyFiles"] == f"{PLACE}/lakehouse_replicator-0.1.0-py3-none-any.whl"
    driver = {key.rpartition(".")[2]: value for key, value in told.items() if ".driverEnv." in key}
    assert driver == {
        "PYTHONPATH": "./dependencies",
        "REPLICATOR_CONF": "./conf",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "REPLICATOR_SECRETS": "WAREHOUSE_PASSWORD=replicator-publish:password",
    }
    step = job.step(with_secrets)["HadoopJarStep"]["Args"]
    assert conf(step)["spark.yarn.appMasterEnv.REPLICATOR_CONF"] == "./conf"


def test_only_what_would_fall_apart_is_quoted() -> None:
    """AWS splits the parameters into words; ``#`` stands in every list of archives and begins no comment."""
    keys = JobKeys(spark={"spark.driver.extraJavaOptions": "-Da=1 -Db=2"})
    text = job.serverless_request(replace(BRONZE, keys=keys), "00app", ROLE, None, None)["jobDriver"]["sparkSubmit"][
        "sparkSubmitParameters"
    ]
    assert f"--conf spark.archives={PLACE}/dependencies.tar.gz#dependencies," in text
    assert "--conf 'spark.driver.extraJavaOptions=-Da=1 -Db=2'" in text


def test_once_ends_by_itself_and_continuous_does_not() -> None:
    """A batch has its minutes; a stream has none, and runs in the mode that EMR Serverless has for it."""
    once = job.serverless_request(BRONZE, "00app", ROLE, None, None)
    stays = job.serverless_request(replace(BRONZE, continuous=True), "00app", ROLE, None, None)
    told = [(one["mode"], one["executionTimeoutMinutes"]) for one in (once, stays)]
    assert told == [("BATCH", 60), ("STREAMING", 0)]
    flags = [one["jobDriver"]["sparkSubmit"]["entryPointArguments"] for one in (once, stays)]
    assert flags == [["--env", "aws", "--once"], ["--env", "aws", "--continuous"]]


def test_a_request_has_the_shape_that_emr_serverless_takes() -> None:
    """Botocore's own model of the service checks it; logs go where the environment says."""
    request = job.serverless_request(BRONZE, "00app", ROLE, "s3://logs/emr", "/replicator/jobs")
    client = boto3.client("emr-serverless", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    answer = {
        "applicationId": "00app",
        "jobRunId": "r",
        "arn": "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00app/jobruns/r",
    }
    with Stubber(client) as stub:
        stub.add_response("start_job_run", answer, request)
        client.start_job_run(**request)
    monitoring = request["configurationOverrides"]["monitoringConfiguration"]
    assert monitoring["s3MonitoringConfiguration"] == {"logUri": "s3://logs/emr/"}
    assert monitoring["cloudWatchLoggingConfiguration"]["logGroupName"] == "/replicator/jobs"


def test_steps_go_on_when_one_fails_and_one_call_has_one_role() -> None:
    """ActionOnFailure CONTINUE; stages in their order, cut where the role changes; valid by botocore's model."""
    jobs = [Job(stage, PACKED, PLACE) for stage in ("bronze", "silver", "gold", "publish")]
    roles: dict[Any, str] = {"bronze": ROLE, "silver": ROLE, "gold": ROLE.replace("bronze", "gold")}
    calls = job.steps(jobs, "j-1", roles)
    assert [([one["Name"] for one in call["Steps"]], call.get("ExecutionRoleArn")) for call in calls] == [
        (["replicator bronze", "replicator silver"], ROLE),
        (["replicator gold"], ROLE.replace("bronze", "gold")),
        (["replicator publish"], None),
    ]
    assert {one["ActionOnFailure"] for call in calls for one in call["Steps"]} == {"CONTINUE"}
    client = boto3.client("emr", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(client) as stub:
        for call in calls:
            stub.add_response("add_job_flow_steps", {"StepIds": ["s-1"]}, call)
            client.add_job_flow_steps(**call)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"driver_cores": 2, "driver_memory": "15g"}, "17 of at most 16"),
        ({"executor_cores": 4, "executor_memory": "28g"}, "31 of at most 30"),
        ({"driver_cores": 3}, "1, 2, 4, 8 or 16"),
        ({"executor_memory": "6 GB"}, "pattern"),
    ],
)
def test_a_size_that_no_worker_has_is_refused(keys: dict[str, Any], says: str) -> None:
    """Memory with Spark's overhead has to fit the cores of a worker of EMR Serverless."""
    with pytest.raises(ValidationError, match=says):
        JobKeys(**keys)


def test_sizes_that_workers_have_are_taken() -> None:
    """The defaults, and the largest of some."""
    sizes: tuple[tuple[Any, str], ...] = ((1, "7g"), (2, "14g"), (4, "27g"), (8, "54g"), (16, "109g"))
    for cores, memory in sizes:
        JobKeys(driver_cores=cores, driver_memory=memory)


def test_a_stage_runs_in_one_place() -> None:
    """An application or a cluster; an empty variable is neither."""
    with pytest.raises(ValidationError, match="one place"):
        AwsKeys(application="00f5abc", cluster="j-3KVXXXXXXX7UG")
    assert AwsKeys(application="", cluster="j-3KVXXXXXXX7UG", roles={"gold": ""}).roles == {}


def test_the_login_to_msk_is_one_that_a_source_may_have() -> None:
    """The four options are allowed by the list of those that change nothing of what is read."""
    assert validate(dict(msk.IAM)) == msk.IAM
    assert msk.spark_options() == {f"kafka.{key}": value for key, value in msk.IAM.items()}


def test_a_secret_in_a_connector_is_refused() -> None:
    """Whoever may describe a connector reads its configuration."""
    with pytest.raises(ConfigError, match=r"database\.password"):
        msk.connector_config({"database.password": "hunter2"})
    reference = {"database.password": "${secretsmanager:replicator-debezium:password}"}
    assert msk.connector_config(reference)["database.password"] == reference["database.password"]


def test_the_reader_of_signals_logs_in_by_iam_too() -> None:
    """A connector whose signals are in a topic has a consumer of its own for it, which Debezium sets by this prefix."""
    made = msk.connector_config({"signal.kafka.bootstrap.servers": "b-1:9098"})
    assert made["signal.consumer.sasl.mechanism"] == "AWS_MSK_IAM"
    with pytest.raises(ConfigError, match="9098"):
        msk.connector_config({"signal.kafka.bootstrap.servers": "b-1:9092"})


def test_the_schema_history_logs_in_by_iam_too() -> None:
    """Its clients are not the worker's; its brokers have to be those of IAM's port."""
    history = "schema.history.internal.kafka.bootstrap.servers"
    made = msk.connector_config({history: "b-1:9098,b-2:9098"})
    assert made["schema.history.internal.producer.sasl.mechanism"] == "AWS_MSK_IAM"
    assert made["schema.history.internal.consumer.security.protocol"] == "SASL_SSL"
    with pytest.raises(ConfigError, match="9098"):
        msk.connector_config({history: "b-1:9092"})
    with pytest.raises(ConfigError, match="9098"):
        msk.kafka_ui_environment("")
