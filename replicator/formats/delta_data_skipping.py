"""Which files of a Delta table a batch has to do with: those that may hold one of its keys, told by the least and the
greatest value that the log has of each column of each file (performance.md A2, A3), and small ones that it takes along.

A range of keys in the condition of a MERGE is one for the whole batch, or a few; here every key is compared, and none
of them is in a plan or in the log. A file of which the log does not tell enough may hold any key.
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
"""The keys of a larger batch are not sent to every task."""

_MAX_COMPARED_KEYS = 100_000
"""Of a batch of more keys not each is compared, but where they are."""

_SMALL_BYTES, _SMALL_FILES = 1 << 20, 16
"""So many files of up to so many bytes become one with the next batch, which has to read most of them anyway."""

_TIGHT, _LOOSE = (re.compile(rf'"tightBounds"\s*:\s*{word}') for word in ("true", "false"))
_WHOLE = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class BatchKeys:
    """The values of the compared ``columns`` of every key of a batch, sorted; columns of which the log rounds values,
    or tells them in another order than theirs, are not among them.
    """

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def may_be_in(self, stats: str) -> bool:
        """Whether a file with these statistics (JSON, '' where there are none) may hold one of the keys."""
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
    """The files that may hold a key of the changes, of which there are so many."""
    columns = comparable_columns(keys, stored, changes.schema)
    if not columns:
        return files
    if count > _MAX_COMPARED_KEYS:
        lie = key_spans.find([(changes, columns)])[0]
        return [file for file in files if spans.overlaps(lie, *_bounds(file.stats))]
    rows = changes.select(*map(names.quote_spark, columns)).collect()
    sought = BatchKeys(columns, sorted(map(tuple, rows)))
    return [file for file in files if sought.may_be_in(file.stats)]


def _bounds(stats: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The least and the greatest value of columns, as far as they are told."""
    told: Mapping[str, Any] = json.loads(stats, parse_float=Decimal) if stats else {}
    return told.get("minValues") or {}, told.get("maxValues") or {}


def small_files(files: Sequence[AddedFile]) -> Sequence[AddedFile]:
    """The small files that become one with the rows of the next batch; none while they are few."""
    small = [file for file in files if file.size <= _SMALL_BYTES]
    return small if len(small) >= _SMALL_FILES else ()


def loosen_bounds(stats: str) -> str:
    """Statistics (JSON) of a file of which some rows are gone: no bound needs to be a row's value. The text of all else
    stays as it is. Quotes within texts are escaped, so that only the name itself is found.
    """
    if _TIGHT.search(stats):
        return _TIGHT.sub('"tightBounds":false', stats)
    return stats if _LOOSE.search(stats) else f'{stats.rstrip()[:-1]},"tightBounds":false}}'


def comparable_columns(keys: Sequence[str], stored: StructType, changed: StructType) -> tuple[str, ...]:
    """The columns of a key that can be compared with statistics: whole numbers, decimals and texts on both sides.

    Texts are cut off in the log, but upwards where they are the greatest, and both Python and Spark order them by their
    code points. Of instants the log knows milliseconds only.
    """
    return tuple(key for key in keys if _kind(stored[key].dataType) == _kind(changed[key].dataType) is not None)


def _kind(type_: DataType) -> str | None:
    if isinstance(type_, (*_WHOLE, DecimalType)):
        return "number"
    return "text" if type(type_) is StringType else None
