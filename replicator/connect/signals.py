"""What a running connector is told by a signal: an ad-hoc snapshot of some of its tables, or the end of one.

Everything follows from the configuration that runs, not from the file: a channel that was described and never applied
reads nothing. An incremental snapshot goes on beside the stream and needs the signal table, where the connector writes
its watermarks (``read.only`` ones take them from the log); a blocking one holds the stream for its time. What they read
obeys the order of all changes (debezium.md D5, D6, Q5).
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
from replicator.spelling import did_you_mean

EXECUTE, STOP = "execute-snapshot", "stop-snapshot"
INCREMENTAL, BLOCKING = "INCREMENTAL", "BLOCKING"
_THREE_PARTS = {"sqlserver": ("database.names",), "oracle": ("database.pdb.name", "database.dbname")}
"""Kinds whose tables Debezium calls ``<database>.<schema>.<table>``, and the keys that hold the database."""
_SIGNALS = "Give its file `signal_data_collection` or `connector: {signals: TOPIC}`, then `replicator connect apply`."
_NOTIFICATIONS = "Give its file `connector: {notifications: TOPIC}` and apply it"


@dataclass(frozen=True)
class Signal:
    """One signal: its ``id`` comes back in the notifications of an incremental snapshot; ``data`` is JSON."""

    id: str
    type: str
    data: Mapping[str, Any]

    @property
    def is_blocking(self) -> bool:
        """It asks for a blocking snapshot, whose notifications have ids of their own."""
        return bool(self.data["type"] == BLOCKING)

    def row(self) -> tuple[str, str, str]:
        """As the signal table has it: id, type, data."""
        return self.id, self.type, json.dumps(self.data)

    def message(self) -> str:
        """As the signal topic has it; the record's key is the ``topic.prefix``."""
        return json.dumps({"id": self.id, "type": self.type, "data": self.data})


@dataclass(frozen=True)
class SnapshotRequest:
    """What is wanted of tables, which are called as silver calls them; ``where`` is SQL, '' for all rows. ``whole``:
    what is not mentioned shall go.
    """

    tables: tuple[str, ...]
    where: str = ""
    blocking: bool = False
    stop: bool = False
    whole: bool = False


def build_signal(asked: SnapshotRequest, config: Mapping[str, str]) -> Signal:
    """The signal to a connector that runs with this configuration.

    Raises ConfigError: a table that the connector does not capture, an incremental snapshot without a signal table, a
    condition of several tables, what cannot be stopped.
    """
    _refuse_conflicts(asked, config)
    kind = next((kind for kind, name in CLASSES.items() if name == config["connector.class"]), "")
    for table in asked.tables:
        _refuse_malformed(table, kind)
        _refuse_uncaptured(table, config)
    names = {table: _full_name(table, kind, config) for table in asked.tables}
    data: dict[str, Any] = {
        "data-collections": [_literal(name) for name in names.values()],
        "type": BLOCKING if asked.blocking else INCREMENTAL,
    }
    if asked.where:
        [name] = names.values()
        data["additional-conditions"] = [_condition(asked, kind, name)]
    return Signal(str(uuid4()), STOP if asked.stop else EXECUTE, data)


def topic(config: Mapping[str, str]) -> str:
    """The topic that the connector reads signals from, '' where it reads none."""
    if "kafka" not in _channels(config, "signal.enabled.channels", "source"):
        return ""
    return config.get("signal.kafka.topic") or f"{config['topic.prefix']}-signal"


def table(config: Mapping[str, str]) -> str:
    """The table that the connector reads signals from, '' where it reads none."""
    reads = "source" in _channels(config, "signal.enabled.channels", "source")
    return config.get("signal.data.collection", "") if reads else ""


def require_channel(name: str, config: Mapping[str, str]) -> None:
    """Raise ConfigError where a connector reads signals from nowhere."""
    if not topic(config) and not table(config):
        raise ConfigError(f"the connector {name} reads no signals", mend=_SIGNALS)


def notifications(name: str, config: Mapping[str, str], *, whole: bool = False) -> str:
    """The topic where the connector says how far a snapshot is. Raises ConfigError where it says nothing; ``whole``: of
    one whose end must be seen.
    """
    found = config.get("notification.sink.topic.name", "")
    if not found or "sink" not in _channels(config, "notification.enabled.channels", ""):
        mend = f"{_NOTIFICATIONS}." if whole else f"{_NOTIFICATIONS}, or do not wait (--no-wait)."
        raise ConfigError(f"the connector {name} does not say how far a snapshot is", mend=mend)
    return found


def quote(kind: str, name: str) -> str:
    """A table as SQL of that kind names it; Oracle's statements know no database."""
    parts = name.split(".")
    if kind in ("mysql", "mariadb"):
        return ".".join(map(quote_spark, parts))  # back-quotes, as Spark's
    return quote_postgres(*(parts[-2:] if kind == "oracle" else parts))


def _refuse_conflicts(asked: SnapshotRequest, config: Mapping[str, str]) -> None:
    if asked.whole and (asked.where or asked.blocking or asked.stop):
        mend = "Leave --where, --blocking and --stop out: only an incremental snapshot says which end is its own."
        raise ConfigError("--remove-missing needs an incremental snapshot of all rows", mend=mend)
    if asked.stop and (asked.where or asked.blocking):
        raise ConfigError("--stop ends incremental snapshots", mend="Leave --where and --blocking out.")
    if asked.where and len(asked.tables) != 1:
        raise ConfigError("--where is about one table", mend="Ask for one table at a time.")
    if not asked.stop and not asked.tables:
        raise ConfigError("a snapshot needs the names of tables", mend="Write <database or schema>.<table>.")
    marks = config.get("signal.data.collection") or config.get("read.only") == "true"
    if not asked.blocking and not asked.stop and not marks:
        blocking = "" if asked.whole else ", or take a blocking snapshot (--blocking)"
        mend = f"Give its file `signal_data_collection` and apply it{blocking}."
        raise ConfigError("an incremental snapshot needs a signal table for its watermarks", mend=mend)


def _refuse_malformed(table: str, kind: str) -> None:
    parts = table.split(".")
    if len(parts) not in ((2, 3) if kind in _THREE_PARTS else (2,)) or not all(parts):
        raise ConfigError(f"{table!r} is no table", mend="Write <database or schema>.<table>.")


def list_captured(config: Mapping[str, str]) -> list[str]:
    """The tables that the connector's list names one by one, by no expression, as silver calls them."""
    listed = _split_expressions(config.get("table.include.list", ""))
    return [re.sub(r"\\(\W)", r"\1", one) for one in listed if re.fullmatch(r"(?:[\w.\s-]|\\\W)+", one)]


def excluding_key(table: str, config: Mapping[str, str]) -> str:
    """The key of the list by which a table is not captured; '' for one that is."""
    parts = table.split(".")
    name = ".".join(parts[-2:])
    lists = (("table", name), ("schema", parts[-2]), ("database", parts[0]))
    for what, asked in lists:
        included, excluded = config.get(f"{what}.include.list"), config.get(f"{what}.exclude.list")
        if (included and not _matches(included, asked)) or (excluded and _matches(excluded, asked)):
            return f"{what}.include.list" if included else f"{what}.exclude.list"
    return ""


def _refuse_uncaptured(table: str, config: Mapping[str, str]) -> None:
    key = excluding_key(table, config)
    if key:
        hint = did_you_mean(".".join(table.split(".")[-2:]), list_captured(config))
        mend = "Its file says which tables are captured; `replicator connect apply` makes it so."
        raise ConfigError(f"{table} is not captured: {key} is {config[key]}{hint}", mend=mend)


def _split_expressions(expressions: str) -> list[str]:
    return [one.replace(r"\,", ",").strip() for one in re.split(r"(?<!\\),", expressions) if one.strip()]


def _matches(expressions: str, name: str) -> bool:
    """Whether one of Debezium's regular expressions means a name; one that only Java reads is not second-guessed."""
    try:
        return any(re.fullmatch(one, name, re.IGNORECASE) for one in _split_expressions(expressions))
    except re.error:
        return True


def _full_name(table: str, kind: str, config: Mapping[str, str]) -> str:
    """As Debezium calls the table."""
    if kind not in _THREE_PARTS or table.count(".") == 2:
        return table
    database = next((config[key] for key in _THREE_PARTS[kind] if config.get(key)), "")
    if "," in database or not database:
        mend = "Write <database>.<schema>.<table>."
        raise ConfigError(f"the database of {table} is not clear: the connector captures {database}", mend=mend)
    return f"{database}.{table}"


def _literal(name: str) -> str:
    """A regular expression of Java's that means this name only."""
    return re.sub(r"([^\w])", r"\\\1", name)


def _condition(asked: SnapshotRequest, kind: str, name: str) -> dict[str, str]:
    """An incremental snapshot takes a condition for what an expression means; a blocking one the whole query, under the
    very name: an expression is not found there, and all rows are read.
    """
    if not asked.blocking:
        return {"data-collection": _literal(name), "filter": asked.where}
    query = f"SELECT * FROM {quote(kind, name)} WHERE {asked.where}"  # noqa: S608 - the user's own SQL, at the source
    return {"data-collection": name, "filter": query}


def _channels(config: Mapping[str, str], key: str, otherwise: str) -> Sequence[str]:
    return [each.strip() for each in config.get(key, otherwise).split(",")]
