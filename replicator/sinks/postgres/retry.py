"""The meaning of a SQLSTATE for the caller (reliability.md F-P9), and the waits between attempts."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import psycopg2
from psycopg2 import errorcodes

from replicator.errors import TargetRefused, Unreachable

LOG = logging.getLogger(__name__)
R = TypeVar("R")

# connection, resources, shutdown, files; then serialization, deadlock, lock timeout, cancelled by a timeout, a standby,
# a transaction that the server ended for its duration
_RETRY = ("08", "53", "57P0", "58", "40001", "40P01", "55P03", "57014", "25006", "25P03", "25P04")
_ONLY_NAMES = ("0A", "2B", "42", errorcodes.OBJECT_NOT_IN_PREREQUISITE_STATE)
_ONLY_SIZES = "54"
"""The class of limits such as the size of a row, whose messages have names and numbers; those of functions that parse
texts may have more.
"""
_UNKNOWN_NAMES = (errorcodes.UNDEFINED_TABLE, errorcodes.UNDEFINED_FUNCTION, errorcodes.UNDEFINED_OBJECT)
_FUNCTION = re.compile(r"^PL/pgSQL function (.+\)) line \d+", re.MULTILINE)

_CURED = {
    errorcodes.READ_ONLY_SQL_TRANSACTION: (
        "it accepts writes (it is a standby, or `default_transaction_read_only` is on, for its user, database or "
        "server)"
    ),
    errorcodes.LOCK_NOT_AVAILABLE: (
        "no other session locks the table or publishes to its schema, or set a longer `lock_timeout` in the target's "
        "`options`"
    ),
    errorcodes.QUERY_CANCELED: (
        "its statements are faster, or set a longer `statement_timeout` in the target's `options`"
    ),
}
"""When to run again, by SQLSTATE."""

NOT_A_MODEL = ("the batch", "the ledger")
"""Subjects of translated errors that are not a model."""


def is_retryable(sqlstate: str | None) -> bool:
    """Whether the same statement may succeed later. No SQLSTATE at all means that the connection was lost."""
    return sqlstate is None or sqlstate.startswith(_RETRY)


@dataclass(frozen=True)
class Backoff:
    """Waits between attempts: seconds, doubling from ``first`` to ``longest``, each shortened by up to half at random.

    ``retries`` counts the attempts after the first one; 0 means a single attempt.
    """

    retries: int = 5
    first: float = 0.2
    longest: float = 5.0

    def delays(self) -> Iterator[float]:
        """Yield the seconds to wait before each retry."""
        for number in range(self.retries):
            yield min(self.longest, self.first * 2**number) * random.uniform(0.5, 1.0)  # noqa: S311  no secret

    def retrying(self, attempt: Callable[[], R]) -> R:
        """Return the result of ``attempt``, retried while it raises Unreachable and retries are left."""
        for wait in self.delays():
            try:
                return attempt()
            except Unreachable as error:  # noqa: PERF203  the wait is what takes time
                LOG.warning("postgres_retry wait_seconds=%.1f reason=%s", wait, error)
                time.sleep(wait)
        return attempt()


@contextmanager
def translate_errors(model: str, place: str) -> Iterator[None]:
    """Translate psycopg2's errors to Unreachable or TargetRefused (where = the model).

    The original is not chained, since its text contains row values.
    """
    try:
        yield
    except psycopg2.Error as error:
        if error.pgcode is None and not isinstance(error, (psycopg2.OperationalError, psycopg2.InterfaceError)):
            raise
        raise error_of_sqlstate(error.pgcode, model, place, *_error_details(error), function=_function(error)) from None


def error_of_sqlstate(
    state: str | None, model: str, place: str, *details: str, function: str | None = None
) -> Unreachable | TargetRefused:
    """The error for one SQLSTATE raised in this ``function``; ``details`` must not contain row values."""
    condition = _condition(state)
    if is_retryable(state):
        fix = f"Run again once {_CURED.get(state or '', 'Postgres has recovered')}: nothing of the batch is visible."
        return Unreachable(f"Postgres interrupted the publication of {model} ({condition}).", where=place, fix=fix)
    detail = ", ".join(part for part in (*details, f"in function {function}" if function else "") if part)
    return refused_error(model, f"{condition}{' - ' + detail if detail else ''}.", _hint(state, function))


def refused_error(model: str, what: str, fix: str) -> TargetRefused:
    """The error for what Postgres refuses to a model, or to one of NOT_A_MODEL."""
    subject = model if model in NOT_A_MODEL else f"model {model}"
    return TargetRefused(f"Postgres refused {subject}: {what}", where=model, fix=fix)


def _hint(state: str | None, function: str | None) -> str:
    if state == errorcodes.INSUFFICIENT_PRIVILEGE:
        return "Grant it to the target's user, or have the owner do it; then run publish again."
    if state in _UNKNOWN_NAMES and function:
        return f"It runs without a search path, so set one for it: ALTER FUNCTION {function} SET search_path = ..."
    return "Fix the model or the table and run publish again."


def _error_details(error: psycopg2.Error) -> Iterator[str]:
    """Names that Postgres reports; its message only if errors of its class mention identifiers alone."""
    diag, state = error.diag, error.pgcode or ""
    if diag.column_name:
        yield f"column {diag.column_name}"
    if diag.constraint_name:
        yield f"constraint {diag.constraint_name}"
    elif state == errorcodes.CHECK_VIOLATION and diag.table_name:
        yield f"no partition of table {diag.table_name} accepts a row"
    elif state == errorcodes.CARDINALITY_VIOLATION and not diag.context:
        yield "two keys of the model are equal in the table"
    is_size = state.startswith(_ONLY_SIZES) and (diag.context or "COPY ").startswith("COPY ")
    if (is_size or state.startswith(_ONLY_NAMES)) and diag.message_primary:
        yield diag.message_primary


def _function(error: psycopg2.Error) -> str | None:
    """The user-defined function, such as a trigger's, in which the error was raised."""
    found = _FUNCTION.search(error.diag.context or "")
    return found.group(1) if found else None


def _condition(state: str | None) -> str:
    if state is None:
        return "connection lost"
    try:
        return f"{errorcodes.lookup(state).lower().replace('_', ' ')}, SQLSTATE {state}"
    except KeyError:
        return f"SQLSTATE {state}"
