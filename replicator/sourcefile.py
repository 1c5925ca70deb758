"""``conf/sources/*.yaml`` and ``--declare`` files: one Debezium connector each, and what is declared of its tables.

name: shop                      # the connector's topic.prefix
include: [sales.orders]         # only these tables; without it every topic `shop.*`
tables:
  sales.orders:
    columns: {id: int, placed: date, total: "decimal(10,2)"}
    keys: [id]
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, field_validator, model_validator

from replicator import kafka_options, names
from replicator.debezium.logical import parse_logical
from replicator.errors import ConfigError
from replicator.spec import AGGREGATE_ID, EVENT_ID, Column, Declaration, Outbox, SourceSpec
from replicator.strict import Strict, check
from replicator.yamlfile import Document, Problems, nearest, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLACEHOLDER = "__debezium_unavailable_value"
_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


def _logical(text: str) -> str:
    try:
        parse_logical(text)
    except ConfigError as error:
        raise ValueError(f"{error.what}. {error.mend or ''}".rstrip(" .")) from error
    return text


def _duration(value: Any) -> Any:
    """Seconds, from ``30 days``; 0 is 0."""
    if value is None or value in (0, "0"):
        return value if value is None else 0
    found = re.fullmatch(r"([1-9]\d{0,5}) ?(minute|hour|day|week)s?", str(value).strip())
    if found is None:
        raise ValueError("a duration is a number of minutes, hours, days or weeks, such as `30 days`")
    return int(found.group(1)) * _SECONDS[found.group(2)]


def _two_parts(name: str) -> str:
    database, dot, table = name.partition(".")
    if not (database and dot and table):
        raise ValueError("a table is named <database or schema>.<table>")
    return name


def listed(value: Any) -> Any:
    """Columns in either notation as a list: ``{id: int}``, ``{id: {type: int}}`` or ``[{name: id, type: int}]``."""
    if not isinstance(value, dict):
        return value
    return [{"name": n, **t} if isinstance(t, dict) else {"name": n, "type": t} for n, t in value.items()]


def single_names(found: list[str], what: str) -> None:
    """Raise ValueError when a name is there twice, or again in another case."""
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{what} has {twice!r} twice")
    try:
        names.refuse_case_twins(found, what)
    except ConfigError as error:
        raise ValueError(str(error)) from error


Logical = Annotated[str, AfterValidator(_logical)]
TableName = Annotated[str, AfterValidator(_two_parts)]
ColumnName = Annotated[str, Field(min_length=1)]
SequenceBy = Literal["position", "source.ts_ms"]
BinlogPosition = Literal["file_pos", "file_pos_row", "gtid"]


class ColumnKeys(Strict):
    """A declared column; ``type`` is a logical type in its short form (types.md Y13); ``generated``: the database
    computes it, and PostgreSQL's stream never has it (debezium.md E8).
    """

    name: ColumnName
    type: Logical
    unsigned: bool = False
    generated: bool = False


class OutboxKeys(Strict):
    """Where events come from that stand in an outbox table (debezium.md section I); a word alone is the ``mode``."""

    mode: Literal["router", "log", "current"]
    empty_payload: Literal["ignore", "delete"] = "ignore"
    topic: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _of_router(self) -> OutboxKeys:
        if self.mode != "router" and (self.topic is not None or self.empty_payload != "ignore"):
            raise ValueError("topic and empty_payload belong to mode router")
        return self


def _as_block(value: Any) -> Any:
    return {"mode": value} if isinstance(value, str) else value


OutboxBlock = Annotated[OutboxKeys | None, BeforeValidator(_as_block)]


class ShapeKeys(Strict):
    """How the records of a table, or of all of a source, are to be read where that is not as they look."""

    outbox: OutboxBlock = None
    deletes: Literal["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"] | None = None
    accept_lost_deletes: bool = False

    @model_validator(mode="after")
    def _told(self) -> ShapeKeys:
        if self.deletes == "drop" and not self.accept_lost_deletes:
            raise ValueError(
                "with deletes: drop no delete ever arrives and its row stays for good: choose another "
                "delete.tombstone.handling.mode in the connector, or say accept_lost_deletes: true"
            )
        return self


class TableKeys(ShapeKeys):
    """What is declared about a table; all of it optional."""

    columns: Annotated[tuple[ColumnKeys, ...], BeforeValidator(listed)] = ()
    keys: tuple[ColumnName, ...] = ()
    truncate: Literal["apply", "ignore", "fail"] = "apply"
    unavailable: bool = True
    schema_changes: Literal["evolve", "freeze", "fail"] = "evolve"
    stored_as_scd_type: Literal[1, 2] = 1
    purge_after: Annotated[int | None, BeforeValidator(_duration)] = None
    accept_refused_replays: bool = False
    sequence_by: SequenceBy | None = None
    shape: Literal["envelope", "flattened"] | None = None

    @model_validator(mode="after")
    def _purged(self) -> TableKeys:
        if self.purge_after == 0 and not self.accept_refused_replays:
            raise ValueError(
                "with purge_after: 0 a change that comes late or again after a delete becomes a dead letter: give a "
                "time longer than Kafka keeps records, or say accept_refused_replays: true"
            )
        return self

    @model_validator(mode="after")
    def _events(self) -> TableKeys:
        if self.outbox is None or self.outbox.mode != "router":
            return self
        if self.keys not in ((), (EVENT_ID,), (AGGREGATE_ID,)):
            raise ValueError(f"events of the outbox router have the key {EVENT_ID} or {AGGREGATE_ID}")
        if self.outbox.empty_payload == "delete" and self.keys != (AGGREGATE_ID,):
            raise ValueError(
                f"empty_payload: delete needs keys: [{AGGREGATE_ID}]: it deletes an aggregate, and the row of an event "
                "is none"
            )
        declared = {column.name: column.type for column in self.columns}
        if declared and declared not in ({"payload": "bytes"}, {"payload": "string"}):
            raise ValueError("of the outbox router's columns only the payload is declared, as bytes or string")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> TableKeys:
        declared = [column.name for column in self.columns]
        single_names(declared, "the list of columns")
        single_names(list(self.keys), "the list of keys")
        has_own = self.outbox is not None and self.outbox.mode == "router"
        unknown = next((key for key in self.keys if declared and not has_own and key not in declared), None)
        if unknown is not None:
            raise ValueError(f"the key {unknown!r} is no declared column{nearest(unknown, declared)}")
        return self


class DeclareKeys(Strict):
    """A ``--declare`` file: tables, and optionally the source that they are of."""

    name: str | None = Field(default=None, validation_alias=AliasChoices("name", "source"))
    tables: dict[TableName, TableKeys] = Field(default_factory=dict)

    @field_validator("tables")
    @classmethod
    def _apart(cls, tables: dict[str, TableKeys]) -> dict[str, TableKeys]:
        single_names(list(tables), "the list of tables")
        return tables

    def declarations(self) -> tuple[Declaration, ...]:
        """The tables as the product's nouns."""
        return tuple(_declaration(name, table) for name, table in self.tables.items())


class SourceKeys(DeclareKeys, ShapeKeys):
    """A file of ``conf/sources``: ``include`` or ``topics`` (a Java regular expression) narrow what is read.

    ``outbox`` and ``deletes`` hold for every table that does not say otherwise. ``signal_data_collection`` is the
    connector's ``signal.data.collection``, ``avro_bytes`` how JSON made from Avro writes bytes. ``binlog_position``:
    ``gtid`` where MariaDB's servers take turns and one GTID domain is written to, ``file_pos_row`` where MySQL does not
    compress transactions (debezium.md Q4).
    """

    name: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("name", "source"))]
    topics: str | None = None
    include: tuple[TableName, ...] = ()
    bootstrap_servers: str | None = None
    placeholder: str = Field(default=_PLACEHOLDER, min_length=1)
    sequence_by: SequenceBy = "position"
    signal_data_collection: TableName | None = None
    avro_bytes: Literal["base64", "latin1"] = "base64"
    binlog_position: BinlogPosition = "file_pos"
    options: dict[str, str] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return kafka_options.allowed(options)

    @model_validator(mode="after")
    def _one_of(self) -> SourceKeys:
        if self.topics is not None and self.include:
            raise ValueError("give topics or include, not both: each says which topics are read")
        if self.outbox is not None and (self.outbox.topic is not None or self.outbox.empty_payload != "ignore"):
            raise ValueError("outbox of a whole source is a mode alone: give topic and empty_payload to a table")
        own = [table.outbox.topic for table in self.tables.values() if table.outbox is not None and table.outbox.topic]
        unread = next(
            (t for t in own if self.topics is None and (self.include or not t.startswith(f"{self.name}."))), None
        )
        if unread is not None:
            raise ValueError(f"the outbox topic {unread!r} is not read: give topics, a regular expression that has it")
        return self


def declarations(path: Path | str) -> tuple[Declaration, ...]:
    """What a ``--declare`` file says about tables. Raises ConfigError that lists everything wrong with it."""
    return template(path).tables


def template(path: Path | str) -> SourceSpec:
    """A ``--declare`` file as a source for recorded events of any name. Raises ConfigError as ``declarations`` does."""
    problems = Problems()
    document = read(Path(path), problems)
    keys = None if problems.found else check(_model(document), document, problems)
    problems.raise_if_any()
    if isinstance(keys, SourceKeys):
        return _source(keys, "", {})
    return SourceSpec("", "", tables=() if keys is None else keys.declarations())


def sources(
    folder: Path, bootstrap_servers: str, options: Mapping[str, str], environment: Mapping[str, str], problems: Problems
) -> list[tuple[SourceSpec, str]]:
    """Every source of a folder with the file it stands in; servers and options not given there are the shared ones."""
    found: list[tuple[SourceSpec, str]] = []
    for path in sorted(folder.glob("*.yaml")):
        document = read(path, problems).filled(environment, problems)
        keys = check(SourceKeys, document, problems) if document.values else None
        if keys is not None:
            found.append((_source(keys, bootstrap_servers, options), str(path)))
    _refuse_overlap(found, problems)
    return found


def _model(document: Document) -> type[DeclareKeys]:
    own = set(SourceKeys.model_fields) - set(DeclareKeys.model_fields)
    return SourceKeys if own & set(document.values) else DeclareKeys


def _source(keys: SourceKeys, bootstrap_servers: str, options: Mapping[str, str]) -> SourceSpec:
    servers = keys.bootstrap_servers if keys.bootstrap_servers is not None else bootstrap_servers
    return SourceSpec(
        name=keys.name,
        topics=keys.topics if keys.topics is not None else topics(keys.name, keys.include),
        bootstrap_servers=servers,
        tables=tuple(_declaration(name, table, keys) for name, table in keys.tables.items()),
        placeholder=keys.placeholder,
        options={**options, **keys.options},
        sequence_by=keys.sequence_by,
        default=Declaration("", outbox=_outbox(keys, (), ()), deletes=keys.deletes),
        signals=None if keys.signal_data_collection is None else _last_two(keys.signal_data_collection),
        latin1_bytes=keys.avro_bytes == "latin1",
        binlog_position=keys.binlog_position,
    )


def topics(prefix: str, include: tuple[str, ...] = ()) -> str:
    """A Java regular expression for the topics of a connector, or of some of its tables only."""
    tables = "|".join(_literal(table) for table in include)
    return f"{_literal(prefix)}[.]" + (f"(?:{tables})" if tables else ".*")


def reads(source: SourceSpec, table: str) -> bool:
    """Whether a source reads a table; a regular expression of the user's own is not second-guessed."""
    generated = source.topics.startswith(topics(source.name).removesuffix(".*") + "(?:")
    return not generated or _literal(table) in source.topics.split("(?:", 1)[1].removesuffix(")").split("|")


def _literal(name: str) -> str:
    # Debezium puts `_` for every character that a topic's name cannot have
    return re.sub(r"[^a-zA-Z0-9._-]", "_", name).replace(".", "[.]")


def _declaration(name: str, table: TableKeys, source: ShapeKeys | None = None) -> Declaration:
    """What a table's entry declares, and for what it leaves open its source."""
    columns = tuple(Column(column.name, column.type, column.unsigned, column.generated) for column in table.columns)
    outbox = _outbox(source if table.outbox is None and source is not None else table, table.keys, table.columns)
    deletes = source.deletes if table.deletes is None and source is not None else table.deletes
    return Declaration(
        name,
        columns,
        table.keys,
        table.truncate,
        table.unavailable,
        sequence_by=table.sequence_by,
        outbox=outbox,
        shape=table.shape,
        deletes=deletes,
        schema_changes=table.schema_changes,
        stored_as_scd_type=table.stored_as_scd_type,
        purge_after=table.purge_after,
    )


def _outbox(told: ShapeKeys, keys: tuple[str, ...], columns: tuple[ColumnKeys, ...]) -> Outbox | None:
    if told.outbox is None:
        return None
    return Outbox(
        told.outbox.mode,
        key=AGGREGATE_ID if AGGREGATE_ID in keys else EVENT_ID,
        null_deletes=told.outbox.empty_payload == "delete",
        binary=any(column.name == "payload" and column.type == "bytes" for column in columns),
        topic=told.outbox.topic,
    )


def _last_two(name: str) -> str:
    """``<schema>.<table>`` of a name that may begin with a database."""
    return ".".join(name.split(".")[-2:])


def _refuse_overlap(found: Sequence[tuple[SourceSpec, str]], problems: Problems) -> None:
    seen: dict[str, tuple[SourceSpec, str]] = {}
    for source, file in found:
        twin, twin_file = seen.setdefault(source.name.casefold(), (source, file))
        if twin is not source:
            problems.add(f"{twin_file} has the source {twin.name!r} already", file)
        for other, _ in found:
            if other.name.startswith(f"{source.name}.") and source.topics == topics(source.name):
                problems.add(f"the topics of {source.name!r} include those of {other.name!r}: give include", file)
