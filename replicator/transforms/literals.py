"""Values of a configuration as literals of Spark."""

from __future__ import annotations

from datetime import date, datetime, timezone

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T


def literal(value: object, kind: T.DataType) -> Column:
    """Return a value as a literal of this type, NULL if it has none.

    Dates and times are passed as text: as objects of Python they become those of Java, which has other dates before the
    15th of October 1582, and takes a time without zone for one of the process's zone.
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc)
    return F.lit(value.isoformat() if isinstance(value, date) else value).cast(kind)
