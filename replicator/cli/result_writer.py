"""Writes the rows of an answer to stdout or a file, as a table, CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from replicator.cli import atomic_file
from replicator.cli.console import narrate, print_table
from replicator.cli.options import RowFormat
from replicator.errors import ConfigError, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyarrow import parquet

    from replicator.protocols.engine import Answer

MOST_SHOWN = 1_000

_SUFFIXES = {f".{form.value}": form for form in (RowFormat.csv, RowFormat.json, RowFormat.parquet)}


def resolve_format(form: RowFormat | None, output: Path | None) -> RowFormat:
    """Return the output format: the requested one, else that of the file's suffix, else a table on stdout. Raises
    ConfigError for a format that the output does not support.
    """
    chosen = form or (RowFormat.table if output is None else _SUFFIXES.get(output.suffix.lower()))
    if output is None and chosen is RowFormat.parquet:
        raise ConfigError("Parquet output needs a file", fix="Add --output FILE.parquet.")
    if output is not None and chosen in (None, RowFormat.table):
        raise ConfigError(
            "the format of the file is unknown: CSV, JSON or Parquet",
            where=str(output),
            fix="Add --format, or a suffix to its name.",
        )
    return chosen or RowFormat.table


def resolve_limit(form: RowFormat, limit: int | None) -> int | None:
    """Return how many rows are written: the requested number, else the first thousand of a table and all of other
    formats.
    """
    return MOST_SHOWN if limit is None and form is RowFormat.table else limit


def write(answer: Answer, form: RowFormat, limit: int | None, output: Path | None = None) -> None:
    """Write at most ``limit`` rows and report whether there are more. In CSV, NULL is an empty field and an empty text
    ``""``.

    A file appears complete or not at all. Raises ConfigError where two columns of JSON or Parquet have one name.
    """
    if form in (RowFormat.json, RowFormat.parquet):
        _refuse_duplicates(answer.columns)
    if form is RowFormat.parquet and output is not None:
        more, written = atomic_file.write_atomically(output, lambda path: _write_parquet(answer, path, limit))
    elif output is not None:
        more, written = atomic_file.write_atomically(output, lambda path: _write_file(answer, form, limit, path))
    else:
        more, written = _write(answer, form, limit, sys.stdout)
    if output is not None:
        narrate(f"{written} {'row' if written == 1 else 'rows'} in {output}")
    if more:
        is_shortened = form is RowFormat.table and limit == MOST_SHOWN
        ways = "--limit N, or --format csv or json," if is_shortened else "a greater --limit"
        shown = "row is" if limit == 1 else f"{limit} rows are"
        narrate(f"only the first {shown} shown: {ways} shows more", "yellow")


def _refuse_duplicates(columns: Sequence[str]) -> None:
    twins = [name for name, count in Counter(columns).items() if count > 1]
    if twins:
        raise ConfigError(f"two columns are named {twins[0]!r}", fix="Rename one of them with AS.")


def _write_file(answer: Answer, form: RowFormat, limit: int | None, path: Path) -> tuple[bool, int]:
    with path.open("w", encoding="utf-8", newline="") as file:
        return _write(answer, form, limit, file)


def _write(answer: Answer, form: RowFormat, limit: int | None, to: TextIO) -> tuple[bool, int]:
    """Return whether there are more rows, and how many were written."""
    if form is RowFormat.json:
        objects = answer.objects()
        count = _write_json(islice(objects, limit), to)
        return next(objects, None) is not None, count
    texts = answer.texts()
    shown = islice(texts, limit)
    count = _write_csv(answer.columns, shown, to) if form is RowFormat.csv else _write_table(answer.columns, shown)
    return next(texts, None) is not None, count


def _write_table(header: Sequence[str], rows: Iterator[Sequence[str | None]]) -> int:
    shown = list(rows)
    print_table(header, shown)
    return len(shown)


def _write_csv(header: Sequence[str], rows: Iterator[Sequence[str | None]], to: TextIO) -> int:
    plain = csv.writer(to, lineterminator="\n")
    count = -1
    for count, row in enumerate(chain([header], rows)):  # noqa: B007 - the last one is how many there were
        # before Python 3.13 the csv module does not quote a carriage return, at which readers end the row
        if None in row or "" in row or any("\r" in cell for cell in row if cell):
            to.write(",".join("" if cell is None else _quoted(cell) for cell in row) + "\n")
        else:
            plain.writerow(row)
    return count


def _quoted(cell: str) -> str:
    special = not cell or any(mark in cell for mark in '",\r\n')
    return '"' + cell.replace('"', '""') + '"' if special else cell


def _write_json(objects: Iterator[str], to: TextIO) -> int:
    count = 0
    for count, line in enumerate(objects, start=1):
        to.write(f"{'[' if count == 1 else ','}{line}\n")
    to.write("]\n" if count else "[]\n")
    return count


def _write_parquet(answer: Answer, path: Path, limit: int | None) -> tuple[bool, int]:
    rows, left, count = answer.batches(), limit, 0
    with _parquet(path, rows.schema) as writer:
        for batch in rows:
            cut = batch if left is None else batch.slice(0, left)
            writer.write_batch(cut)
            count += cut.num_rows
            if left is not None and batch.num_rows > left:
                return True, count
            left = None if left is None else left - cut.num_rows
    return False, count


def _parquet(path: Path, schema: pa.Schema) -> parquet.ParquetWriter:
    """Open a new file. Raises ConfigError for a type that Parquet does not have."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetWriter(path, schema, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        fix = "Convert such a column to text with CAST, or write CSV or JSON."
        raise ConfigError(f"Parquet has no such type: {first_line(error)}", fix=fix) from error
