"""Synchronize a catalog with the lake: one outcome per entry; the refusal of one entry does not stop the others.

For an entry: 1. the table; 2. partitions that no longer exist are removed, 3. those with another location or other
columns are updated, 4. new ones are added. A crash in between is repaired by the next sync, which compares everything
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from replicator.catalog import presto_view, table_input
from replicator.catalog.entries import Entry, Kind
from replicator.catalog.table_input import LAKE, TABLE, Change
from replicator.errors import CatalogRefused, ReplicatorError

if TYPE_CHECKING:
    from replicator.catalog.glue import GlueCatalog

CREATED, CHANGED, UNCHANGED, GONE, DROPPED, REFUSED = "created", "changed", "unchanged", "gone", "dropped", "refused"
"""The action taken for an entry. ``gone``: owned by this lake, which no longer has the table."""


@dataclass(frozen=True)
class Outcome:
    """What a sync did with one entry, or would do: its changes, and how many partitions were added, changed and
    removed. ``table`` is the table of the lake that the entry shows.
    """

    name: str
    kind: str
    table: str
    action: str
    changes: tuple[Change, ...] = ()
    added: int = 0
    changed: int = 0
    removed: int = 0
    error: ReplicatorError | None = None


@dataclass(frozen=True)
class Plan:
    """The desired state of the catalog for the lake at ``lake`` (a URL): its ``entries``, the ``titles`` of all tables
    of the lake, and which tables are selected (``is_selected``, by title).
    """

    lake: str
    entries: tuple[Entry, ...]
    titles: frozenset[str]
    is_selected: Callable[[str], bool] = lambda _: True


def sync(catalog: GlueCatalog, plan: Plan, *, drop: bool = False, dry_run: bool = False) -> Iterator[Outcome]:
    """Yield one outcome for the database if it is new, one per entry as each is done, and one per owned entry whose
    table the lake no longer has; these are dropped on demand. A dry run yields the same and writes nothing.
    """
    present = catalog.tables()
    if not present and not catalog.exists():
        if not dry_run:
            catalog.make()
        yield Outcome(catalog.database, "database", "", CREATED)
    for entry in plan.entries:
        yield _sync_entry(catalog, plan, entry, present.get(entry.name), dry_run=dry_run)
    for name, table in _find_orphans(plan, present):
        outcome = Outcome(name, _kind(table), table["Parameters"][TABLE], DROPPED if drop else GONE)
        yield _drop(catalog, outcome) if drop and not dry_run else outcome


def refused_outcome(name: str, title: str, error: ReplicatorError, kind: str = "table") -> Outcome:
    """Return the outcome of what could not be registered."""
    return Outcome(name, kind, title, REFUSED, error=error)


def _sync_entry(
    catalog: GlueCatalog, plan: Plan, entry: Entry, present: Mapping[str, Any] | None, *, dry_run: bool
) -> Outcome:
    try:
        return _register(catalog, plan, entry, present, dry_run=dry_run)
    except CatalogRefused as error:
        return refused_outcome(entry.name, entry.title, error, entry.kind.value)


def _register(
    catalog: GlueCatalog, plan: Plan, entry: Entry, present: Mapping[str, Any] | None, *, dry_run: bool
) -> Outcome:
    if present is not None:
        _refuse_foreign(entry, present, plan.lake)
    wanted = table_input.table_input(entry, catalog.database, plan.lake, present)
    outcome = Outcome(entry.name, entry.kind.value, entry.title, CREATED)
    if present is not None:
        changes = tuple(table_input.differences(present, wanted))
        outcome = replace(outcome, action=CHANGED if changes else UNCHANGED, changes=changes)
    if not dry_run and outcome.action == CREATED:
        catalog.create(wanted)
    elif not dry_run and outcome.action == CHANGED:
        catalog.update(wanted)
    return _sync_partitions(catalog, entry, wanted, outcome, is_new=present is None, dry_run=dry_run)


def _drop(catalog: GlueCatalog, outcome: Outcome) -> Outcome:
    try:
        catalog.drop(outcome.name)
    except CatalogRefused as error:
        return refused_outcome(outcome.name, outcome.table, error, outcome.kind)
    return outcome


def _sync_partitions(
    catalog: GlueCatalog, entry: Entry, wanted: Mapping[str, Any], outcome: Outcome, *, is_new: bool, dry_run: bool
) -> Outcome:
    """Only readers of Hudi need registered partitions; those of other kinds of tables in Glue are left alone."""
    if not entry.partition_keys or entry.kind is Kind.delta:
        return outcome
    present = {} if is_new else catalog.partitions(entry.name)
    inputs = {each.values: table_input.partition_input(each, wanted) for each in entry.partitions}
    added = [each for values, each in inputs.items() if values not in present]
    moved = [
        each
        for values, each in inputs.items()
        if values in present and not table_input.is_same_location(present[values], each["StorageDescriptor"])
    ]
    removed = [values for values in present if values not in inputs]
    if not dry_run:
        catalog.remove_partitions(entry.name, removed)
        catalog.update_partitions(entry.name, moved)
        catalog.add_partitions(entry.name, added)
    is_changed = outcome.action == UNCHANGED and (added or moved or removed)
    action = CHANGED if is_changed else outcome.action
    return replace(outcome, action=action, added=len(added), changed=len(moved), removed=len(removed))


def _refuse_foreign(entry: Entry, present: Mapping[str, Any], lake: str) -> None:
    """Raise CatalogRefused for an entry registered by somebody else, unless it has the very same location or query."""
    parameters = present.get("Parameters", {})
    if parameters.get(LAKE) == lake:
        return
    fix = "Drop it there, or set catalog.database to another name."
    if LAKE in parameters:
        raise CatalogRefused(f"{entry.name} belongs to another lake, {parameters[LAKE]}", where=entry.title, fix=fix)
    place = present.get("StorageDescriptor", {}).get("Location", "")
    if entry.kind is Kind.view:
        text = present.get("ViewOriginalText", "")
        is_same, what = presto_view.decode(text) == entry.sql, "a view with another query" if text else "a table"
    else:
        is_same, what = _same_url(place, entry.location), f"a table at {place or 'no location'}"
    if not is_same:
        raise CatalogRefused(
            f"{entry.name} is already registered by another owner, as {what}", where=entry.title, fix=fix
        )


def _same_url(one: str, other: str) -> bool:
    return one.replace("s3a://", "s3://", 1).rstrip("/") == other.rstrip("/")


def _find_orphans(plan: Plan, present: Mapping[str, Mapping[str, Any]]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Owned entries of this lake that none of its tables needs: a table that was refused keeps its entries. An entry
    that does not name its table may belong to such a one.
    """
    wanted = {entry.name for entry in plan.entries}
    registered = {entry.title for entry in plan.entries}
    for name, table in sorted(present.items()):
        parameters = table.get("Parameters", {})
        title = parameters.get(TABLE, "")
        is_ours = bool(title) and parameters.get(LAKE) == plan.lake and plan.is_selected(title)
        if is_ours and name not in wanted and (title in registered or title not in plan.titles):
            yield name, table


def _kind(table: Mapping[str, Any]) -> str:
    return Kind.view.value if table.get("TableType") == "VIRTUAL_VIEW" else "table"
