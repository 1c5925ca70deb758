"""Stages as job runs of an EMR Serverless application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replicator.aws.logs import Log
from replicator.aws.runs import Run
from replicator.awsclient import Service, refusal

_FAILED = frozenset({"FAILED", "CANCELLED"})
_DONE = frozenset({"SUCCESS", *_FAILED})


class Serverless:
    """One application.

    Every method raises Unreachable where EMR Serverless does not answer, ConfigError where it refuses.
    """

    def __init__(self, application: str, region: str | None = None) -> None:
        self.application = application
        self._client: Any = _EMR.client(region, None, connect_timeout=5, read_timeout=60, retries={"mode": "standard"})

    def submit(self, request: Mapping[str, Any]) -> str:
        """Start a job run (``job.serverless_request``); its id."""
        with _EMR.translated(self.application):
            return str(self._client.start_job_run(**request)["jobRunId"])

    def runs(self, most: int) -> list[Run]:
        """The newest runs, newest first."""
        with _EMR.translated(self.application):
            pages = self._client.get_paginator("list_job_runs").paginate(
                applicationId=self.application, PaginationConfig={"MaxItems": most}
            )
            return [_run(each) for page in pages for each in page["jobRuns"]]

    def run(self, run: str) -> Run:
        """One run."""
        with _EMR.translated(run):
            return _run(self._client.get_job_run(applicationId=self.application, jobRunId=run)["jobRun"])

    def log(self, run: str, stream: str) -> Log:
        """Where the driver's output is."""
        return Log(f"applications/{self.application}/jobs/{run}/SPARK_DRIVER/{stream}.gz")


def _run(told: Mapping[str, Any]) -> Run:
    state = str(told["state"])
    return Run(
        id=str(told.get("id") or told["jobRunId"]),
        name=str(told.get("name") or ""),
        state=state,
        started=told["createdAt"],
        ended=told["updatedAt"] if state in _DONE else None,
        reason=str(told.get("stateDetails") or ""),
        failed=state in _FAILED,
    )


_EMR = Service(
    "EMR Serverless",
    "aws.region",
    "Check credentials, and rights on the application and iam:PassRole.",
    refusal("EMR Serverless", "Check `aws.application`, `aws.roles` and the sizes in `aws.jobs`."),
)
