"""A source's declaration of its connector -> the connector's configuration. A pure function of its arguments, so that
every kind is covered by a golden file (tests/unit/connectors).

Common to all: JSON without replacement of nulls by defaults (debezium.md G1, F7), truncate events (B7), a heartbeat,
exact decimals (as texts where records have no schema: debezium-measured.md Z1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.spec.connectors import DECIMALS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from replicator.spec import Connector

CLASSES: Mapping[str, str] = {
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "oracle": "io.debezium.connector.oracle.OracleConnector",
    "postgresql": "io.debezium.connector.postgresql.PostgresConnector",
    "sqlserver": "io.debezium.connector.sqlserver.SqlServerConnector",
}
"""The ``connector.class`` of each kind."""

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_POSITIONS = {
    "mariadb": "file,pos,row,gtid",
    "mysql": "file,pos,row,gtid",
    "oracle": "schema,scn,commit_scn",
    "postgresql": "schema,lsn,sequence,txId",
    "sqlserver": "schema,commit_lsn,change_lsn",
}
"""The fields of ``source`` that a flattened row needs for its position in the source's order (debezium.md Q4, F4)."""


def configuration(connector: Connector) -> dict[str, str]:
    """Return the connector's configuration, flat, by key; keys of ``connector.config`` take precedence. ``name`` is not
    included.
    """
    made = {**_shared(connector), **_DATABASE[connector.kind](connector), **_FORM[connector.form](connector)}
    return dict(sorted({**{key: value for key, value in made.items() if value}, **connector.config}.items()))


def _shared(connector: Connector) -> dict[str, str]:
    schemas = _flag(connector.schemas)
    return {
        "connector.class": CLASSES[connector.kind],
        "tasks.max": "1",
        "topic.prefix": connector.prefix,
        "database.hostname": connector.host,
        "database.port": str(connector.port),
        "database.user": connector.user,
        "database.password": connector.password,
        "table.include.list": ",".join(connector.tables),
        "table.exclude.list": ",".join(connector.except_tables),
        "column.include.list": ",".join(connector.column_list),
        "column.exclude.list": ",".join(connector.except_column_list),
        "key.converter": _JSON,
        "key.converter.schemas.enable": schemas,
        "value.converter": _JSON,
        "value.converter.schemas.enable": schemas,
        "value.converter.replace.null.with.default": "false",
        DECIMALS: connector.modes[DECIMALS],
        "heartbeat.interval.ms": str(connector.heartbeat * 1000) if connector.heartbeat else "",
        "provide.transaction.metadata": "true" if connector.transactions else "",
        **_signals(connector),
        "skipped.operations": "none",
        "snapshot.mode": connector.snapshot,
        "unavailable.value.placeholder": connector.placeholder,
    }


def _signals(connector: Connector) -> dict[str, str]:
    channels = [*(["source"] if connector.signals else []), "kafka"] if connector.signal_topic else []
    return {
        "signal.data.collection": connector.signals,
        "signal.enabled.channels": ",".join(channels),
        "signal.kafka.topic": connector.signal_topic,
        "signal.kafka.bootstrap.servers": connector.bootstrap_servers if connector.signal_topic else "",
        "notification.enabled.channels": "sink" if connector.notifications else "",
        "notification.sink.topic.name": connector.notifications,
    }


def _postgresql(connector: Connector) -> dict[str, str]:
    # the database's owner creates the publication: for the connector to do so takes a superuser, or all tables
    return {
        "database.dbname": connector.databases[0],
        "plugin.name": "pgoutput",
        "slot.name": connector.slot,
        "publication.name": connector.publication,
        "publication.autocreate.mode": "disabled",
    }


def _binlog(connector: Connector) -> dict[str, str]:
    return {
        "database.include.list": ",".join(connector.databases),
        "database.server.id": str(connector.server_id),
        # DDL of other databases of the server may contain statements that the parser does not support
        "schema.history.internal.store.only.captured.databases.ddl": "true",
        **_history(connector),
    }


def _sqlserver(connector: Connector) -> dict[str, str]:
    return {"database.names": ",".join(connector.databases), **_history(connector)}


def _oracle(connector: Connector) -> dict[str, str]:
    return {"database.dbname": connector.databases[0], **_history(connector)}


def _history(connector: Connector) -> dict[str, str]:
    return {
        "schema.history.internal.kafka.bootstrap.servers": connector.bootstrap_servers,
        "schema.history.internal.kafka.topic": f"schema-history.{connector.prefix}",
    }


def _envelope(connector: Connector) -> dict[str, str]:  # noqa: ARG001 - all forms have the same signature
    return {}


def _flattened(connector: Connector) -> dict[str, str]:
    return {
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": connector.deletes,
        "transforms.unwrap.add.fields": f"op,db,table,source.ts_ms,{_POSITIONS[connector.kind]}",
        "transforms.unwrap.replace.null.with.default": "false",
    }


def _outbox(connector: Connector) -> dict[str, str]:
    return {
        "tombstones.on.delete": "false",
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.route.topic.replacement": f"{connector.prefix}.event.${{routedByValue}}",
    }


def _flag(value: bool) -> str:
    return "true" if value else "false"


_DATABASE = {
    "mariadb": _binlog,
    "mysql": _binlog,
    "oracle": _oracle,
    "postgresql": _postgresql,
    "sqlserver": _sqlserver,
}
_FORM = {"envelope": _envelope, "flattened": _flattened, "outbox": _outbox}
