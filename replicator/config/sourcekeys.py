"""The keys of a file of ``conf/sources``, and which of them can be combined."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, field_validator, model_validator

from replicator.config import kafka_options, tablekeys
from replicator.config.connectorkeys import ConnectorKeys
from replicator.config.databasekeys import DatabaseKeys
from replicator.config.declarekeys import DeclareKeys
from replicator.config.shapekeys import ShapeKeys
from replicator.config.strict import Text, refuse_password
from replicator.config.tablekeys import OneTable, Pattern, SequenceBy, TableKeys, TableName
from replicator.debezium.handling_modes import HandlingModes
from replicator.errors import ConfigError
from replicator.spec.connectors import BINARY, DECIMALS, PLACEHOLDER, TIMES

_NULL_DELETES = ("tombstone", "delete-to-tombstone")
BinlogPosition = Literal["file_pos", "file_pos_row", "gtid"]
TimePrecision = Literal[
    "adaptive",
    "adaptive_time_microseconds",
    "connect",
    "isostring",
    "microseconds",
    "nanoseconds",
    "structured",
]


class SourceKeys(DeclareKeys, ShapeKeys):
    """A file of ``conf/sources``: ``include``, ``exclude`` or ``topics`` (a regular expression that is valid in both
    Java and Python, since it is used by either) limit what is read. A table of SQL Server is named ``<schema>.<table>``
    there, in any database, or ``<database>.<schema>.<table>``.

    ``outbox``, ``deletes`` and ``compacted_topic`` are the defaults for its tables. ``signal_data_collection`` is the
    connector's ``signal.data.collection``, ``avro_bytes`` is how JSON converted from Avro represents bytes.
    ``binlog_position``: ``gtid`` where MariaDB's servers fail over and one GTID domain is written to, ``file_pos_row``
    where MySQL does not compress transactions (debezium.md Q4). ``objects`` is a folder of any file system where a sink
    connector has written the records (docs/objects.md); they are not read from Kafka then. ``consistency: transaction``
    shows transactions completely or not at all; the connector needs ``provide.transaction.metadata`` then.
    ``decimal_handling_mode``, ``binary_handling_mode`` and ``time_precision_mode`` are the connector's (types.md Y13),
    where ``connector`` does not set them: they apply to declared types that do not specify their form. ``database`` is
    the login to the source, which ``verify`` compares silver with; ``connector`` describes how it is captured, for
    ``replicator connect``.
    """

    name: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("name", "source"))]
    topics: Pattern | None = None
    include: tuple[OneTable, ...] = ()
    exclude: tuple[OneTable, ...] = ()
    bootstrap_servers: str | None = None
    placeholder: str = Field(default=PLACEHOLDER, min_length=1)
    sequence_by: SequenceBy = "position"
    signal_data_collection: TableName | None = None
    avro_bytes: Literal["base64", "latin1"] = "base64"
    binlog_position: BinlogPosition = "file_pos"
    options: dict[str, Text] = Field(default_factory=dict)
    objects: str | None = Field(default=None, min_length=1)
    consistency: Literal["eventual", "transaction"] = "eventual"
    decimal_handling_mode: Literal["precise", "string", "double"] | None = None
    binary_handling_mode: Literal["bytes", "base64", "base64-url-safe", "hex"] | None = None
    time_precision_mode: TimePrecision | None = None
    database: DatabaseKeys | None = None
    connector: ConnectorKeys | None = None

    @model_validator(mode="before")
    @classmethod
    def _routed(cls, values: Any) -> Any:
        """Tables without an ``outbox`` of their own have the router's events if the source does, and are checked so."""
        outbox = values.get("outbox") if isinstance(values, Mapping) else None
        mode = outbox.get("mode") if isinstance(outbox, Mapping) else outbox
        tables = values.get("tables") if mode == "router" else None
        if not isinstance(tables, Mapping):
            return values
        routed = {
            name: {"outbox": mode, **table} if isinstance(table, Mapping) else table for name, table in tables.items()
        }
        return {**values, "tables": routed}

    @field_validator("objects")
    @classmethod
    def _folder(cls, objects: str | None) -> str | None:
        if objects is None or "://" not in objects:
            return None if objects is None else os.path.abspath(os.path.expanduser(objects))
        return refuse_password(objects).rstrip("/")

    @field_validator("placeholder")
    @classmethod
    def _decoded(cls, placeholder: str) -> str:
        if placeholder.startswith("hex:") and not re.fullmatch("hex:(?:[0-9a-fA-F]{2})+", placeholder):
            raise ValueError("hex: must be followed by pairs of hex digits, at least one")
        return placeholder

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return kafka_options.validate(options)

    @model_validator(mode="after")
    def _timed(self) -> SourceKeys:
        tables = {**self.tables, "": TableKeys()}
        for name, table in tables.items():
            shape, of_table = self._shape(table), f" of {name}" if name else ""
            if (table.sequence_by or self.sequence_by) == "position":
                continue
            if shape.compacted_topic:
                raise ValueError(f"compacted_topic{of_table} needs positions: a tombstone has no source.ts_ms")
            if shape.is_router:
                raise ValueError(f"outbox{of_table}: events of the router have no source.ts_ms: sequence_by: position")
        return self

    @model_validator(mode="after")
    def _transactional(self) -> SourceKeys:
        if self.consistency != "transaction":
            return self
        every: list[ShapeKeys] = [self, *self.tables.values()]
        if self.include:
            topic = f"{self.name}.transaction"
            raise ValueError(
                f"consistency: transaction reads {topic}: give topics, a regular expression that matches it"
            )
        if self.is_router:
            raise ValueError("consistency: transaction needs positions, which the outbox router does not send")
        if any(keys.compacted_topic for keys in every):
            raise ValueError("consistency: transaction counts events: those that compaction removed never arrive")
        if any(table.shards is not None for table in self.tables.values()):
            raise ValueError("consistency: transaction counts events by table: shards have table names of their own")
        if self.connector is not None and self.connector.kind == "sqlserver" and len(self.connector.databases) > 1:
            raise ValueError(
                "consistency: transaction needs one order of all transactions, which databases of SQL Server do not "
                "have: capture each database by a source of its own"
            )
        return self

    @model_validator(mode="after")
    def _signalled(self) -> SourceKeys:
        connector = self.connector
        for key, topic in (
            ("signals", connector and connector.signals),
            ("notifications", connector and connector.notifications),
        ):
            if topic and topic.startswith(f"{self.name}."):
                raise ValueError(f"{key}: {topic} looks like the topic of a table: name it {self.name}-{key}")
        return self

    @model_validator(mode="after")
    def _in_objects(self) -> SourceKeys:
        if self.objects is None:
            return self
        if self.bootstrap_servers is not None or self.options:
            raise ValueError("give objects, or bootstrap_servers and options, not both: each says where records are")
        every: list[ShapeKeys] = [self, *self.tables.values()]
        if any(keys.compacted_topic or keys.deletes in _NULL_DELETES for keys in every):
            raise ValueError("sinks write no nulls to objects: compacted_topic and null deletes need Kafka")
        return self

    def _shape(self, table: TableKeys) -> ShapeKeys:
        return table.over(self)

    @model_validator(mode="after")
    def _appended(self) -> SourceKeys:
        for table in self.tables.values():
            tablekeys.refuse_append_only_conflict(table, self._shape(table))
        return self

    @model_validator(mode="after")
    def _one_of(self) -> SourceKeys:
        if self.topics is not None and self.include:
            raise ValueError("give topics or include, not both: each says which topics are read")
        if self.topics is not None and self.exclude:
            raise ValueError("give topics or exclude, not both: leave the table out of the regular expression")
        if self.include and self.exclude:
            raise ValueError("give include or exclude, not both: what is not included is not read")
        if self.outbox is not None and (self.outbox.topic is not None or self.outbox.empty_payload != "ignore"):
            raise ValueError("outbox of a whole source is only a mode: set topic and empty_payload for a table")
        routed = [
            table.outbox.topic for table in self.tables.values() if table.outbox is not None and table.outbox.topic
        ]
        unread = next(
            (t for t in routed if self.topics is None and (self.include or not t.startswith(f"{self.name}."))), None
        )
        if unread is not None:
            raise ValueError(
                f"the outbox topic {unread!r} is not read: give topics, a regular expression that matches it"
            )
        return self

    @model_validator(mode="after")
    def _captured(self) -> SourceKeys:
        if self.connector is None:
            return self
        if self.database is not None and self.database.kind != self.connector.kind:
            raise ValueError("database and connector belong to the same source: give both the same kind")
        if (self.connector.form == "outbox") != self.is_router:
            raise ValueError("form: outbox of the connector and outbox: router of the source require each other")
        return self

    @model_validator(mode="after")
    def _written(self) -> SourceKeys:
        captured = self._captured_modes()
        for key, own in self._own_modes().items():
            its = captured.get(key, own)
            if own != its:
                raise ValueError(f"{key} of the source is {own}, but {its} of its connector: set it in one place")
        try:
            HandlingModes.of(self.modes())
        except ConfigError as error:
            raise ValueError(f"{error.what}. {error.fix}") from error
        return self

    def modes(self) -> dict[str, str]:
        """Return the known settings of the connector that determine how values of declared types are written,
        by key.
        """
        return {**self._captured_modes(), **self._own_modes()}

    def _captured_modes(self) -> Mapping[str, str]:
        return {} if self.connector is None else self.connector.connector(self.name, "").modes

    def _own_modes(self) -> dict[str, str]:
        modes = {
            DECIMALS: self.decimal_handling_mode,
            BINARY: self.binary_handling_mode,
            TIMES: self.time_precision_mode,
        }
        return {key: mode for key, mode in modes.items() if mode is not None}
