"""Result pages of Athena (every value a text) -> Arrow, with the types of the result's metadata. Pure.

Nested values arrive as text that is not JSON (``{a=1}``), and stay text; so do times with a zone, and intervals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from replicator.errors import ReplicatorError, first_line

Page = Mapping[str, Any]

_TYPES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "varbinary": pa.binary(),
    "binary": pa.binary(),
}
_NOT_FINITE = re.compile(r"^([+-]?)Infinity$")


def batches(pages: Iterable[Page], *, has_header: bool) -> pa.RecordBatchReader:
    """Return one batch per page, each fetched lazily; only the first is fetched at once, for the columns.
    ``has_header``: the first row of the result holds the column names, as after a SELECT. A batch that holds a value
    which Arrow does not read raises ReplicatorError.
    """
    remaining = iter(pages)
    first = next(remaining)
    columns = first["ResultSetMetadata"]["ColumnInfo"]
    schema = pa.schema([pa.field(each["Name"], arrow_type(each)) for each in columns])
    rows = [row["Data"] for row in first["Rows"]]
    first_rows = rows[1:] if has_header and _is_header(rows, columns) else rows

    def made() -> Iterator[pa.RecordBatch]:
        yield _batch(first_rows, schema)
        for page in remaining:
            yield _batch([row["Data"] for row in page["Rows"]], schema)

    return pa.RecordBatchReader.from_batches(schema, made())


def arrow_type(column: Mapping[str, Any]) -> pa.DataType:
    """The type of a column by its metadata; string if Arrow has no equivalent."""
    kind = str(column["Type"]).lower()
    if kind == "decimal":
        return pa.decimal128(column["Precision"], column["Scale"])
    return _TYPES.get(kind, pa.string())


def _is_header(rows: Sequence[Sequence[Mapping[str, str]]], columns: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the first row is the header: a result may come without one (EXPLAIN), so it is compared to the names."""
    return bool(rows) and [cell.get("VarCharValue") for cell in rows[0]] == [each["Name"] for each in columns]


def _batch(rows: Sequence[Sequence[Mapping[str, str]]], schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for index, field in enumerate(schema):
        texts = [row[index].get("VarCharValue") if index < len(row) else None for row in rows]
        columns.append(_column(texts, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(texts: list[str | None], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):  # "61 62 63"
        return pa.array([None if text is None else bytes.fromhex(text) for text in texts], kind)
    if pa.types.is_floating(kind):
        texts = [None if text is None else _NOT_FINITE.sub(r"\1inf", text) for text in texts]
    try:
        return pc.cast(pa.array(texts, pa.string()), kind)
    except pa.ArrowInvalid as error:  # a year before 1 or after 9999
        fix = "Convert the column to text in the query: CAST(... AS varchar)."
        raise ReplicatorError(f"a value of Athena cannot be read: {first_line(error)}", fix=fix) from error
