"""Of the records of a table those that can decide what its rows become: what an other one replaces whole need not be
parsed (performance.md A5, architecture section 6 step 2).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from replicator.transforms import decode
from replicator.transforms.dead_letters import COORDINATES

_RANKING_COLUMNS = ("key", "form", "held", "_seq")
_FEW = 500_000
"""Up to so many records that stay are looked up by their places, so that the others' texts go nowhere."""


def drop_superseded(records: DataFrame, ordered: DataFrame, *, tied: bool, held: bool, keys: int) -> DataFrame:
    """Records, each with its key in Kafka, and the same ``ordered`` -> of each key in one form the newest by ``_seq``,
    with what :func:`decode.decode` reads; one without a position counts as the newest, so that nobody overlooks it.
    There are about so many ``keys``.

    All records stay of a key that came from several partitions, where some may be ``tied`` (Q11), and of one with a
    record that may hold the placeholder, where some are ``held``: what a newer change left out an older one tells (M6).
    """
    if keys > _FEW:
        return _keep_latest(ordered, tied=tied, held=held).select(*decode.INPUT_COLUMNS)
    few = _keep_latest(ordered.select(*COORDINATES, *_RANKING_COLUMNS), tied=tied, held=held).select(
        *COORDINATES, "_seq"
    )
    unordered = records.select(*[name for name in decode.INPUT_COLUMNS if name != "_seq"])
    return unordered.join(F.broadcast(few), list(COORDINATES)).select(*decode.INPUT_COLUMNS)


def _keep_latest(ordered: DataFrame, *, tied: bool, held: bool) -> DataFrame:
    """The records that stay. All windows are over one order: the hash tells keys apart at once, whose texts begin
    alike.
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
