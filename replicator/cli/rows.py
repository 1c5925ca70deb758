"""Rows on stdout as a table, CSV or JSON. Numbers and times are written by Spark, so that decimals stay exact."""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from replicator.cli.console import narrate, print_table, print_text
from replicator.cli.options import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame

MOST_SHOWN = 1_000


def write(rows: DataFrame, form: Rows) -> None:
    """Print all rows; as a table the first thousand, and say so. A CSV field is empty for NULL, ``""`` for no text."""
    if form is Rows.json:
        _write_json(rows)
    elif form is Rows.csv:
        _write_csv(rows.columns, _texts(rows))
    else:
        shown = list(_texts(rows.limit(MOST_SHOWN + 1)))
        print_table(rows.columns, shown[:MOST_SHOWN])
        if len(shown) > MOST_SHOWN:
            narrate(f"the first {MOST_SHOWN} rows; --format csv or json prints all", style="yellow")


def _write_csv(header: Sequence[str], rows: Iterator[Sequence[str | None]]) -> None:
    plain = csv.writer(sys.stdout, lineterminator="\n")
    plain.writerow(header)
    for row in rows:
        if None in row or "" in row:
            sys.stdout.write(",".join("" if cell is None else _quoted(cell) for cell in row) + "\n")
        else:
            plain.writerow(row)


def _quoted(cell: str) -> str:
    special = not cell or any(mark in cell for mark in '",\r\n')
    return '"' + cell.replace('"', '""') + '"' if special else cell


def _write_json(rows: DataFrame) -> None:
    lines = rows.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"})).toLocalIterator()
    separator = "["
    for (line,) in lines:
        print_text(f"{separator}{line}")
        separator = ","
    print_text("[]" if separator == "[" else "]")


def _texts(rows: DataFrame) -> Iterator[list[str | None]]:
    """Every row as texts. Columns go by position: a join may have two of one name."""
    numbered = rows.toDF(*[f"c{index}" for index in range(len(rows.columns))])
    written = [_text(F.col(field.name), field.dataType) for field in numbered.schema.fields]
    return (list(row) for row in numbered.select(*written).toLocalIterator())


def _text(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, T.BinaryType):
        return F.base64(column)
    if isinstance(kind, (T.StructType, T.ArrayType, T.MapType)):
        return F.to_json(column)
    return column.cast("string")
