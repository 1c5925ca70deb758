"""Signals to a running connector: an ad-hoc snapshot of some of its tables, or the end of one.

Everything is derived from the running configuration, not from the file: a channel that was declared and never applied
reads nothing. An incremental snapshot runs concurrently with the stream and needs the signal table, where the connector
writes its watermarks (``read.only`` connectors take them from the log); a blocking one pauses the stream while it runs.
The rows read by either are subject to the order of all changes (debezium.md D5, D6, Q5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from replicator.connect.configuration import CLASSES
from replicator.errors import ConfigError
from replicator.names import quote_postgres, quote_spark
from replicator.spec.connectors import split_expressions
from replicator.spelling import did_you_mean

EXECUTE, STOP = "execute-snapshot", "stop-snapshot"
INCREMENTAL, BLOCKING = "INCREMENTAL", "BLOCKING"
_THREE_PARTS = {"sqlserver": ("database.names",), "oracle": ("database.pdb.name", "database.dbname")}
"""Kinds whose tables Debezium calls ``<database>.<schema>.<table>``, and the keys that contain the database."""
_TWO_PARTS = ("mysql", "mariadb")
"""Kinds that have no schemas: a table's own name may contain dots."""
_SIGNALS = (
    "Set `signal_data_collection` in its file, or `connector: {signals: TOPIC}`, then `replicator connect apply`."
)
_NOTIFICATIONS = "Set `connector: {notifications: TOPIC}` in its file and apply it"


@dataclass(frozen=True)
class Signal:
    """One signal: its ``id`` is returned in the notifications of an incremental snapshot; ``data`` is JSON."""

    id: str
    type: str
    data: Mapping[str, Any]

    @property
    def is_blocking(self) -> bool:
        """Whether it requests a blocking snapshot, whose notifications have ids of their own."""
        return bool(self.data["type"] == BLOCKING)

    def row(self) -> tuple[str, str, str]:
        """The signal as a row of the signal table: id, type, data."""
        return self.id, self.type, json.dumps(self.data)

    def message(self) -> str:
        """The signal as a message of the signal topic; the record's key is the ``topic.prefix``."""
        return json.dumps({"id": self.id, "type": self.type, "data": self.data})


@dataclass(frozen=True)
class SnapshotRequest:
    """A requested snapshot of tables, which are named as in silver; ``where`` is SQL, '' for all rows. ``is_full``:
    rows that the snapshot does not contain are to be deleted.
    """

    tables: tuple[str, ...]
    where: str = ""
    blocking: bool = False
    stop: bool = False
    is_full: bool = False


def build_signal(request: SnapshotRequest, config: Mapping[str, str]) -> Signal:
    """Return the signal to a connector that runs with this configuration.

    Raises ConfigError for a table that the connector does not capture, an incremental snapshot without a signal table,
    a condition on several tables, and what cannot be stopped.
    """
    _refuse_conflicts(request, config)
    kind = _kind(config)
    for table in request.tables:
        _refuse_malformed(table, kind)
        _refuse_uncaptured(table, config)
    names = {table: _full_name(table, kind, config) for table in request.tables}
    data: dict[str, Any] = {
        "data-collections": [_literal(name) for name in names.values()],
        "type": BLOCKING if request.blocking else INCREMENTAL,
    }
    if request.where:
        [name] = names.values()
        data["additional-conditions"] = [_condition(request, kind, name)]
    return Signal(str(uuid4()), STOP if request.stop else EXECUTE, data)


def topic(config: Mapping[str, str]) -> str:
    """The topic from which the connector reads signals, '' if it reads none from a topic."""
    if "kafka" not in _channels(config, "signal.enabled.channels", "source"):
        return ""
    return config.get("signal.kafka.topic") or f"{config['topic.prefix']}-signal"


def table(config: Mapping[str, str]) -> str:
    """The table from which the connector reads signals, '' if it reads none from a table."""
    reads = "source" in _channels(config, "signal.enabled.channels", "source")
    return config.get("signal.data.collection", "") if reads else ""


def require_channel(name: str, config: Mapping[str, str]) -> None:
    """Raise ConfigError if a connector reads signals from neither."""
    if not topic(config) and not table(config):
        raise ConfigError(f"connector {name} reads no signals", fix=_SIGNALS)


def notifications(name: str, config: Mapping[str, str], *, whole: bool = False) -> str:
    """Return the topic where the connector reports the progress of a snapshot. Raises ConfigError if it does not;
    ``whole``: for a snapshot whose end must be observed.
    """
    found = config.get("notification.sink.topic.name", "")
    if not found or "sink" not in _channels(config, "notification.enabled.channels", ""):
        fix = f"{_NOTIFICATIONS}." if whole else f"{_NOTIFICATIONS}, or do not wait (--no-wait)."
        raise ConfigError(f"connector {name} does not report the progress of snapshots", fix=fix)
    return found


def quote(kind: str, name: str) -> str:
    """Quote a table's name for SQL of that kind; Oracle's statements have no database."""
    parts = _split(name, kind)
    if kind in _TWO_PARTS:
        return ".".join(map(quote_spark, parts))  # backquotes, as in Spark
    return quote_postgres(*(parts[-2:] if kind == "oracle" else parts))


def last_two(table: str, config: Mapping[str, str]) -> str:
    """Schema, or database, and table of a name that may begin with a database."""
    return ".".join(_split(table, _kind(config))[-2:])


def _refuse_conflicts(request: SnapshotRequest, config: Mapping[str, str]) -> None:
    if request.is_full and (request.where or request.blocking or request.stop):
        fix = "Omit --where, --blocking and --stop: only an incremental snapshot identifies its own end."
        raise ConfigError("--remove-missing needs an incremental snapshot of all rows", fix=fix)
    if request.stop and (request.where or request.blocking):
        raise ConfigError("--stop applies to incremental snapshots only", fix="Omit --where and --blocking.")
    if request.where and len(request.tables) != 1:
        raise ConfigError("--where applies to one table", fix="Name one table at a time.")
    if not request.stop and not request.tables:
        raise ConfigError("a snapshot needs table names", fix="Write <database or schema>.<table>.")
    marks = config.get("signal.data.collection") or config.get("read.only") == "true"
    if not request.blocking and not request.stop and not marks:
        blocking = "" if request.is_full else ", or take a blocking snapshot (--blocking)"
        fix = f"Set `signal_data_collection` in its file and apply it{blocking}."
        raise ConfigError("an incremental snapshot needs a signal table for its watermarks", fix=fix)


def _refuse_malformed(table: str, kind: str) -> None:
    parts = _split(table, kind)
    if len(parts) not in ((2, 3) if kind in _THREE_PARTS else (2,)) or not all(parts):
        raise ConfigError(f"{table!r} is not a table name", fix="Write <database or schema>.<table>.")


def list_captured(config: Mapping[str, str]) -> list[str]:
    """Return the tables that the connector's list names individually, not by an expression, as named in silver."""
    listed = split_expressions(config.get("table.include.list", ""))
    return [unquote_literal(one) for one in listed if re.fullmatch(r"(?:[\w.\s-]|\\\W)+", one)]


def excluding_key(table: str, config: Mapping[str, str]) -> str:
    """Return the key of the list that excludes a table from being captured; '' if it is captured."""
    parts = _split(table, _kind(config))
    lists = (("table", ".".join(parts[-2:])), ("schema", parts[-2]), ("database", parts[0]))
    for what, part in lists:
        included, excluded = config.get(f"{what}.include.list"), config.get(f"{what}.exclude.list")
        if included and not _matches(included, part, in_doubt=True):
            return f"{what}.include.list"
        if excluded and _matches(excluded, part, in_doubt=False):
            return f"{what}.exclude.list"
    return ""


def _refuse_uncaptured(table: str, config: Mapping[str, str]) -> None:
    key = excluding_key(table, config)
    if key:
        hint = did_you_mean(last_two(table, config), list_captured(config))
        fix = "Its file sets which tables are captured; `replicator connect apply` applies it."
        raise ConfigError(f"{table} is not captured: {key} is {config[key]}{hint}", fix=fix)


def _matches(expressions: str, name: str, *, in_doubt: bool) -> bool:
    """Whether one of Debezium's regular expressions matches a name; ``in_doubt``: one that only Java supports does."""
    return any(_is_match(one, name, in_doubt=in_doubt) for one in split_expressions(expressions))


def _is_match(expression: str, name: str, *, in_doubt: bool) -> bool:
    try:
        return re.fullmatch(expression, name, re.IGNORECASE) is not None
    except re.error:
        return in_doubt


def _full_name(table: str, kind: str, config: Mapping[str, str]) -> str:
    """The table's name in Debezium."""
    if kind not in _THREE_PARTS or table.count(".") == 2:
        return table
    database = next((config[key] for key in _THREE_PARTS[kind] if config.get(key)), "")
    if "," in database or not database:
        fix = "Write <database>.<schema>.<table>."
        raise ConfigError(f"the database of {table} is ambiguous: the connector captures {database}", fix=fix)
    return f"{database}.{table}"


def _kind(config: Mapping[str, str]) -> str:
    return next((kind for kind, name in CLASSES.items() if name == config["connector.class"]), "")


def _split(name: str, kind: str) -> list[str]:
    return name.split(".", 1 if kind in _TWO_PARTS else -1)


def _literal(name: str) -> str:
    """A Java regular expression that matches only this name."""
    return re.sub(r"([^\w])", r"\\\1", name)


def unquote_literal(expression: str) -> str:
    """The name that such an expression matches."""
    return re.sub(r"\\(\W)", r"\1", expression)


def _condition(request: SnapshotRequest, kind: str, name: str) -> dict[str, str]:
    """For an incremental snapshot, a condition on the tables that an expression matches; for a blocking one, the
    complete query under the exact name: it does not look up expressions, and would read all rows.
    """
    if not request.blocking:
        return {"data-collection": _literal(name), "filter": request.where}
    query = f"SELECT * FROM {quote(kind, name)} WHERE {request.where}"  # noqa: S608 - the user's own SQL, at the source
    return {"data-collection": name, "filter": query}


def _channels(config: Mapping[str, str], key: str, otherwise: str) -> Sequence[str]:
    return [each.strip() for each in config.get(key, otherwise).split(",")]
