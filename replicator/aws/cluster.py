"""Stages as steps of an EMR cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from replicator.aws.logs import Log
from replicator.aws.runs import Run
from replicator.awsclient import Service, refusal

_FAILED = frozenset({"FAILED", "CANCELLED", "INTERRUPTED"})
_APPLICATION = re.compile(r"application_\d+_\d+")


class Cluster:
    """One cluster.

    Every method raises Unreachable if EMR does not answer, ConfigError if it refuses.
    """

    def __init__(self, cluster: str, region: str | None = None) -> None:
        self.cluster = cluster
        self._client: Any = _EMR.client(region, None, connect_timeout=5, read_timeout=60, retries={"mode": "standard"})

    def submit(self, call: Mapping[str, Any]) -> list[str]:
        """Add steps (one call of ``job.steps``); return their ids, in order."""
        with _EMR.translated(self.cluster):
            return [str(each) for each in self._client.add_job_flow_steps(**call)["StepIds"]]

    def at_once(self, steps: int) -> None:
        """Set the number of steps that run concurrently; running ones continue."""
        with _EMR.translated(self.cluster):
            self._client.modify_cluster(ClusterId=self.cluster, StepConcurrencyLevel=steps)

    def runs(self, limit: int) -> list[Run]:
        """Return the newest steps, the newest first."""
        with _EMR.translated(self.cluster):
            pages = self._client.get_paginator("list_steps").paginate(
                ClusterId=self.cluster, PaginationConfig={"MaxItems": limit}
            )
            return [_run(each) for page in pages for each in page["Steps"]]

    def run(self, run: str) -> Run:
        """Return one step."""
        with _EMR.translated(run):
            return _run(self._client.describe_step(ClusterId=self.cluster, StepId=run)["Step"])

    def log(self, run: str, stream: str) -> Log:
        """Return the location of the driver's output: in a container of YARN, which the step's own output names."""
        return Log(
            f"{self.cluster}/steps/{run}/stderr.gz", lambda text: _find_container_log(self.cluster, text, stream)
        )


def _find_container_log(cluster: str, text: str, stream: str) -> tuple[str, str] | None:
    """The folder of the application that a step's output names, and the suffix of the file's name in it."""
    found = _APPLICATION.search(text)
    return None if found is None else (f"{cluster}/containers/{found.group()}/", f"_000001/{stream}.gz")


def _run(step: Mapping[str, Any]) -> Run:
    status = step["Status"]
    state, times = str(status["State"]), status.get("Timeline", {})
    failure = status.get("FailureDetails", {})
    return Run(
        id=str(step["Id"]),
        name=str(step["Name"]),
        state=state,
        started=times.get("StartDateTime") or times.get("CreationDateTime") or datetime.fromtimestamp(0, timezone.utc),
        ended=times.get("EndDateTime"),
        reason=str(failure.get("Message") or status.get("StateChangeReason", {}).get("Message") or ""),
        failed=state in _FAILED,
    )


_EMR = Service(
    "EMR",
    "aws.region",
    "Check credentials and permissions on the cluster and its runtime roles.",
    refusal("EMR", "Check `aws.cluster` and `aws.roles`."),
)
