"""Which column the values of a source column have by their family of types, and how a table comes to have it.

Among the families of one source column that one has the plain name which occurs first at the source, whatever came
first (debezium.md G2); the others are in ``name__v2`` and on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from replicator import names
from replicator.debezium.schema import Form
from replicator.debezium.widening import common_type
from replicator.errors import SchemaRefused
from replicator.spec import Evolution
from replicator.transforms.columns.draft import stored_type
from replicator.transforms.columns.layout import Layout, normalize_type, type_family, version_name, version_of

NEWEST = "~"
"""Above every ``_seq``."""

FirstSeen = Mapping[tuple[str, str], str]
"""The least ``_seq`` of the records that have a column in a family of types, by (stored name, family)."""


def assign_columns(
    types: Mapping[str, Mapping[str, str]], held: set[tuple[str, str]], since: FirstSeen, *, may_move: bool
) -> dict[str, str]:
    """Every column with its type. Among the types of a source column the one that occurs first has the plain name."""
    placed: dict[str, str] = {}
    for name, kinds in types.items():

        def since_when(of: str, name: str = name) -> str:
            return since.get((name, of), "" if (name, of) in held else NEWEST)

        oldest_first = sorted(kinds, key=since_when) if may_move else list(kinds)
        placed |= {version_name(name, number): kinds[of] for number, of in enumerate(oldest_first, start=1)}
    return placed


def in_table_order(own: Mapping[str, str], placed: Mapping[str, str]) -> dict[str, str]:
    """The table's own columns first, as they lie there."""
    return {column: placed[column] for column in own} | dict(placed)


def moves(own: Mapping[str, str], placed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Columns whose type goes to another column: (from, to, its type there)."""
    homes = {(version_of(column)[0], type_family(kind)): column for column, kind in placed.items()}
    found = [(column, homes[version_of(column)[0], type_family(kind)]) for column, kind in own.items()]
    return [(column, to, placed[to]) for column, to in found if to != column]


def evolution(own: Mapping[str, str], placed: Mapping[str, str], moved: Sequence[tuple[str, str, str]]) -> Evolution:
    """What makes a table's own columns the placed ones, of which some take what was in another."""
    taken = {to for _, to, _ in moved}
    left = {column for column, _, _ in moved} - taken
    added = [(c, kind) for c, kind in placed.items() if c not in taken and (c not in own or c in left)]
    widened = [(c, k) for c, k in placed.items() if c in own and c not in taken | left and own[c] != k]
    return Evolution(tuple(added), tuple(widened), tuple(moved))


def refuse_name_conflicts(table: str, placed: Mapping[str, str]) -> None:
    """A source that has both ``v`` and ``v__v2`` leaves no name for the second version of ``v``."""
    shown = [names.decode(column) for column in placed]
    twin = next((name for name in shown if shown.count(name) > 1), None)
    if twin is not None:
        raise SchemaRefused(
            f"a new type needs a column {twin}, which the source has already",
            where=table,
            mend="Set `schema_changes: freeze` or `fail` for the table, or rename that column at the source.",
        )


def evolution_to_layout(stored: Mapping[str, str], layout: Layout) -> Evolution:
    """How a table beside silver's must evolve to have the columns of a layout; a column of its own that is wider stays
    so.
    """
    own = {column: normalize_type(kind) for column, kind in stored.items()}
    placed = {}
    for column, kind in layout.types.items():
        held = next((each for name, each in own.items() if _is_home(name, each, column, kind)), None)
        wider = common_type(held, kind) if held is not None and type_family(kind) in ("number", "float") else None
        placed[column] = normalize_type(kind if wider is None else wider)
    return evolution(own, placed, moves(own, placed))


def can_follow(layout: Layout, stored: Mapping[str, str]) -> bool:
    """Whether a table beside silver's can follow: silver's own was not made anew without one of its columns."""
    homes = {(version_of(column)[0], type_family(kind)) for column, kind in layout.types.items()}
    return all((version_of(column)[0], type_family(kind)) in homes for column, kind in stored.items())


def first_seen_types(
    forms: Sequence[Form], firsts: Mapping[int, str], named: Callable[[str], str]
) -> dict[tuple[str, str], str]:
    """Since when each column, as it is ``named`` at rest, has each family of types, from the least ``_seq`` of each
    form.
    """
    found: dict[tuple[str, str], str] = {}
    for form in forms:
        for each in form.fields if form.id in firsts else ():
            if each.name not in form.raw:
                place = named(each.name), type_family(stored_type(each))
                found[place] = min(found.get(place, NEWEST), firsts[form.id])
    return found


def _is_home(name: str, held: str, column: str, kind: str) -> bool:
    return version_of(name)[0] == version_of(column)[0] and type_family(held) == type_family(kind)
