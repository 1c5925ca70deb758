"""Where one table stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableStatus:
    """One table. ``position`` is the layer's own: bronze version, ``_seq`` of the newest row, gold version, ledger
    version.

    ``lag_events`` counts records that are in the layer before and not here, for gold and publish its commits (None:
    not known); ``lag_seconds`` is the age of the newest change that is here while there are such records, else 0.
    ``deleted`` counts rows of silver that the source deleted, ``unknown`` those of its others that lack a value which
    no record has told: it is NULL, and named in ``_column_seq`` (debezium.md M4). ``newest_ms`` is the time of the
    newest change that is here, epoch milliseconds UTC: by Kafka's clock in bronze, by the source's in silver, and in
    gold by the column ``updated_at`` where a model has one. Before bronze, of a source whose records lie in objects,
    ``lag_events`` counts these: nobody knows their lines. ``paused``: silver leaves the table as it is.

    In the layer ``waiting`` a source is told of which records wait until transactions are whole: how many (``rows``),
    what for (``position``), their transactions (``lag_events``) and how long the oldest does. They are in the
    ``lag_events`` of silver, too.

    In the layer ``dead_letters`` a source is told of that has some: how many (``rows``), and when the last one came
    (``newest_ms``).

    In the layer ``gap`` a partition (``<topic>/<partition>``) is told of which offsets are not in bronze, since an
    operator passed over them: at most how many records (``rows``), which, when and by whom (``position``), and how long
    ago (``lag_seconds``). Rows of silver may be missing or old until a new snapshot.
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
