"""What a sample table looks like to Python, and what its rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

Value = int | str | Decimal | date | bytes | None
Row = tuple[Value, ...]
Rows = Mapping[str, tuple[Row, ...]]
"""Table name -> its rows; values in the order of the table's columns."""


@dataclass(frozen=True)
class Shape:
    """One table: the Python type of each column in DDL order (NULL is always None), and the primary key."""

    columns: Mapping[str, type]
    key: tuple[str, ...]

    def record(self, row: Row) -> dict[str, Value]:
        """The row with its column names."""
        return dict(zip(self.columns, row, strict=True))

    def row(self, record: Mapping[str, Value]) -> Row:
        """The record's values in column order; a column that it does not name is NULL."""
        return tuple(record.get(column) for column in self.columns)
