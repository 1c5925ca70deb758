"""A Hudi table without a JVM, by hudi-rs: copy on write, and merge on read with its log files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.catalog import extras

if TYPE_CHECKING:
    import pyarrow as pa

    from replicator.catalog.store import Store

_META_PREFIX = "_hoodie_"


def scan(store: Store, location: str) -> pa.RecordBatchReader:
    """Return all rows of the newest version, to be read once, with the columns as stored, without Hudi's own."""
    import pyarrow as pa  # noqa: PLC0415 - on demand

    hudi = extras.load("hudi")
    table = hudi.HudiTable(store.url(location), store.options())
    fields = [field for field in table.get_schema() if not field.name.startswith(_META_PREFIX)]
    schema = pa.schema([pa.field(field.name, field.type) for field in fields])
    stream = table.read_stream(hudi.HudiReadOptions())
    return pa.RecordBatchReader.from_batches(schema, (_select_columns(batch, schema) for batch in stream))


def _select_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - on demand

    return pa.RecordBatch.from_arrays([batch.column(field.name).cast(field.type) for field in schema], schema=schema)
