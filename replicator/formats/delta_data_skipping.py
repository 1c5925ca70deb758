"""Data skipping: which files of a Delta table a batch has to read. These are the files that may hold one of its keys,
by the minimum and maximum of each column in the log (performance.md A2, A3), and small files to compact on the way.

The condition of a MERGE can only have one key range for the whole batch, or a few; here every key is compared, and no
key appears in a plan or in the log. A file without sufficient statistics may hold any key.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ByteType, DataType, DecimalType, IntegerType, LongType, ShortType, StringType, StructType

from replicator import key_spans, names
from replicator.formats.delta_state import AddedFile
from replicator.transforms import spans

MAX_BROADCAST_KEYS = 200_000
"""Batches with more keys than this do not broadcast them."""

_MAX_COMPARED_KEYS = 100_000
"""Batches with more keys than this compare key ranges instead of each key."""

_SMALL_BYTES, _SMALL_FILES = 1 << 20, 16
"""Once there are ``_SMALL_FILES`` files of up to ``_SMALL_BYTES``, the next batch rewrites them into its own file; it
has to read most of them anyway.
"""

_TIGHT, _LOOSE = (re.compile(rf'"tightBounds"\s*:\s*{word}') for word in ("true", "false"))
_WHOLE = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class BatchKeys:
    """The values of the compared ``columns`` of every key of a batch, sorted. Columns whose statistics in the log are
    rounded or ordered differently are left out.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def may_be_in(self, stats: str) -> bool:
        """Whether a file with these statistics (JSON, '' if there are none) may hold one of the keys."""
        least, greatest = _bounds(stats)
        bounds = [(least.get(column), greatest.get(column)) for column in self.columns]
        known = [(at, low, high) for at, (low, high) in enumerate(bounds) if low is not None and high is not None]
        rows = self.rows
        if known and known[0][0] == 0:
            _, low, high = known.pop(0)
            first = itemgetter(0)
            rows = rows[bisect_left(rows, low, key=first) : bisect_right(rows, high, key=first)]
        return any(all(low <= row[at] <= high for at, low, high in known) for row in rows)


def candidate_files(
    files: Sequence[AddedFile], stored: StructType, keys: Sequence[str], changes: DataFrame, count: int
) -> Sequence[AddedFile]:
    """The files that may hold a key of the changes; ``count`` is their number of rows."""
    columns = comparable_columns(keys, stored, changes.schema)
    if not columns:
        return files
    if count > _MAX_COMPARED_KEYS:
        ranges = key_spans.find([(changes, columns)])[0]
        return [file for file in files if spans.overlaps(ranges, *_bounds(file.stats))]
    rows = changes.select(*map(names.quote_spark, columns)).collect()
    sought = BatchKeys(columns, sorted(map(tuple, rows)))
    return [file for file in files if sought.may_be_in(file.stats)]


def _bounds(stats: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The minimum and maximum by column, as far as the statistics have them."""
    parsed: Mapping[str, Any] = json.loads(stats, parse_float=Decimal) if stats else {}
    return parsed.get("minValues") or {}, parsed.get("maxValues") or {}


def small_files(files: Sequence[AddedFile]) -> Sequence[AddedFile]:
    """The small files to rewrite together with the next batch; none while they are few."""
    small = [file for file in files if file.size <= _SMALL_BYTES]
    return small if len(small) >= _SMALL_FILES else ()


def loosen_bounds(stats: str) -> str:
    """Set ``tightBounds`` to false in the statistics (JSON) of a file with deleted rows: a bound need not be the value
    of a live row. All other text stays as it is. Quotes inside strings are escaped, so only the field itself matches.
    """
    if _TIGHT.search(stats):
        return _TIGHT.sub('"tightBounds":false', stats)
    return stats if _LOOSE.search(stats) else f'{stats.rstrip()[:-1]},"tightBounds":false}}'


def comparable_columns(keys: Sequence[str], stored: StructType, changed: StructType) -> tuple[str, ...]:
    """The key columns that can be compared with statistics: integers, decimals and strings on both sides.

    The log truncates strings, but rounds a maximum up, and both Python and Spark order them by code point. Timestamps
    have only milliseconds in the log.
    """
    return tuple(key for key in keys if _kind(stored[key].dataType) == _kind(changed[key].dataType) is not None)


def _kind(type_: DataType) -> str | None:
    if isinstance(type_, (*_WHOLE, DecimalType)):
        return "number"
    return "text" if type(type_) is StringType else None
