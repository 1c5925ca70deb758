"""How records are to be read where that is not as they look: events of an outbox, deletes, compacted topics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from replicator.config.columnkeys import ColumnKeys
from replicator.config.strict import Strict
from replicator.spec import AGGREGATE_ID, EVENT_ID, Outbox

OutboxMode = Literal["router", "log", "current"]


class OutboxKeys(Strict):
    """Where events come from that stand in an outbox table (debezium.md section I); a word alone is the ``mode``."""

    mode: OutboxMode
    empty_payload: Literal["ignore", "delete"] = "ignore"
    topic: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _of_router(self) -> OutboxKeys:
        if self.mode != "router" and (self.topic is not None or self.empty_payload != "ignore"):
            raise ValueError("topic and empty_payload belong to mode router")
        return self


def _as_block(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


OutboxBlock = Annotated[
    OutboxKeys | None, BeforeValidator(_as_block, json_schema_input_type=OutboxMode | OutboxKeys | None)
]


class ShapeKeys(Strict):
    """How the records of a table, or of all of a source, are to be read where that is not as they look.
    ``outbox``: they are events. ``deletes`` is the connector's ``delete.tombstone.handling.mode``; ``drop`` needs
    ``accept_lost_deletes``. ``compacted_topic``: of a key older records may be missing.
    """

    outbox: OutboxBlock = None
    deletes: Literal["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"] | None = None
    accept_lost_deletes: bool = False
    compacted_topic: bool | None = None

    @property
    def is_router(self) -> bool:
        """Whether the records are what the outbox event router sends."""
        return self.outbox is not None and self.outbox.mode == "router"

    def over(self, source: ShapeKeys) -> ShapeKeys:
        """These, and for what they leave open those of the source."""
        own = {name: getattr(self, name) for name in ShapeKeys.model_fields}
        merged = {name: getattr(source, name) if told is None else told for name, told in own.items()}
        return ShapeKeys.model_construct(**merged)  # each was checked where it stands

    @model_validator(mode="after")
    def _told(self) -> ShapeKeys:
        if self.deletes == "drop" and not self.accept_lost_deletes:
            raise ValueError(
                "with deletes: drop no delete ever arrives and its row stays for good: choose another "
                "delete.tombstone.handling.mode in the connector, or say accept_lost_deletes: true"
            )
        return self


def build_outbox(told: ShapeKeys, keys: tuple[str, ...], columns: tuple[ColumnKeys, ...]) -> Outbox | None:
    """The outbox that a table's entry declares, whose keys and columns are these; None if it is none."""
    if told.outbox is None:
        return None
    return Outbox(
        told.outbox.mode,
        key=AGGREGATE_ID if AGGREGATE_ID in keys else EVENT_ID,
        null_deletes=told.outbox.empty_payload == "delete",
        binary=any(column.name == "payload" and column.type == "bytes" for column in columns),
        topic=told.outbox.topic,
    )
