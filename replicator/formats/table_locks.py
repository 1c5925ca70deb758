"""Per-table locks within this process, so that writers and maintenance of a table wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from replicator.spec import Table


class TableLocks:
    """A lock per table, reentrant, since an ``apply`` may call ``append``."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._locks: dict[str, Any] = {}

    @contextmanager
    def of(self, table: Table) -> Iterator[None]:
        """Hold the table's lock inside the block."""
        with self._guard:
            lock = self._locks.setdefault(table.location, RLock())
        with lock:
            yield


class _Format(Protocol):
    _turns: TableLocks


Format = TypeVar("Format", bound=_Format)
Given = TypeVar("Given")
Result = TypeVar("Result")
More = ParamSpec("More")


def with_table_lock(
    method: Callable[Concatenate[Format, Given, Table, More], Result],
) -> Callable[Concatenate[Format, Given, Table, More], Result]:
    """Decorate a format's method to hold the lock of the table that is its second argument."""

    @wraps(method)
    def waiting(self: Format, given: Given, table: Table, /, *args: More.args, **kwargs: More.kwargs) -> Result:
        with self._turns.of(table):
            return method(self, given, table, *args, **kwargs)

    return waiting
