"""A failure of Spark or of a format's library as an error of the one table that met it, or of the lake."""

from __future__ import annotations

import re

from replicator import damage, s3
from replicator.errors import EngineFailed, ReplicatorError, StoreRefused, TableStopped, Unreachable, ValueRefused
from replicator.jvm import causes
from replicator.jvm.failures import error_condition, is_raised_by_sql

_TOO_LARGE = "IOException: File too large"
_OF_ROWS = re.compile("22...|21000|23505")
"""Data exceptions, a query that is to give one row, and a key that a map would have twice."""
_NO_ROOM = re.compile("No space left on device|Disk quota exceeded")

SCHEMA_FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Python raises at a schema block that is none, or is nested too deep."""


def to_table_error(error: Exception, table: str) -> EngineFailed | ValueRefused:
    """The table's error in one line; all of it is its cause. Raises :func:`to_lake_error` where it is that."""
    shut = to_lake_error(error, table)
    if shut is not None:
        raise shut from error
    stopped = _to_value_error(error, table) or EngineFailed(
        f"the engine failed: {causes.summarize(error)}", where=table, mend=repair_hint(str(error))
    )
    stopped.__cause__ = error
    return stopped


def of_one_table(error: Exception, table: str) -> ReplicatorError:
    """What stops one table while the others go on. Raises what another table would meet, too: errors that a retry may
    cure, StoreRefused, and :func:`to_lake_error`.
    """
    if not isinstance(error, ReplicatorError):
        return to_table_error(error, table)
    if error.retry or isinstance(error, StoreRefused):
        raise error
    return error


def _to_value_error(error: Exception, table: str) -> ValueRefused | None:
    """Where a value is to blame: by its own words where an expression raises an error of its own; by its SQLSTATE
    without Spark's words, which have the value.
    """
    if is_raised_by_sql(error):
        what = f"an expression raises an error for some row: {causes.summarize(error)}"
        return ValueRefused(what, where=table, mend="Mend the row, or what the SQL asks of it.")
    told = error_condition(error)
    if told is None or _OF_ROWS.fullmatch(told[1]) is None:
        return None
    what = f"an expression cannot be computed for some row ({told[0]}, SQLSTATE {told[1]})"
    mend = (
        "Mend its SQL (`try_cast`, `try_element_at`, `nullif` and the like), or the row; `--debug` shows Spark's words."
    )
    return ValueRefused(what, where=table, mend=mend)


def repair_hint(told: str) -> str | None:
    """How to mend a failure of that text, where a disk was full or a limit reached, of which Java's words name none, or
    a table has lost a file; None of any other.
    """
    if _NO_ROOM.search(told):
        return "Make room where the lake and Spark's temporary files are, then run again."
    if _TOO_LARGE in told:
        return "Let the driver's user write larger files (`ulimit -f`), then run again."
    return damage.repair_hint(told)


def to_schema_error(error: Exception, table: str) -> TableStopped:
    """The error of a table whose records describe themselves in a way that nobody can follow."""
    stopped = TableStopped(
        f"the schema block of some record cannot be read: {causes.summarize(error)}",
        where=table,
        mend="`replicator tail` shows the records; `--debug` the whole trace.",
    )
    stopped.__cause__ = error
    return stopped


def to_lake_error(error: Exception, where: str) -> Unreachable | StoreRefused | None:
    """What is to be said where the object store, or another service below Spark, does not answer or has no time, or
    refuses the driver: the next table would meet the same, after the same long patience. None of any other failure.
    """
    if not causes.is_unreachable(error):
        return s3.access_error(causes.summarize(error), where) if causes.is_access_denied(error) else None
    told = f"a service does not answer: {causes.summarize(error)}"
    return Unreachable(told, where=where, mend="Nothing is lost; run again once it is well.")
