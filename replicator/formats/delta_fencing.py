"""Fencing of Delta commits: the last lease check before a commit, the token that the commit carries, and the
translation of Delta's conflict errors (reliability.md F-W2).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from delta import exceptions

from replicator.errors import StaleWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from replicator.protocols import Fence
    from replicator.spec import Token

_CONFLICTS = (
    exceptions.DeltaConcurrentModificationException,
    exceptions.ConcurrentAppendException,
    exceptions.ConcurrentDeleteDeleteException,
    exceptions.ConcurrentDeleteReadException,
    exceptions.ConcurrentTransactionException,
    exceptions.ConcurrentWriteException,
    exceptions.MetadataChangedException,
    exceptions.ProtocolChangedException,
)
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@contextmanager
def fenced_commit(spark: SparkSession, fence: Fence, location: str) -> Iterator[None]:
    """Have commits to the table at ``location`` inside the block carry the fence's token. Raises LeaseLost, and
    StaleWriter if another writer has committed since the version that this commit builds on, the same progress above
    all.
    """
    fence.check()
    try:
        with _with_user_metadata(spark, fence.token):
            yield
    except _CONFLICTS as error:
        what = "another writer has changed the table meanwhile; nothing was written"
        raise StaleWriter(what, where=location, fix="Run again, with a single driver.") from error


@contextmanager
def _with_user_metadata(spark: SparkSession, token: Token | None) -> Iterator[None]:
    """Set ``userMetadata`` to the lake and its token; without a token leave what the user has set."""
    if token is None:
        yield
        return
    before = spark.conf.get(_USER_METADATA, None)
    spark.conf.set(_USER_METADATA, json.dumps(asdict(token)))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_USER_METADATA)
        else:
            spark.conf.set(_USER_METADATA, before)
