"""What goes wrong where a table is read without a JVM, as an error of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from replicator.catalog.store import SPARK
from replicator.errors import ReplicatorError, first_line

if TYPE_CHECKING:
    from replicator.spec import Table


@contextmanager
def reading(table: Table) -> Iterator[None]:
    """Errors of the libraries below, which have no common root, as ours."""
    try:
        yield
    except ReplicatorError:
        raise
    except Exception as error:
        raise ReplicatorError(
            f"table {table.name} cannot be read without Spark: {first_line(error)}", where=table.location, mend=SPARK
        ) from error
