"""A stage as a job: Spark's settings, and the requests that start it on EMR Serverless or on a cluster.

Everything is known before anybody is asked, so ``--dry-run`` prints what would be sent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replicator.aws import runtime
from replicator.aws.manifest import CONF, DEPENDENCIES, Manifest
from replicator.config.awskeys import JobKeys, Stage

_LISTS = ("spark.jars", "spark.submit.pyFiles", "spark.archives")


@dataclass(frozen=True)
class Job:
    """One stage of one package. ``place`` is the package's folder on S3; ``keys`` its size, further settings of Spark,
    and secrets; ``continuous``: it goes on until somebody stops it; ``region`` is where it asks AWS's services.
    """

    stage: Stage
    packed: Manifest
    place: str
    formats: tuple[str, ...] = ("delta",)
    keys: JobKeys = field(default_factory=JobKeys)
    continuous: bool = False
    region: str | None = None

    @property
    def name(self) -> str:
        """For people."""
        return f"replicator {self.stage}"


def serverless_request(
    job: Job, application: str, role: str, logs: str | None, log_group: str | None
) -> dict[str, Any]:
    """The arguments of ``start_job_run``. Raises ConfigError for settings that bring another Delta or Hudi."""
    submit = {
        "entryPoint": f"{job.place}/jobs/{job.stage}.py",
        "entryPointArguments": arguments(job),
        "sparkSubmitParameters": " ".join(
            map(_quote_word, _flags(spark_settings(job, "spark.emr-serverless.driverEnv")))
        ),
    }
    request: dict[str, Any] = {
        "applicationId": application,
        "executionRoleArn": role,
        "name": job.name,
        "mode": "STREAMING" if job.continuous else "BATCH",
        "executionTimeoutMinutes": 0 if job.continuous else job.keys.minutes,  # 0: none
        "jobDriver": {"sparkSubmit": submit},
        "tags": {"project": "replicator", "stage": job.stage, "package": job.packed.id},
    }
    if monitoring := _monitoring(job, logs, log_group):
        request["configurationOverrides"] = {"monitoringConfiguration": monitoring}
    return request


def step(job: Job) -> dict[str, Any]:
    """A step of ``add_job_flow_steps``: whatever becomes of it, the steps behind it run. Raises as
    ``serverless_request``.
    """
    flags = _flags(spark_settings(job, "spark.yarn.appMasterEnv"))
    words = ["spark-submit", "--deploy-mode", "cluster", *flags, f"{job.place}/jobs/{job.stage}.py", *arguments(job)]
    return {
        "Name": job.name,
        "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": words},
    }


def steps(jobs: Sequence[Job], cluster: str, roles: Mapping[Stage, str]) -> list[dict[str, Any]]:
    """The arguments of each ``add_job_flow_steps``: one call takes steps of one role, so a stage with another begins
    another call; the order stays.
    """
    calls: list[dict[str, Any]] = []
    for each in jobs:
        role = roles.get(each.stage)
        if not calls or calls[-1].get("ExecutionRoleArn") != role:
            calls.append({"JobFlowId": cluster, "Steps": [], **({"ExecutionRoleArn": role} if role else {})})
        calls[-1]["Steps"].append(step(each))
    return calls


def arguments(job: Job) -> list[str]:
    """Behind the job's file: the flags of ``replicator run``."""
    return ["--env", job.packed.env, "--continuous" if job.continuous else "--once"]


def spark_settings(job: Job, driver_variable: str) -> dict[str, str]:
    """Spark's settings. *driver_variable* is the prefix by which a variable of the driver is set. The user's win, but
    for lists of files: theirs come behind ours.
    """
    size, own = job.keys, job.keys.spark
    runtime.refuse_duplicate_jars(own.get("spark.jars", ""))
    made = {
        "spark.driver.cores": str(size.driver_cores),
        "spark.driver.memory": size.driver_memory,
        "spark.executor.cores": str(size.executor_cores),
        "spark.executor.memory": size.executor_memory,
        "spark.executor.instances": str(size.executors),
        "spark.dynamicAllocation.enabled": "false",
        "spark.jars": ",".join([*runtime.jars(job.formats), *(f"{job.place}/{name}" for name in job.packed.jars)]),
        "spark.submit.pyFiles": f"{job.place}/{job.packed.wheel}",
        "spark.archives": f"{job.place}/{DEPENDENCIES}#dependencies,{job.place}/{CONF}#conf",
        "spark.pyspark.python": f"/usr/bin/{runtime.PYTHON}",
        "spark.pyspark.driver.python": f"/usr/bin/{runtime.PYTHON}",
        "spark.executorEnv.PYTHONPATH": "./dependencies",
        **{f"{driver_variable}.{name}": value for name, value in _variables(job).items()},
    }
    lists = {key: f"{made[key]},{own[key]}" for key in _LISTS if key in own}
    return {**made, **own, **lists}


def _variables(job: Job) -> dict[str, str]:
    told = {"PYTHONPATH": "./dependencies", "REPLICATOR_CONF": "./conf"}
    if job.region:
        told["AWS_DEFAULT_REGION"] = job.region  # boto3 looks at no other variable
    secrets = ";".join(f"{name}={place}" for name, place in sorted(job.keys.secrets.items()))
    return {**told, "REPLICATOR_SECRETS": secrets} if secrets else told


def _quote_word(text: str) -> str:
    """One word of a command line. Only what would fall apart is quoted: ``#`` in a list of archives is no comment."""
    return shlex.quote(text) if re.search(r"[\s'\"\\]", text) else text


def _flags(values: Mapping[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in ("--conf", f"{key}={value}")]


def _monitoring(job: Job, logs: str | None, log_group: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if logs:
        told["s3MonitoringConfiguration"] = {"logUri": f"{logs}/"}
    if log_group:
        told["cloudWatchLoggingConfiguration"] = {
            "enabled": True,
            "logGroupName": log_group,
            "logStreamNamePrefix": job.stage,
        }
    return told
