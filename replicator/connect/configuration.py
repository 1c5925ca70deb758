"""What a source's file says of its connector -> the connector's own configuration. Nothing is asked and nothing known
but the arguments, so that every kind is held by a golden file (tests/unit/connectors).

What all have: JSON with nothing replaced by defaults (debezium.md G1, F7), truncates sent (B7), a heartbeat, exact
decimals (as texts where records carry no schema: debezium-measured.md Z1.1).
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
"""What of ``source`` a flattened row needs to have a place in the source's order (debezium.md Q4, F4)."""


def configuration(of: Connector) -> dict[str, str]:
    """The connector's configuration, flat, by key; keys of ``of.config`` win. ``name`` is not in it."""
    made = {**_shared(of), **_DATABASE[of.kind](of), **_FORM[of.form](of)}
    return dict(sorted({**{key: value for key, value in made.items() if value}, **of.config}.items()))


def _shared(of: Connector) -> dict[str, str]:
    schemas = _flag(of.schemas)
    return {
        "connector.class": CLASSES[of.kind],
        "tasks.max": "1",
        "topic.prefix": of.prefix,
        "database.hostname": of.host,
        "database.port": str(of.port),
        "database.user": of.user,
        "database.password": of.password,
        "table.include.list": ",".join(of.tables),
        "table.exclude.list": ",".join(of.except_tables),
        "column.include.list": ",".join(of.column_list),
        "column.exclude.list": ",".join(of.except_column_list),
        "key.converter": _JSON,
        "key.converter.schemas.enable": schemas,
        "value.converter": _JSON,
        "value.converter.schemas.enable": schemas,
        "value.converter.replace.null.with.default": "false",
        DECIMALS: of.modes[DECIMALS],
        "heartbeat.interval.ms": str(of.heartbeat * 1000) if of.heartbeat else "",
        "provide.transaction.metadata": "true" if of.transactions else "",
        **_signals(of),
        "skipped.operations": "none",
        "snapshot.mode": of.snapshot,
        "unavailable.value.placeholder": of.placeholder,
    }


def _signals(of: Connector) -> dict[str, str]:
    channels = [*(["source"] if of.signals else []), "kafka"] if of.signal_topic else []
    return {
        "signal.data.collection": of.signals,
        "signal.enabled.channels": ",".join(channels),
        "signal.kafka.topic": of.signal_topic,
        "signal.kafka.bootstrap.servers": of.bootstrap_servers if of.signal_topic else "",
        "notification.enabled.channels": "sink" if of.notifications else "",
        "notification.sink.topic.name": of.notifications,
    }


def _postgresql(of: Connector) -> dict[str, str]:
    # the publication is the owner's: one that the connector makes wants a superuser, or is for all tables
    return {
        "database.dbname": of.databases[0],
        "plugin.name": "pgoutput",
        "slot.name": of.slot,
        "publication.name": of.publication,
        "publication.autocreate.mode": "disabled",
    }


def _binlog(of: Connector) -> dict[str, str]:
    return {
        "database.include.list": ",".join(of.databases),
        "database.server.id": str(of.server_id),
        # DDL of other databases of the server may hold what the parser does not know
        "schema.history.internal.store.only.captured.databases.ddl": "true",
        **_history(of),
    }


def _sqlserver(of: Connector) -> dict[str, str]:
    return {"database.names": ",".join(of.databases), **_history(of)}


def _oracle(of: Connector) -> dict[str, str]:
    return {"database.dbname": of.databases[0], **_history(of)}


def _history(of: Connector) -> dict[str, str]:
    return {
        "schema.history.internal.kafka.bootstrap.servers": of.bootstrap_servers,
        "schema.history.internal.kafka.topic": f"schema-history.{of.prefix}",
    }


def _envelope(of: Connector) -> dict[str, str]:  # noqa: ARG001 - every form takes the same
    return {}


def _flattened(of: Connector) -> dict[str, str]:
    return {
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.delete.tombstone.handling.mode": of.deletes,
        "transforms.unwrap.add.fields": f"op,db,table,source.ts_ms,{_POSITIONS[of.kind]}",
        "transforms.unwrap.replace.null.with.default": "false",
    }


def _outbox(of: Connector) -> dict[str, str]:
    return {
        "tombstones.on.delete": "false",
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.outbox.route.topic.replacement": f"{of.prefix}.event.${{routedByValue}}",
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
