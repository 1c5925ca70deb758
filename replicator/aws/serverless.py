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

    Every method raises Unreachable if EMR Serverless does not answer, ConfigError if it refuses.
    """

    def __init__(self, application: str, region: str | None = None) -> None:
        self.application = application
        self._client: Any = _EMR.client(region, None, connect_timeout=5, read_timeout=60, retries={"mode": "standard"})

    def submit(self, request: Mapping[str, Any]) -> str:
        """Start a job run (``job.serverless_request``); return its id."""
        with _EMR.translated(self.application):
            return str(self._client.start_job_run(**request)["jobRunId"])

    def runs(self, limit: int) -> list[Run]:
        """Return the newest runs, the newest first."""
        with _EMR.translated(self.application):
            pages = self._client.get_paginator("list_job_runs").paginate(
                applicationId=self.application, PaginationConfig={"MaxItems": limit}
            )
            return [_run(each) for page in pages for each in page["jobRuns"]]

    def run(self, run: str) -> Run:
        """Return one run."""
        with _EMR.translated(run):
            return _run(self._client.get_job_run(applicationId=self.application, jobRunId=run)["jobRun"])

    def log(self, run: str, stream: str) -> Log:
        """Return the location of the driver's output."""
        folder, file = f"applications/{self.application}/jobs/{run}/", f"SPARK_DRIVER/{stream}.gz"
        return Log(f"{folder}{file}", retried=(f"{folder}attempts/", f"/{file}"))


def _run(job_run: Mapping[str, Any]) -> Run:
    state = str(job_run["state"])
    return Run(
        id=str(job_run.get("id") or job_run["jobRunId"]),
        name=str(job_run.get("name") or ""),
        state=state,
        started=job_run["createdAt"],
        ended=job_run["updatedAt"] if state in _DONE else None,
        reason=str(job_run.get("stateDetails") or ""),
        failed=state in _FAILED,
    )


_EMR = Service(
    "EMR Serverless",
    "aws.region",
    "Check credentials and permissions on the application and iam:PassRole.",
    refusal("EMR Serverless", "Check `aws.application`, `aws.roles` and the sizes in `aws.jobs`."),
)
