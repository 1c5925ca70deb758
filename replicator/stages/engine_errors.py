"""Convert a failure of Spark or of a format's library into an error of the table that it concerns, or of the lake."""

from __future__ import annotations

import re

from replicator import damage, s3
from replicator.errors import EngineFailed, ReplicatorError, StoreRefused, TableStopped, Unreachable, ValueRefused
from replicator.jvm import causes
from replicator.jvm.failures import error_condition, is_raised_by_sql

_TOO_LARGE = "IOException: File too large"
_OF_ROWS = re.compile("22...|21000|23505")
"""SQLSTATEs of data exceptions, of a query that must return one row, and of duplicate keys in a map."""
_NO_ROOM = re.compile("No space left on device|Disk quota exceeded")

SCHEMA_FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Python's exceptions for a schema block that is invalid or nested too deep."""


def to_table_error(error: Exception, table: str) -> EngineFailed | ValueRefused:
    """Return the table's error in one line, with the original error as its cause. Raises the result of
    :func:`to_lake_error` if the failure is one of the lake.
    """
    shut = to_lake_error(error, table)
    if shut is not None:
        raise shut from error
    stopped = _to_value_error(error, table) or EngineFailed(
        f"the engine failed: {causes.summarize(error)}", where=table, fix=repair_hint(str(error))
    )
    stopped.__cause__ = error
    return stopped


def of_one_table(error: Exception, table: str) -> ReplicatorError:
    """Return the error if it stops one table while the others continue. Raises it if another table would have it, too:
    errors that a retry may cure, StoreRefused, and :func:`to_lake_error`.
    """
    if not isinstance(error, ReplicatorError):
        return to_table_error(error, table)
    if error.retry or isinstance(error, StoreRefused):
        raise error
    return error


def _to_value_error(error: Exception, table: str) -> ValueRefused | None:
    """Return an error if a value caused the failure, None otherwise. If the expression raised it itself, its message is
    quoted; otherwise only the condition and SQLSTATE are, because Spark's message contains the value.
    """
    if is_raised_by_sql(error):
        message = f"an expression raises an error for some row: {causes.summarize(error)}"
        return ValueRefused(message, where=table, fix="Fix the row, or the SQL.")
    condition = error_condition(error)
    if condition is None or _OF_ROWS.fullmatch(condition[1]) is None:
        return None
    message = f"an expression cannot be computed for some row ({condition[0]}, SQLSTATE {condition[1]})"
    fix = (
        "Fix its SQL (`try_cast`, `try_element_at`, `nullif` and the like), or the row; `--debug` shows "
        "Spark's message."
    )
    return ValueRefused(message, where=table, fix=fix)


def repair_hint(told: str) -> str | None:
    """Return the advice for a failure with this text: a full disk, a size limit, whose Java message does not name the
    limit, or a lost file of a table. None for any other failure.
    """
    if _NO_ROOM.search(told):
        return "Free disk space for the lake and Spark's temporary files, then run again."
    if _TOO_LARGE in told:
        return "Allow the driver's user to write larger files (`ulimit -f`), then run again."
    return damage.repair_hint(told)


def to_schema_error(error: Exception, table: str) -> TableStopped:
    """Return the error of a table whose records have a schema block that cannot be read."""
    stopped = TableStopped(
        f"the schema block of a record cannot be read: {causes.summarize(error)}",
        where=table,
        fix="`replicator tail` shows the records; `--debug` shows the whole trace.",
    )
    stopped.__cause__ = error
    return stopped


def to_lake_error(error: Exception, where: str) -> Unreachable | StoreRefused | None:
    """Return the error if the object store, or another service below Spark, does not answer, is overloaded, or denies
    access: the next table would fail in the same way after the same long timeout. None for any other failure.
    """
    if not causes.is_unreachable(error):
        return s3.access_error(causes.summarize(error), where) if causes.is_access_denied(error) else None
    message = f"a service does not answer: {causes.summarize(error)}"
    return Unreachable(message, where=where, fix="Nothing is lost; run again once the service is available.")
