"""The status of one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableStatus:
    """The status of one table. ``position`` depends on the layer: bronze version, ``_seq`` of the newest row, gold
    version, or the gold version in the target's ledger.

    ``lag_events`` counts the records that the layer before has and this one lacks, for gold and publish its commits
    (None: not known); ``lag_seconds`` is the age of the newest change in this layer while there are such records, else
    0. ``deleted`` counts silver rows that the source deleted, ``unknown`` other silver rows with a value that no record
    has contained: it is NULL, and named in ``_column_seq`` (debezium.md M4). ``newest_ms`` is the time of the newest
    change in this layer, epoch milliseconds UTC: by Kafka's clock in bronze, by the source's in silver, and in gold by
    the column ``updated_at`` where a model has one. For bronze of a source whose records come from objects,
    ``lag_events`` counts objects, since their lines are not known. ``paused``: silver does not update the table.

    In the layer ``waiting`` a row is a source whose records wait until transactions are complete: their number
    (``rows``), what they wait for (``position``), the number of transactions (``lag_events``) and how long the oldest
    has waited. They are included in the ``lag_events`` of silver.

    In the layer ``dead_letters`` a row is a source with dead letters: their number (``rows``), and when the last one
    arrived (``newest_ms``).

    In the layer ``gap`` a row is a partition (``<topic>/<partition>``) with offsets that bronze lacks because an
    operator skipped them: the greatest possible number of records (``rows``), which offsets, when and by whom
    (``position``), and how long ago (``lag_seconds``). Rows of silver may be missing or outdated until a new snapshot.
    """

    layer: str
    table: str
    rows: int | None
    position: str
    lag_events: int | None = None
    lag_seconds: float | None = None
    deleted: int | None = None
    newest_ms: int | None = None
    paused: bool = False
    unknown: int | None = None
