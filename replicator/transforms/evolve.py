"""Schema evolution: the schema of the changes against that of the table, as a layout for the batch and a plan of what
must change first.

Silver evolves by union: new columns are added, types widen, nothing is ever dropped (debezium.md G3, types.md
section 8). A type that no widening reaches gets a column of its own, ``name__v2``. Which type family has which column
follows from the order in which they first occur at the source, not from the order of arrival (G2): with the same
records a table ends with the same columns, however they were batched.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from replicator import names
from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Form
from replicator.debezium.widening import common_type
from replicator.errors import SchemaRefused
from replicator.spec import CHANGE, Evolution
from replicator.transforms.columns import type_versions
from replicator.transforms.columns.draft import DECLARE, Draft, stored_type
from replicator.transforms.columns.layout import (
    Layout,
    fields_with_columns,
    index_by_case,
    normalize_type,
    resolve_name,
    stored_name,
    type_family,
    version_of,
)
from replicator.transforms.columns.policy import (
    ADDED,
    DEFAULT_POLICY,
    MOVED,
    UNREACHABLE,
    UNTYPED,
    VERSIONED,
    ColumnChange,
    Policy,
)
from replicator.transforms.merge import SYSTEM_COLUMNS


@dataclass(frozen=True)
class Plan:
    """The layout of a batch, the table's evolution for it, and the named changes.

    ``withheld`` changes are not allowed by the policy and not in the layout. ``dropped`` are columns, by stored name,
    that records with a new column no longer have.
    """

    layout: Layout
    evolution: Evolution
    changes: tuple[ColumnChange, ...] = ()
    withheld: tuple[ColumnChange, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def has_versions(self) -> bool:
        """Whether some source column has several stored columns."""
        return any(version_of(column)[1] > 1 for column in self.layout.types)

    @property
    def warnings(self) -> list[str]:
        """Warnings for the user; new and wider columns need none."""
        found = [
            f"{change}: {self._consequence(change)}" for change in self.changes if change.kind in (VERSIONED, MOVED)
        ]
        found += [f"{change}: the table does not follow (schema_changes: freeze)" for change in self.withheld]
        added = [names.decode(change.column) for change in self.changes if change.kind == ADDED]
        if self.dropped and added:
            gone = ", ".join(map(names.decode, self.dropped))
            found.append(f"added {', '.join(added)}, removed {gone}: if this is a rename, old rows keep the old name")
        return found

    def _consequence(self, change: ColumnChange) -> str:
        if change.kind == MOVED:
            return "its values were moved there"
        home = next((c for c, kind in self.layout.types.items() if _is_of(c, kind, change)), None)
        if home is None:
            return "the transform determines what such values become"
        return f"such values are stored in {names.decode(home)} from now on"


def plan(
    table: str,
    forms: Sequence[Form],
    stored: Mapping[str, str] | None,
    keys: Sequence[str] = (),
    *,
    declared: Sequence[str] = (),
    policy: Policy = DEFAULT_POLICY,
    since: type_versions.FirstSeen | None = None,
    free: Collection[str] = (),
) -> Plan:
    """Plan a batch; ``keys`` are those that the table was created with, ``declared`` the user's, by source name.

    ``stored`` maps the table's columns to Spark types, None before it exists: then the table is created from the first
    form with columns, and the others are changes of it. ``since`` decides which types have which column; without it
    stored types keep theirs, and new ones follow. ``free`` are names that the table's formats do not reserve
    (``layout.unreserved_names``). Raises SchemaRefused if the key has changed.
    """
    own = {column: normalize_type(kind) for column, kind in (stored or {}).items() if column not in SYSTEM_COLUMNS}
    forms, books = forms if stored is not None else _in_creation_order(forms), _types_by_family(own)
    there = index_by_case([*books, *(name for name in free if stored_name(name) not in books)])
    key_names = tuple(stored_name(key, there) for key in _keys(table, forms, keys, declared))
    spelling = _spelling(table, books, [fields_with_columns(form, key_names) for form in forms], there)
    key_names = tuple(spelling.get(key.casefold(), key) for key in key_names)
    draft = Draft(table, key_names, policy, books, spelling)
    for form in forms:
        draft.take(form, is_first=stored is None and not draft.types)
    held = {(name, type_family(kind)) for name, kinds in draft.stored.items() for kind in kinds.values()}
    placed = type_versions.assign_columns(draft.types, held, since or {}, may_move=policy.name != "freeze")
    type_versions.refuse_name_conflicts(table, placed)
    moved = type_versions.moves(own, placed)
    evolution = Evolution() if stored is None else type_versions.evolution(own, placed, moved)
    changes = [ColumnChange(MOVED, version_of(column)[0], column, to) for column, to, _ in moved]
    layout = Layout(type_versions.in_table_order(own, placed), key_names, keys_from_row=bool(declared))
    return Plan(layout, evolution, (*draft.changes, *changes), tuple(draft.withheld), _dropped(forms, own, draft))


def refuse_withheld(table: str, found: Plan, policy: Policy) -> None:
    """Raise SchemaRefused, naming the change, if a change was withheld and the policy is not ``freeze``."""
    if not found.withheld or policy.name == "freeze":
        return
    change = found.withheld[0]
    more = f" (and {len(found.withheld) - 1} more)" if len(found.withheld) > 1 else ""
    advice = {
        UNTYPED: DECLARE,
        UNREACHABLE: "Make it compatible at the source, or set `schema_changes: freeze` for the table.",
    }
    approve = f"`replicator schema diff --approve {table}` allows it; so does `schema_changes: evolve` for the table."
    raise SchemaRefused(f"{change}{more}", where=table, fix=advice.get(change.kind, approve))


def first_seen(change: ColumnChange, forms: Sequence[Form], firsts: Mapping[int, str]) -> str | None:
    """The smallest ``_seq`` of the forms that cause a change; None if none of them does."""
    brought = [
        firsts[form.id]
        for form in forms
        for each in (*form.fields, *form.key_fields)
        if form.id in firsts and _is_same(each.name, change.column) and _brings(stored_type(each), change)
    ]
    return min(brought, default=None)


def _is_same(column: str, stored: str) -> bool:
    return resolve_name(column, index_by_case([stored])) == stored


def _brings(kind: str, change: ColumnChange) -> bool:
    if change.kind == ADDED:
        return True
    wider = common_type(change.before, kind)
    fitted = wider is not None and normalize_type(wider) == change.before
    return type_family(kind) == type_family(change.after) and not fitted


def _is_of(column: str, kind: str, change: ColumnChange) -> bool:
    return version_of(column)[0] == change.column and type_family(kind) == type_family(change.after)


def _in_creation_order(forms: Sequence[Form]) -> list[Form]:
    """Forms in the order in which a new table takes them: the first one with columns (a delete may have none), the
    others in their order, and last those with columns without a type.
    """
    described = sorted(forms, key=lambda form: bool(form.raw))
    first = next((form for form in described if form.fields), None)
    return described if first is None else [first, *(form for form in described if form is not first)]


def _types_by_family(own: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Stored types by source column and family, oldest version first."""
    books: dict[str, dict[str, str]] = {}
    for column in sorted(own, key=lambda each: version_of(each)[1]):
        books.setdefault(version_of(column)[0], {})[type_family(own[column])] = own[column]
    return books


def _spelling(
    table: str, stored: Iterable[str], forms: Sequence[Sequence[Field]], there: Container[str]
) -> dict[str, str]:
    """The spelling of columns: the table's, then the first form's. A source may change the case of a name; raises
    ConfigError if two names in one form differ only by case (G4).
    """
    spelled = [[stored_name(each.name, there) for each in form] for form in forms]
    for columns in spelled:
        names.refuse_case_conflict(columns, f"table {table}")
    return index_by_case([*stored, *(name for columns in spelled for name in columns)])


def _dropped(forms: Sequence[Form], own: Mapping[str, str], draft: Draft) -> tuple[str, ...]:
    """Columns of the table, or of the form that creates it, that records with a new column lack: dropped, or the old
    name of the new one. Records with another new column may be older and still have them.
    """
    added = {change.column for change in draft.changes if change.kind == ADDED}
    first = [resolve_name(each.name, draft.spelling) for each in forms[0].fields] if forms and not own else []
    known = index_by_case([*(version_of(column)[0] for column in own), *first])
    told = [{resolve_name(each.name, known) for each in form.fields} for form in forms]
    with_new = [set[str]().union(*(columns for columns in told if new in columns)) for new in added]
    gone = (name for name in known.values() if any(columns and name not in columns for columns in with_new))
    return tuple(name for name in gone if name not in draft.keys)


def _keys(table: str, forms: Sequence[Form], keys: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """The key's columns by source name. Records may have another key only where the user declared one."""
    told = sorted({tuple(each.name for each in form.key_fields) for form in forms if form.key_fields})
    found = [tuple(declared)] if declared else told
    known = [tuple(keys)] if keys else []
    if len({frozenset(map(str.casefold, each)) for each in (*known, *found)}) > 1:
        shown = " / ".join(",".join(each) for each in found)
        raise SchemaRefused(
            f"the key was {','.join(keys)} and is now {shown}" if keys else f"the key changed: {shown}",
            where=table,
            fix=_key_advice(table, keys, found),
        )
    return next(iter(found if declared else (*known, *found)), ())


def _key_advice(table: str, keys: Sequence[str], found: Sequence[Sequence[str]]) -> str:
    """The advice for a changed key; that of an append-only table depends on its declaration."""
    rebuild = f"`replicator rebuild {table}` builds it from bronze with"
    if keys and any(CHANGE in each for each in (keys, *found)):
        return f"Restore `append_only` in conf/sources, or {rebuild} the other key."
    advice = (
        "Declare `keys` in conf/sources: columns that both old and new rows have; if those beyond the records' own "
        "key can change, records must have their row `before` (PostgreSQL: REPLICA IDENTITY FULL)."
    )
    if not keys:
        return advice
    source, _, name = table.partition("/")
    snapshot = f"`replicator connect snapshot {source} {name} --remove-missing`"
    return f"{advice} Then {rebuild} them, and {snapshot} removes rows that were deleted under the old key."
