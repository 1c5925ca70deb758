"""How records are read where they do not show it themselves: outbox events, deletes, compacted topics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from replicator.config.columnkeys import ColumnKeys
from replicator.config.strict import Strict
from replicator.spec import AGGREGATE_ID, EVENT_ID, Outbox

OutboxMode = Literal["router", "log", "current"]


class OutboxKeys(Strict):
    """How the events of an outbox table are read (debezium.md section I); a single word is the ``mode``."""

    mode: OutboxMode
    empty_payload: Literal["ignore", "delete"] = "ignore"
    topic: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _of_router(self) -> OutboxKeys:
        if self.mode != "router" and (self.topic is not None or self.empty_payload != "ignore"):
            raise ValueError("topic and empty_payload apply only to mode router")
        return self


def _as_block(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


OutboxBlock = Annotated[
    OutboxKeys | None, BeforeValidator(_as_block, json_schema_input_type=OutboxMode | OutboxKeys | None)
]


class ShapeKeys(Strict):
    """How the records of a table, or all of a source, are read where they do not show it themselves. ``outbox``: they
    are events. ``deletes`` is the connector's ``delete.tombstone.handling.mode``; ``drop`` requires
    ``accept_lost_deletes``. ``compacted_topic``: older records of a key may be missing.
    """

    outbox: OutboxBlock = None
    deletes: Literal["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"] | None = None
    accept_lost_deletes: bool = False
    compacted_topic: bool | None = None

    @property
    def is_router(self) -> bool:
        """Whether the records are those of Debezium's outbox event router."""
        return self.outbox is not None and self.outbox.mode == "router"

    def over(self, source: ShapeKeys) -> ShapeKeys:
        """Return these keys, with the values of the source for those that are not set."""
        own = {name: getattr(self, name) for name in ShapeKeys.model_fields}
        merged = {name: getattr(source, name) if value is None else value for name, value in own.items()}
        return ShapeKeys.model_construct(**merged)  # both were validated where they are written

    @model_validator(mode="after")
    def _told(self) -> ShapeKeys:
        if self.deletes == "drop" and not self.accept_lost_deletes:
            raise ValueError(
                "with deletes: drop, no delete ever arrives and its row stays forever: choose another "
                "delete.tombstone.handling.mode in the connector, or set accept_lost_deletes: true"
            )
        return self


def build_outbox(shape: ShapeKeys, keys: tuple[str, ...], columns: tuple[ColumnKeys, ...]) -> Outbox | None:
    """Return the outbox that a table's entry with these keys and columns declares; None if it declares none."""
    if shape.outbox is None:
        return None
    return Outbox(
        shape.outbox.mode,
        key=AGGREGATE_ID if AGGREGATE_ID in keys else EVENT_ID,
        null_deletes=shape.outbox.empty_payload == "delete",
        binary=any(column.name == "payload" and column.type == "bytes" for column in columns),
        topic=shape.outbox.topic,
    )
