"""Errors of reading a table without a JVM, translated to those of this project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replicator import s3
from replicator.catalog.store import SPARK_HINT
from replicator.errors import ReplicatorError, first_line

if TYPE_CHECKING:
    from replicator.spec import Table


_PANIC = "PanicException"
"""The exception for a panic in Rust, made by pyo3, which is not an Exception: hudi-rs panics at an unknown type."""


@contextmanager
def translate_read_errors(table: Table) -> Iterator[None]:
    """Translate the errors of the libraries below, which have no common base class."""
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
            fix=s3.CREDENTIALS_HINT if s3.lacks_credentials(str(error)) else SPARK_HINT,
        ) from error
