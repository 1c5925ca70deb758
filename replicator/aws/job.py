"""A stage as a job: Spark's settings, and the requests that start it on EMR Serverless or on a cluster.

Everything is computed before any call, so ``--dry-run`` prints what would be sent.
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
    """One stage of one package. ``place`` is the package's folder on S3; ``keys`` its size, additional settings of
    Spark, and secrets; ``continuous``: it runs until it is stopped; ``region`` is that of the AWS services it calls.
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
        """The name, for display."""
        return f"replicator {self.stage}"


def serverless_request(
    job: Job, application: str, role: str, logs: str | None, log_group: str | None
) -> dict[str, Any]:
    """Return the arguments of ``start_job_run``. Raises ConfigError for settings that add another Delta or Hudi."""
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
        "executionTimeoutMinutes": 0 if job.continuous else job.keys.minutes,  # 0: no limit
        "jobDriver": {"sparkSubmit": submit},
        "tags": {"project": "replicator", "stage": job.stage, "package": job.packed.id},
    }
    if monitoring := _monitoring(job, logs, log_group):
        request["configurationOverrides"] = {"monitoringConfiguration": monitoring}
    return request


def step(job: Job) -> dict[str, Any]:
    """Return a step of ``add_job_flow_steps``; the steps after it run whatever its result. Raises as
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
    """Return the arguments of each ``add_job_flow_steps``: one call takes steps of one role, so a stage with another
    role begins a new call; the order is preserved.
    """
    calls: list[dict[str, Any]] = []
    for each in jobs:
        role = roles.get(each.stage)
        if not calls or calls[-1].get("ExecutionRoleArn") != role:
            calls.append({"JobFlowId": cluster, "Steps": [], **({"ExecutionRoleArn": role} if role else {})})
        calls[-1]["Steps"].append(step(each))
    return calls


def arguments(job: Job) -> list[str]:
    """The arguments after the job's file: the flags of ``replicator run``."""
    return ["--env", job.packed.env, "--continuous" if job.continuous else "--once"]


def spark_settings(job: Job, driver_variable: str) -> dict[str, str]:
    """Return Spark's settings. *driver_variable* is the prefix by which a variable of the driver is set. The user's
    settings take precedence, except for lists of files, to which they are appended.
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
        "spark.sql.catalogImplementation": "in-memory",  # models ask Hive's for a database; roles have no rights there
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
    variables = {"PYTHONPATH": "./dependencies", "REPLICATOR_CONF": "./conf"}
    if job.region:
        variables["AWS_DEFAULT_REGION"] = job.region  # the only variable that boto3 reads for it
    secrets = ";".join(f"{name}={place}" for name, place in sorted(job.keys.secrets.items()))
    return {**variables, "REPLICATOR_SECRETS": secrets} if secrets else variables


def _quote_word(text: str) -> str:
    """One word of a command line. Only words that would be split are quoted: ``#`` in a list of archives is not a
    comment.
    """
    return shlex.quote(text) if re.search(r"[\s'\"\\]", text) else text


def _flags(values: Mapping[str, str]) -> list[str]:
    return [word for key, value in values.items() for word in ("--conf", f"{key}={value}")]


def _monitoring(job: Job, logs: str | None, log_group: str | None) -> dict[str, Any]:
    destinations: dict[str, Any] = {}
    if logs:
        destinations["s3MonitoringConfiguration"] = {"logUri": f"{logs}/"}
    if log_group:
        destinations["cloudWatchLoggingConfiguration"] = {
            "enabled": True,
            "logGroupName": log_group,
            "logStreamNamePrefix": job.stage,
        }
    return destinations
