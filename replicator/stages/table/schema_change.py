"""Plan what a batch changes in the schema of its table, including what must be known of earlier records.

A batch without changes costs nothing here: it needs no job, and the ledger is read only once per process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.debezium.connect_schema import is_unquoted_name
from replicator.debezium.schema import Form
from replicator.errors import TableStopped
from replicator.stages.table.transform_origins import Origin
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick import schema_ledger
from replicator.stages.tick.schema_ledger import Ledger
from replicator.stages.tick.table_share import TableShare
from replicator.transforms import changes, evolve
from replicator.transforms.columns import encodings, type_versions
from replicator.transforms.columns.encodings import Encodings
from replicator.transforms.columns.layout import key_of, type_family, unreserved_names, version_of
from replicator.transforms.columns.policy import ADDED, MOVED, ColumnChange, Policy
from replicator.transforms.columns.unsupported_types import nested_types
from replicator.transforms.evolve import Plan
from replicator.transforms.merge import SYSTEM_COLUMNS


@dataclass(frozen=True)
class PlannedChange:
    """A plan, the policy it was made under, and the ledger to write before it is carried out (None: unchanged); for a
    transformed table also its columns at the source (``origin``).
    """

    plan: Plan
    policy: Policy
    ledger: Ledger | None = None
    origin: Origin | None = None


def plan_change(
    share: TableShare, ordered: DataFrame, forms: Sequence[Form], stored: StructType | None
) -> PlannedChange:
    """Plan the schema changes for a batch of ordered records. Writes nothing; raises SchemaRefused if the key
    changed.
    """
    policy = Policy(share.declaration.schema_changes)
    draft = _plan(share, forms, stored, policy, None)
    # if forms differ, the earliest decides the columns of a new table; a delete without a row has no columns
    rows = [(form.fields, form.key_fields) for form in forms if form.fields]
    is_new = stored is None and any(row != rows[0] for row in rows)
    if not (is_new or draft.changes or draft.withheld or draft.has_versions):
        return PlannedChange(draft, policy, _with_written(share, encodings.from_forms(forms)))
    ledger = known = load(share)
    policy = Policy(policy.name, ledger.approved)
    firsts = _firsts(ordered)
    forms = sorted(forms, key=lambda form: firsts.get(form.id, type_versions.NEWEST))
    found = _plan(share, forms, stored, policy, ledger)
    if found.has_versions:
        sightings = type_versions.first_seen_types(forms, firsts, found.layout.stored_name)
        if stored is not None and (missing := _unsighted(stored, found, ledger)):
            sightings = sightings | dict.fromkeys(missing, "") | _read_sightings(share, stored, found)
        ledger = ledger.with_sightings(_of_versions(found, sightings))
        found = _plan(share, forms, stored, policy, ledger)
    if policy.name == "freeze":
        ledger = ledger.with_left_out(change.column for change in found.withheld if change.kind == ADDED)
        share.at.state.complete_tables.discard(share.name)
    ledger = ledger.recorded((change, _change_seq(change, forms, firsts, ledger)) for change in found.changes)
    ledger = ledger.with_encodings(encodings.from_forms(forms))
    return PlannedChange(found, policy, None if ledger == known else ledger)


def load(share: TableShare) -> Ledger:
    """Load the ledger of the share's table."""
    at = share.at
    found = schema_ledger.load(at.control, at.lake.schema(at.source.name, share.name), share.routes.bronze)
    at.state.written[share.name] = found.written
    return found


def save(share: TableShare, ledger: Ledger) -> None:
    """Write the ledger of the share's table."""
    share.at.control.put(share.at.lake.schema(share.at.source.name, share.name), ledger.value())
    share.at.state.written[share.name] = ledger.written


def load_written(share: TableShare) -> Encodings:
    """Load the encodings of the table's columns."""
    return load(share).written


def _with_written(share: TableShare, written: Encodings) -> Ledger | None:
    """Return the ledger with further encodings of columns; None if it contains them already. It is read only if this
    process does not know them yet.
    """
    known = share.at.state.written.get(share.name, {})
    if encodings.combine(known, written) == known:
        return None
    ledger = load(share)
    return None if ledger.with_encodings(written) == ledger else ledger.with_encodings(written)


def _plan(
    share: TableShare, forms: Sequence[Form], stored: StructType | None, policy: Policy, ledger: Ledger | None
) -> Plan:
    _refuse_unreadable(share, stored)
    types = None if stored is None else {column.name: column.dataType.simpleString() for column in stored}
    since = None if ledger is None else ledger.since
    declared = share.declaration
    return evolve.plan(
        share.name,
        forms,
        types,
        keys(stored),
        declared=declared.keys,
        policy=policy,
        since=since,
        free=unreserved_names(declared.formats),
    )


def _refuse_unreadable(share: TableShare, stored: StructType | None) -> None:
    """Raise TableStopped for a struct with a field name that no type can be written with, from before such structs were
    stored as text.
    """
    structs = ((column.name, each) for column in stored or () for each in nested_types(column.dataType))
    fields = ((column, name) for column, each in structs if isinstance(each, StructType) for name in each.names)
    column, name = next((each for each in fields if not is_unquoted_name(each[1])), ("", ""))
    if column:
        table = share.table.name
        message = (
            f"column {names.decode(column)} is a struct with a field {name!r}, which is not a valid name in a type"
        )
        raise TableStopped(
            message, where=table, fix=f"`replicator rebuild {table}` builds it from bronze as a string column."
        )


def keys(stored: StructType | None) -> tuple[str, ...]:
    """Return the key columns that the table was created with, by source name; none if it does not say."""
    return tuple(map(names.decode, key_of(stored)))


def _firsts(ordered: DataFrame) -> dict[int, str]:
    """Return the least ``_seq`` of each form."""
    least = ordered.groupBy("form").agg(F.min("_seq").alias("first"))
    return {row["form"]: row["first"] for row in least.collect() if row["first"] is not None}


def _change_seq(change: ColumnChange, forms: Sequence[Form], firsts: dict[int, str], ledger: Ledger) -> str:
    """Return the least ``_seq`` at which the batch has the new type; for types that change places, that of the older
    type.
    """
    if change.kind == MOVED:
        return min(at for (column, _), at in ledger.since.items() if column == change.column)
    return evolve.first_seen(change, forms, firsts) or min(firsts.values(), default="")


def _of_versions(found: Plan, seen: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """Return the sightings of columns that have several versions."""
    return {place: at for place, at in seen.items() if place[0] in _versioned(found)}


def _unsighted(stored: StructType, found: Plan, ledger: Ledger) -> set[tuple[str, str]]:
    """Return the types of such columns in the table whose first sighting the ledger lacks; a batch alone cannot tell
    it.
    """
    stored_types = {
        (version_of(column.name)[0], type_family(column.dataType.simpleString()))
        for column in stored
        if column.name not in SYSTEM_COLUMNS
    }
    return {place for place in stored_types if place[0] in _versioned(found) and place not in ledger.since}


def _versioned(found: Plan) -> set[str]:
    return {version_of(column)[0] for column in found.layout.types if version_of(column)[1] > 1}


def _read_sightings(share: TableShare, stored: StructType, found: Plan) -> dict[tuple[str, str], str]:
    """Read all sightings from bronze: done once per table and column, when its second type appears. Types that bronze
    no longer shows count as present from the beginning.
    """
    at, spark = share.at, share.spark
    topics = share.routes.topics(share.name)
    bronze = at.bronze.read(spark, at.lake.bronze(at.source.name), share.upto).where(F.col("topic").isin(*topics))
    usable = F.col("rule").isNull() & F.col("reason").isNull() & (F.col("table") == share.name)
    with share.described(bronze) as described:
        rows = share.routed(described).where(usable)
        groups = changes.survey(rows).collect()
        forms, _ = forms_of.from_groups(groups, rows, share.declaration, stored, partial(load_written, share))
        snapshots = any(group["has_snapshot"] for group in groups)
        firsts = _firsts(changes.with_seq(rows, snapshots=snapshots, running=None))
        return type_versions.first_seen_types(forms, firsts, found.layout.stored_name)
