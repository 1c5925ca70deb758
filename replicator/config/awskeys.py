"""The ``aws`` block of an environment: where jobs run on EMR, their roles and sizes, and where their artifacts are."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from replicator.config.spark_settings import SparkSettings
from replicator.config.strict import Strict

Stage = Literal["bronze", "silver", "gold", "publish", "canonical"]

_LARGEST = {1: 8, 2: 16, 4: 30, 8: 60, 16: 120}
"""Memory in GB of the largest worker of EMR Serverless, by its number of cores."""

_OVERHEAD, _LEAST_OVERHEAD = 0.1, 0.375
"""The memory that Spark requests in addition to a JVM's: a share of it, with a minimum in GB."""

Cores = Literal[1, 2, 4, 8, 16]
Memory = Annotated[str, Field(pattern=r"^[1-9]\d{0,2}g$")]
Folder = Annotated[str, Field(pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^/\s]+)+$")]
Role = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/.+$")]
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]
Secret = Annotated[str, Field(pattern=r"^[^=;:\s]+:[^=;:\s]+$")]


def worker_gigabytes(memory: str) -> int:
    """The memory of a worker in GB whose JVM has that much, such as ``14g``: with Spark's overhead."""
    heap = int(memory[:-1])
    return math.ceil(heap + max(heap * _OVERHEAD, _LEAST_OVERHEAD))


class JobKeys(Strict):
    """The Spark resources of one stage: cores and memory of the driver and of each of the ``executors``. A job run of
    EMR Serverless is cancelled after ``minutes``, a step never. ``spark`` has additional Spark settings; ``secrets``
    are variables that are set for the stage, since its role may read them: name -> ``<secret of Secrets Manager>:<key
    in it>``.
    """

    driver_cores: Cores = 2
    driver_memory: Memory = "6g"
    executor_cores: Cores = 2
    executor_memory: Memory = "6g"
    executors: int = Field(default=2, ge=1, le=200)
    minutes: int = Field(default=60, ge=1)
    spark: SparkSettings = Field(default_factory=dict)
    secrets: dict[Variable, Secret] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> JobKeys:
        for process, cores, memory in (
            ("driver", self.driver_cores, self.driver_memory),
            ("executor", self.executor_cores, self.executor_memory),
        ):
            total = worker_gigabytes(memory)
            if total > _LARGEST[cores]:
                raise ValueError(
                    f"a {process} with {cores} cores cannot have {memory}: with Spark's overhead that is {total} of "
                    f"at most {_LARGEST[cores]} gigabytes"
                )
        return self


class AwsKeys(Strict):
    """Where ``replicator aws`` runs stages: an EMR Serverless ``application`` or an EMR ``cluster``, each stage with
    its role of ``roles``. ``artifacts`` is the folder that ``package`` uploads to; ``logs`` and ``log_group`` receive
    the output of the stages. ``region`` and credentials default to those of AWS's default chain.
    """

    region: str | None = None
    application: str | None = Field(default=None, pattern=r"^[0-9a-z]+$")
    cluster: str | None = Field(default=None, pattern=r"^j-[0-9A-Z]+$")
    roles: dict[Stage, Role] = Field(default_factory=dict)
    artifacts: Folder | None = None
    logs: Folder | None = None
    log_group: str | None = None
    jobs: dict[Stage, JobKeys] = Field(default_factory=dict)

    @field_validator(
        "application", "cluster", "artifacts", "logs", "log_group", mode="before", json_schema_input_type=str | None
    )
    @classmethod
    def _unset(cls, value: object) -> object:
        """Treat an empty variable as not set."""
        return None if value == "" else value

    @field_validator("roles", mode="before", json_schema_input_type=dict[Stage, str | None])
    @classmethod
    def _known(cls, roles: object) -> object:
        return {stage: role for stage, role in roles.items() if role} if isinstance(roles, dict) else roles

    @model_validator(mode="after")
    def _one_place(self) -> AwsKeys:
        if self.application and self.cluster:
            raise ValueError("give either application or cluster: a stage runs in one place")
        return self

    @property
    def secrets(self) -> frozenset[str]:
        """The variables that are set for any stage."""
        return frozenset(name for job in self.jobs.values() for name in job.secrets)

    def job(self, stage: Stage) -> JobKeys:
        """Return the resources of a stage, the defaults where none are configured."""
        return self.jobs.get(stage, JobKeys())
