"""Instants: the times by which Hudi names the commits of its timeline, digits down to the millisecond."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from replicator.jvm import gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMAT, _DIGITS = "%Y%m%d%H%M%S%f", 17
"""Of the microseconds of this format, Hudi writes only the milliseconds."""


def parse(spark: SparkSession, text: str) -> datetime:
    """Parse an instant by Hudi's own generator, which knows the time zone that it is written in."""
    times = gateway.of(spark).org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator
    milliseconds = int(times.parseDateFromInstantTime(text).getTime())
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)


def utc_now() -> str:
    """This moment as an instant, to the millisecond; ``hudi_options`` sets UTC."""
    return datetime.now(timezone.utc).strftime(_FORMAT)[:_DIGITS]


def parse_utc(instant: str) -> datetime:
    """Parse an instant, to the millisecond; ``hudi_options`` sets UTC."""
    digits = f"{instant or '1970010100'}0000000"[:_DIGITS]
    return datetime.strptime(digits, _FORMAT).replace(tzinfo=timezone.utc)
