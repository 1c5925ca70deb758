"""Amazon Athena: a query is started, polled, and its result read page by page through boto3.

1. Start. 2. Poll its state, with increasing waits. 3. Read pages of rows, lazily. If the wait is interrupted, the query
is stopped in Athena, too, since it costs by the bytes scanned.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from replicator.awsclient import Service
from replicator.errors import ConfigError, ReplicatorError, Unreachable

if TYPE_CHECKING:
    from replicator.protocols.engine import Answer, Dialect

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 5.0
_PAGE = 1_000
_SYSTEM, _USER = 1, 2
"""Athena's categories of errors; the third is "other"."""
_REFUSED = frozenset(
    {"InvalidRequestException", "MetadataException", "ParamValidationError", "ResourceNotFoundException"}
)


@dataclass(frozen=True)
class AthenaSettings:
    """The place where queries run. ``output``: s3://... for results; None leaves it to the workgroup. Without a region
    and an endpoint, AWS's default chain decides.
    """

    workgroup: str = "primary"
    database: str = "default"
    catalog: str = "AwsDataCatalog"
    output: str | None = None
    region: str | None = None
    endpoint: str | None = None

    @property
    def address(self) -> str:
        """The address for messages."""
        return self.endpoint or f"Athena in {self.region or 'the default region'}"


def client(place: AthenaSettings) -> Any:
    """Return a boto3 client. Raises ConfigError without a region."""
    patience = {"connect_timeout": 5, "read_timeout": 60, "retries": {"mode": "standard", "max_attempts": 4}}
    return _ATHENA.client(place.region, place.endpoint, **patience)


class AthenaEngine:
    """``Engine`` on Athena. It sees the tables of its catalog; ``wait`` sleeps for a number of seconds."""

    dialect: Dialect = "athena"
    guards_itself = False

    def __init__(self, client: Any, place: AthenaSettings, wait: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._place = place
        self._wait = wait
        self._told: str | None = None

    @property
    def databases(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """Empty: Athena resolves databases itself."""
        return {}

    def ask(self, query: str, limit: int | None) -> Answer:
        """Run one query. Raises ConfigError for one that Athena refuses, with its reason; Unreachable if Athena fails
        temporarily; ReplicatorError for any other failure.
        """
        from replicator.catalog.arrow_texts import ArrowAnswer  # noqa: PLC0415 - as above
        from replicator.catalog.athena_rows import batches  # noqa: PLC0415 - on demand, with pyarrow

        with _ATHENA.translated(self._place.address):
            execution = self._client.start_query_execution(**self._request(query))["QueryExecutionId"]
            done = self._finished(execution)
        self._told = _format_statistics(done.get("Statistics", {}))
        pages = self._pages(execution, limit)
        return ArrowAnswer(batches(pages, has_header=done.get("StatementType") == "DML"))

    def summary(self) -> str | None:
        """Seconds and bytes scanned, for display."""
        return self._told

    def _request(self, query: str) -> dict[str, Any]:
        place = self._place
        context = {"Database": place.database, "Catalog": place.catalog}
        request = {"QueryString": query, "QueryExecutionContext": context, "WorkGroup": place.workgroup}
        return request if place.output is None else request | {"ResultConfiguration": {"OutputLocation": place.output}}

    def _finished(self, execution: str) -> dict[str, Any]:
        """Return the execution once it has succeeded."""
        seconds = _FIRST_WAIT
        try:
            while True:
                found: dict[str, Any] = self._client.get_query_execution(QueryExecutionId=execution)["QueryExecution"]
                state = found["Status"]["State"]
                if state not in {"QUEUED", "RUNNING"}:
                    break
                self._wait(seconds)
                seconds = min(seconds * 1.5, _LONGEST_WAIT)
        except BaseException:
            # the original exception is reported, not a failure to stop the abandoned query
            with contextlib.suppress(Exception):
                self._client.stop_query_execution(QueryExecutionId=execution)
            raise
        if state != "SUCCEEDED":
            raise _query_error(state, found["Status"], execution)
        return found

    def _pages(self, execution: str, limit: int | None) -> Iterator[dict[str, Any]]:
        # one row more for a header on the first page
        size = _PAGE if limit is None else max(1, min(_PAGE, limit + 1))
        pages = self._client.get_paginator("get_query_results")
        with _ATHENA.translated(self._place.address):
            for page in pages.paginate(QueryExecutionId=execution, PaginationConfig={"PageSize": size}):
                yield page["ResultSet"]


def _query_error(state: str, status: Mapping[str, Any], execution: str) -> ReplicatorError:
    """The error of a query that did not succeed."""
    details = status.get("AthenaError", {})
    reason = status.get("StateChangeReason") or details.get("ErrorMessage") or "no reason is given"
    where = f"query {execution}"
    if state == "CANCELLED":
        return ReplicatorError(f"the query was cancelled: {reason}", where=where)
    if details.get("Retryable") or details.get("ErrorCategory") == _SYSTEM:
        return Unreachable(f"Athena failed: {reason}", where=where, fix="Try again.")
    if details.get("ErrorCategory") == _USER:
        return ConfigError(f"Athena refused the query: {reason}", where=where)
    return ReplicatorError(f"the query failed: {reason}", where=where)


def _format_statistics(statistics: Mapping[str, Any]) -> str:
    seconds = statistics.get("TotalExecutionTimeInMillis", 0) / 1000
    return f"Athena: {seconds:.1f} s, {statistics.get('DataScannedInBytes', 0):,} bytes scanned"


def _service_error(code: str, reason: str, where: str) -> ReplicatorError:
    """The error of a code that is specific to Athena."""
    if code in _REFUSED:
        fix = "Check `athena.workgroup`, `athena.database` and `athena.output`."
        return ConfigError(f"Athena refused the query: {reason}", where=where, fix=fix)
    return Unreachable(f"Athena failed ({code}): {reason}", where=where, fix="Try again.")


_ATHENA = Service("Athena", "athena.region", "Check credentials and permissions.", _service_error)
