"""The declarations of one table in a source's file: columns, keys, the shape of its records, and their processing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from replicator.config import conditions
from replicator.config.columnkeys import ColumnKeys, ColumnName, Columns, refuse_duplicates
from replicator.config.duration import OptionalDuration
from replicator.config.shapekeys import ShapeKeys, build_outbox
from replicator.config.strict import to_tuple
from replicator.config.transformkeys import TransformKeys
from replicator.debezium.handling_modes import DEFAULT_MODES, HandlingModes
from replicator.debezium.logical_types import spark_type
from replicator.debezium.type_parser import parse_type, resolve_modes
from replicator.spec import AGGREGATE_ID, CHANGE, EVENT_ID, Column, Declaration, Transform
from replicator.spelling import suggest

_PYTHON_ONLY = re.compile(r"(?<!\\)(?:\(\?[P#(]|\{,\d*\})")
"""Groups, comments, conditions and repetitions that Java does not compile."""
_NOT_BOTH = "not a regular expression that both Java and Python accept"


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{_NOT_BOTH}: {error}") from error
    if found := _PYTHON_ONLY.search(text):
        raise ValueError(f"{_NOT_BOTH}: Java has no {found.group()}")
    return text


def _check_table_name(name: str) -> str:
    database, _, table = name.partition(".")
    if not (database and table):
        raise ValueError("a table must be named <database or schema>.<table>")
    if table == "*":
        raise ValueError(f"{name!r} is no table: they are named one by one")
    return name


def _refuse_pattern(name: str) -> str:
    if "*" in name:
        raise ValueError(f"{name!r} is no table: they are named one by one; topics takes a regular expression")
    return name


TableName = Annotated[str, AfterValidator(_check_table_name)]
OneTable = Annotated[TableName, AfterValidator(_refuse_pattern)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
Format = Literal["delta", "hudi"]
Formats = Annotated[tuple[Format, ...], BeforeValidator(to_tuple, json_schema_input_type=Format | tuple[Format, ...])]
SequenceBy = Literal["position", "source.ts_ms"]
TableType = Literal["copy_on_write", "merge_on_read"]


class TableKeys(ShapeKeys):
    """The declarations of a table; all of them are optional. ``columns`` are all columns of records without a schema
    block; where each is ``unsigned`` or ``generated``, they supplement a schema block, which has further columns.
    ``keys`` are its key columns where events have no key, or where another key is wanted. ``append_only``: no columns
    identify a row; there is one row per insert. ``apply_as_deletes`` is a SQL condition over its columns: a change
    whose row satisfies it is a delete. ``truncate`` is how a TRUNCATE is handled. ``unavailable: false`` treats the
    placeholder of values that PostgreSQL did not send as an ordinary text. ``schema_changes`` is whether new and
    changed columns are applied, wait for approval, or are ignored. ``stored_as_scd_type: 2`` keeps every state of every
    row beside the table. ``purge_after`` is how long deleted rows stay, where ``purge`` is run; 0 requires
    ``accept_refused_replays``. ``sequence_by: source.ts_ms`` orders changes by time, which is weaker than by position.
    ``shape`` is that of the records where it cannot be inferred. ``format`` is the format that rows are stored in, or
    both: [delta, hudi]. ``table_type`` is Hudi's. ``partition_by`` are columns of hive-style folders. ``transform`` is
    applied to changes before they become rows. ``shards`` is a regular expression of the source tables whose rows it
    takes; ``shard_column`` tells them apart.
    """

    columns: Columns = ()
    keys: tuple[ColumnName, ...] = ()
    append_only: bool = False
    apply_as_deletes: Annotated[str, Field(min_length=1)] | None = None
    truncate: Literal["apply", "ignore", "fail"] = "apply"
    unavailable: bool = True
    schema_changes: Literal["evolve", "freeze", "fail"] = "evolve"
    stored_as_scd_type: Literal[1, 2] = 1
    purge_after: OptionalDuration = None
    accept_refused_replays: bool = False
    sequence_by: SequenceBy | None = None
    shape: Literal["envelope", "flattened"] | None = None
    format: Formats = ()
    table_type: TableType | None = None
    partition_by: tuple[ColumnName, ...] = ()
    transform: TransformKeys | None = None
    shards: Pattern | None = None
    shard_column: ColumnName | None = None

    @property
    def whole(self) -> tuple[ColumnKeys, ...]:
        """The declared columns where all columns are declared; else none."""
        return () if all(column.supplements_schema for column in self.columns) else self.columns

    @model_validator(mode="after")
    def _sharded(self) -> TableKeys:
        if (self.shards is None) != (self.shard_column is None):
            raise ValueError(
                "shards and shard_column must be given together: the tables, and the column that distinguishes them"
            )
        if self.shards is not None and self.truncate == "apply":
            raise ValueError("a TRUNCATE of one shard would empty them all: with shards, set truncate: fail or ignore")
        if self.shard_column is not None and self.shard_column.casefold() in map(str.casefold, self.keys):
            raise ValueError(f"{self.shard_column!r} is added to the key: list in keys only columns that records have")
        if self.shard_column is not None and self.transform is not None and self.transform.names(self.shard_column):
            raise ValueError(f"{self.shard_column!r} tells the shards apart: no step of the transform may name it")
        return self

    @model_validator(mode="after")
    def _transformed(self) -> TableKeys:
        if self.transform is None:
            return self
        if self.schema_changes == "freeze":
            raise ValueError("transform with schema_changes: freeze: list the columns in column_list")
        columns = [] if self.is_router else [column.name for column in self.whole]
        self.transform.fit(columns, [column.name for column in self.columns if column.generated])
        return self

    @model_validator(mode="after")
    def _deleting(self) -> TableKeys:
        if self.apply_as_deletes is None:
            return self
        if self.schema_changes == "freeze":
            raise ValueError("apply_as_deletes and schema_changes: freeze cannot be combined: set evolve or fail")
        conditions.check_delete_condition(
            self.apply_as_deletes, [column.name for column in self.columns if column.generated]
        )
        return self

    @model_validator(mode="after")
    def _kept(self) -> TableKeys:
        if self.table_type is not None and "hudi" not in self.format:
            raise ValueError("table_type applies only to format: hudi")
        refuse_duplicates(list(self.format), "format")
        refuse_duplicates(list(self.partition_by), "partition_by")
        return self

    @model_validator(mode="after")
    def _purged(self) -> TableKeys:
        if self.purge_after == 0 and not self.accept_refused_replays:
            raise ValueError(
                "with purge_after: 0, a change that arrives late or again after a delete becomes a dead letter: set a "
                "time longer than Kafka keeps records, or set accept_refused_replays: true"
            )
        return self

    @model_validator(mode="after")
    def _events(self) -> TableKeys:
        if self.outbox is None or not self.is_router:
            return self
        if self.keys not in ((), (EVENT_ID,), (AGGREGATE_ID,)):
            raise ValueError(f"events of the outbox router have the key {EVENT_ID} or {AGGREGATE_ID}")
        if self.outbox.empty_payload == "delete" and self.keys != (AGGREGATE_ID,):
            raise ValueError(
                f"empty_payload: delete needs keys: [{AGGREGATE_ID}]: it deletes an aggregate, not the row of an event"
            )
        declared = {column.name: column.type for column in self.columns}
        if declared and declared not in ({"payload": "bytes"}, {"payload": "string"}):
            raise ValueError("of the outbox router's columns, only the payload can be declared, as bytes or string")
        return self

    @model_validator(mode="after")
    def _appended(self) -> TableKeys:
        refuse_append_only_conflict(self, self)
        return self

    @model_validator(mode="after")
    def _consistent(self) -> TableKeys:
        refuse_duplicates([column.name for column in self.columns], "the list of columns")
        declared = [column.name for column in self.whole]
        refuse_duplicates(list(self.keys), "the list of keys")
        has_own = self.is_router
        unknown = next((key for key in self.keys if declared and not has_own and key not in declared), None)
        if unknown is not None:
            raise ValueError(f"the key {unknown!r} is not a declared column{suggest(unknown, declared)}")
        return self


def refuse_append_only_conflict(table: TableKeys, shape: ShapeKeys) -> None:
    """Raise ValueError for declarations that an append-only table of this shape cannot have."""
    if not table.append_only:
        return
    reasons = {
        "keys": ("a table whose rows have a key is an ordinary one", bool(table.keys)),
        "stored_as_scd_type: 2": ("its rows never change", table.stored_as_scd_type == 2),
        "shards": ("changes of two shards may have the same position", table.shards is not None),
        "compacted_topic": ("records without a key are not compacted", bool(shape.compacted_topic)),
        "outbox": ("only its mode log keeps events", shape.outbox is not None and shape.outbox.mode != "log"),
        "apply_as_deletes": (
            "a delete does not identify its row; to leave rows out, use `where` of its transform",
            table.apply_as_deletes is not None,
        ),
    }
    wrong = next((key for key, (_, holds) in reasons.items() if holds), None)
    if wrong is not None:
        raise ValueError(f"append_only and {wrong} cannot be combined: {reasons[wrong][0]}")
    if any(column.name == CHANGE for column in table.columns):
        raise ValueError(f"{CHANGE} is reserved in an append-only table: it is the key of its rows")
    steps = table.transform
    if steps is not None and CHANGE in {*steps.cast, *steps.derive, *steps.hash, *steps.mask, *steps.rename.values()}:
        raise ValueError(f"{CHANGE} is the key of an append-only table: no step may change it")


def streamed_columns(table: TableKeys, shape: ShapeKeys) -> dict[str, str]:
    """Return the declared columns that a record of a table of this shape may have, with their Spark types; none where
    not all of them are declared, and for records of the outbox router.
    """
    if shape.is_router:
        return {}
    types = {column.name: parse_type(column.type) for column in table.whole if not column.generated}
    return {name: spark_type(logical) for name, logical in types.items()}


def refuse_undeclared_columns(name: str, table: TableKeys, shape: ShapeKeys) -> None:
    """Raise ValueError where the table's SQL reads an undeclared column although all columns are declared."""
    columns = streamed_columns(table, shape)
    if table.apply_as_deletes is not None:
        conditions.refuse_undeclared_columns(table.apply_as_deletes, name, columns)
    if table.transform is not None and columns:
        shard = [] if table.shard_column is None else [table.shard_column]
        table.transform.refuse_strange(name, [column.name for column in table.columns], shard)


def build_declaration(
    name: str, table: TableKeys, source: ShapeKeys | None = None, modes: HandlingModes = DEFAULT_MODES
) -> Declaration:
    """Return the declaration of a table's entry, with the values of its source for keys that are not set. ``modes`` are
    those of the source's connector (Y13); they do not apply to the output of the event router.
    """
    shape = table if source is None else table.over(source)
    has_own = shape.is_router
    columns = tuple(
        Column(each.name, each.type if has_own else resolve_modes(each.type, modes), each.unsigned, each.generated)
        for each in table.columns
    )
    return Declaration(
        name,
        columns,
        table.keys,
        table.truncate,
        table.unavailable,
        sequence_by=table.sequence_by,
        outbox=build_outbox(shape, table.keys, table.columns),
        shape=table.shape,
        deletes=shape.deletes,
        schema_changes=table.schema_changes,
        stored_as_scd_type=table.stored_as_scd_type,
        purge_after=table.purge_after,
        compacted_topic=bool(shape.compacted_topic),
        format=table.format[0] if table.format else "",
        twins=table.format[1:],
        merge_on_read=table.table_type == "merge_on_read",
        partition_by=table.partition_by,
        transform=_build_transform(table),
        shards=table.shards or "",
        append_only=table.append_only,
    )


def _build_transform(table: TableKeys) -> Transform | None:
    if table.transform is None and table.shard_column is None and table.apply_as_deletes is None:
        return None
    transform = Transform() if table.transform is None else table.transform.transform()
    return replace(transform, shard=table.shard_column or "", as_deletes=table.apply_as_deletes or "")
