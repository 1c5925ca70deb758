"""Removal of superseded records before parsing: a record that a newer one replaces completely need not be parsed
(performance.md A5, architecture section 6 step 2).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from replicator.transforms import decode
from replicator.transforms.dead_letters import COORDINATES

_RANKING_COLUMNS = ("key", "form", "held", "_seq")
_FEW = 500_000
"""Up to this many remaining records are looked up by their coordinates, so that the text of the others is not shuffled.
"""


def drop_superseded(records: DataFrame, ordered: DataFrame, *, tied: bool, held: bool, keys: int) -> DataFrame:
    """Keep the newest record by ``_seq`` of each key and form, with the columns that :func:`decode.decode` reads. A
    record without a position counts as the newest, so that it is not overlooked.

    ``records`` all have a Kafka key; ``ordered`` are the same with their ``_seq``; ``keys`` is the approximate number
    of keys. If some may be ``tied``, all records stay of a key that came from several partitions (Q11). If some are
    ``held``, all records stay of a key with a record that may hold the placeholder: an older change may have the value
    that a newer one left out (M6).
    """
    if keys > _FEW:
        return _keep_latest(ordered, tied=tied, held=held).select(*decode.INPUT_COLUMNS)
    few = _keep_latest(ordered.select(*COORDINATES, *_RANKING_COLUMNS), tied=tied, held=held).select(
        *COORDINATES, "_seq"
    )
    unordered = records.select(*[name for name in decode.INPUT_COLUMNS if name != "_seq"])
    return unordered.join(F.broadcast(few), list(COORDINATES)).select(*decode.INPUT_COLUMNS)


def _keep_latest(ordered: DataFrame, *, tied: bool, held: bool) -> DataFrame:
    """The records that stay. All windows share one sort order, with a hash of the key first: the keys' texts have long
    common prefixes.
    """
    of_key, of_form = ("_hash", "key"), ("_hash", "key", "form")
    newest_first = Window.partitionBy(*of_form).orderBy(F.col("_seq").desc_nulls_first())
    marked = ordered.withColumn("_hash", F.xxhash64("key")).withColumn("_place", F.row_number().over(newest_first))
    stays = F.col("_place") == 1
    if held:
        marked = marked.withColumn("_held", F.max("held").over(Window.partitionBy(*of_form)))
        stays = stays | F.col("_held")
    if tied:
        part, everywhere = F.struct("topic", "partition"), Window.partitionBy(*of_key)
        marked = marked.withColumn("_scattered", F.min(part).over(everywhere) != F.max(part).over(everywhere))
        stays = stays | F.col("_scattered")
    return marked.where(stays)
