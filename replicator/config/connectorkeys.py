"""``connector`` of a source's file: the Debezium connector that captures it, which ``replicator connect`` registers.

name: shop
connector:
  kind: postgresql
  host: db.example
  user: debezium
  password: ${file:/etc/kafka/secrets.properties:shop}  # resolved by Kafka Connect, never here
  database: shop
  tables: [sales.orders, sales.lines]
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field, field_validator, model_validator

from replicator.config.strict import Strict, Text, to_tuple
from replicator.spec import Connector, references

Kind = Literal["mysql", "mariadb", "postgresql", "sqlserver", "oracle"]
PORTS = {"postgresql": 5432, "mariadb": 3306, "mysql": 3306, "sqlserver": 1433, "oracle": 1521}
"""The default port of each kind of database."""

ONE_DATABASE = ("postgresql", "oracle")
"""Kinds whose connector captures one database, which a login names."""

_BINLOG = ("mysql", "mariadb")
_SLOT = 63
_OURS = ("connector.class", "topic.prefix", "name")
_NAMED = {
    "database.hostname": "`host`",
    "database.port": "`port`",
    "database.user": "`user`",
    "database.password": "`password`",
    "database.dbname": "`database`",
    "database.names": "`databases`",
    "database.include.list": "`databases`",
    "database.server.id": "`server_id`",
    "table.include.list": "`tables`",
    "table.exclude.list": "`except_tables`",
    "slot.name": "`slot`",
    "publication.name": "`publication`",
    "signal.data.collection": "`signal_data_collection` of the source",
    "unavailable.value.placeholder": "`placeholder` of the source",
}
"""Settings that we read ourselves, to decode records or to check the source, and the keys from which we know them."""

_TRANSFORMS = {"flattened": "unwrap", "outbox": "outbox"}
"""The transform that makes records of a form, as its settings call it."""


Name = Annotated[str, Field(min_length=1)]
Words = Annotated[tuple[Name, ...], BeforeValidator(to_tuple, json_schema_input_type=Name | tuple[Name, ...])]
Topic = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]


class ConnectorKeys(Strict):
    """How the source is captured. ``database`` is for PostgreSQL and Oracle, which have one; ``databases`` is for the
    others (for MySQL and MariaDB, all by default). ``tables`` or ``except_tables``, ``column_list`` or
    ``except_column_list`` are Debezium's regular expressions; the first two default to ``include`` or ``exclude`` of
    the source.

    ``form: flattened`` sends rows with their position, ``outbox`` sends what the event router makes of an outbox table.
    ``schemas: false`` omits the schema from the records; decimals are strings then. ``slot`` and ``publication``
    (PostgreSQL) default to the name of the source; ``server_id`` (MySQL, MariaDB) is a number that no other client of
    the binlog has. ``signals`` is a topic that the connector reads signals from, in addition to the source's signal
    table, ``notifications`` is one where it reports the progress of a snapshot; neither may be named like one of its
    tables'. ``bootstrap_servers`` is the address of Kafka for Connect, where that differs from here. ``config`` has any
    other setting of the connector.
    """

    kind: Kind
    name: Name | None = None
    host: Name
    port: int | None = Field(default=None, ge=1, le=65535)
    user: Name
    password: str = ""
    databases: Words = Field(default=(), validation_alias=AliasChoices("database", "databases"))
    tables: Words = ()
    except_tables: Words = ()
    column_list: Words = ()
    except_column_list: Words = ()
    form: Literal["envelope", "flattened", "outbox"] = "envelope"
    schemas: bool = True
    snapshot: Name = "initial"
    heartbeat_seconds: int = Field(default=10, ge=0)
    slot: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,63}$")] | None = None
    publication: Name | None = None
    server_id: int | None = Field(default=None, ge=1, le=2**32 - 1)
    signals: Topic | None = None
    notifications: Topic | None = None
    bootstrap_servers: Name | None = None
    config: dict[str, Text] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _addressable(cls, name: str | None) -> str | None:
        if name is not None and (set(name) & set("/\\%") or name in (".", "..")):
            raise ValueError(
                f"{name!r} cannot be part of an address, as in Kafka Connect's API: use no / \\ % or dots alone"
            )
        return name

    @field_validator("password")
    @classmethod
    def _referred(cls, password: str) -> str:
        if password and not references.is_reference(password):
            raise ValueError(_plain_secret_error("password"))
        return password

    @field_validator("config")
    @classmethod
    def _allowed(cls, config: dict[str, str]) -> dict[str, str]:
        ours = next((key for key in _OURS if key in config), None)
        if ours is not None:
            raise ValueError(f"{ours} is derived from the kind and name of the source")
        named = next((key for key in _NAMED if key in config), None)
        if named is not None:
            raise ValueError(f"{named} has a key of its own: write it as {_NAMED[named]}")
        secret = next(references.plain_secrets(config), None)
        if secret is not None:
            raise ValueError(_plain_secret_error(secret))
        return config

    @model_validator(mode="after")
    def _fitting(self) -> ConnectorKeys:
        if self.kind in ONE_DATABASE and len(self.databases) != 1:
            raise ValueError(f"a {self.kind} connector captures one database: name it in `database`")
        if self.kind == "sqlserver" and not self.databases:
            raise ValueError("give databases: which databases of the server are captured")
        if (self.slot is not None or self.publication is not None) and self.kind != "postgresql":
            raise ValueError("slot and publication apply only to PostgreSQL")
        if (self.server_id is None) == (self.kind in _BINLOG):
            raise ValueError(
                "server_id, unique among the clients of the binlog, is for MySQL and MariaDB, and required there"
            )
        if (self.tables and self.except_tables) or (self.column_list and self.except_column_list):
            raise ValueError("give tables or except_tables, column_list or except_column_list, not both")
        own, chain = _TRANSFORMS.get(self.form), self.config.get("transforms")
        if own is not None and chain is not None and own not in map(str.strip, chain.split(",")):
            raise ValueError(f"transforms in config replaces that of form: {self.form}: write '{own}, {chain}'")
        return self

    def connector(self, prefix: str, bootstrap_servers: str) -> Connector:
        """Return the connector of the source ``prefix`` as a value of the domain model; the servers are used if it sets
        none.
        """
        slot = self.slot or re.sub(r"[^a-z0-9_]", "_", prefix.lower())[:_SLOT]
        is_postgres = self.kind == "postgresql"
        return Connector(
            name=self.name or prefix,
            kind=self.kind,
            prefix=prefix,
            host=self.host,
            port=self.port if self.port is not None else PORTS[self.kind],
            user=self.user,
            password=self.password,
            databases=self.databases,
            tables=self.tables,
            except_tables=self.except_tables,
            column_list=self.column_list,
            except_column_list=self.except_column_list,
            form=self.form,
            schemas=self.schemas,
            snapshot=self.snapshot,
            heartbeat=self.heartbeat_seconds,
            slot=slot if is_postgres else "",
            publication=(self.publication or slot) if is_postgres else "",
            server_id=self.server_id,
            signal_topic=self.signals or "",
            notifications=self.notifications or "",
            bootstrap_servers=self.bootstrap_servers or bootstrap_servers,
            config=self.config,
        )


def _plain_secret_error(key: str) -> str:
    return (
        f"{key} is a secret in plain text, which Kafka Connect's API would show to everyone: write a reference that "
        f"it resolves, such as {references.EXAMPLE}"
    )
