"""What goes wrong where a table is read without a JVM, as an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replicator.catalog.store import SPARK_HINT
from replicator.errors import ReplicatorError, first_line

if TYPE_CHECKING:
    from replicator.spec import Table


_PANIC = "PanicException"
"""What pyo3 makes of a panic in Rust, which is no Exception: hudi-rs meets a type that it has no word for."""


@contextmanager
def translate_read_errors(table: Table) -> Iterator[None]:
    """Errors of the libraries below, which have no common root, as ours."""
    try:
        yield
    except ReplicatorError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise ReplicatorError(
            f"table {table.name} cannot be read without Spark: {first_line(error)}",
            where=table.location,
            mend=SPARK_HINT,
        ) from error
