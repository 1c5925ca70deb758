"""Type versions: which column stores each type family of a source column, and how a table evolves to that.

Of the families of one source column, the one that occurs first at the source has the plain name, whichever arrived
first (debezium.md G2); the others are in ``name__v2`` and so on.
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
"""A text that sorts after every ``_seq``."""

FirstSeen = Mapping[tuple[str, str], str]
"""The smallest ``_seq`` of records that have a column in a type family, by (stored name, family)."""


def assign_columns(
    types: Mapping[str, Mapping[str, str]], held: set[tuple[str, str]], since: FirstSeen, *, may_move: bool
) -> dict[str, str]:
    """Assign each type to a column. Of the types of a source column the one that occurs first has the plain name."""
    placed: dict[str, str] = {}
    for name, kinds in types.items():

        def since_when(of: str, name: str = name) -> str:
            return since.get((name, of), "" if (name, of) in held else NEWEST)

        oldest_first = sorted(kinds, key=since_when) if may_move else list(kinds)
        placed |= {version_name(name, number): kinds[of] for number, of in enumerate(oldest_first, start=1)}
    return placed


def in_table_order(own: Mapping[str, str], placed: Mapping[str, str]) -> dict[str, str]:
    """The columns in table order: the table's own first."""
    return {column: placed[column] for column in own} | dict(placed)


def moves(own: Mapping[str, str], placed: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Columns whose type moves to another column: (from, to, the type there)."""
    homes = {(version_of(column)[0], type_family(kind)): column for column, kind in placed.items()}
    found = [(column, homes[version_of(column)[0], type_family(kind)]) for column, kind in own.items()]
    return [(column, to, placed[to]) for column, to in found if to != column]


def evolution(own: Mapping[str, str], placed: Mapping[str, str], moved: Sequence[tuple[str, str, str]]) -> Evolution:
    """The evolution from a table's own columns to the placed ones, some of which take over another column's values."""
    taken = {to for _, to, _ in moved}
    left = {column for column, _, _ in moved} - taken
    added = [(c, kind) for c, kind in placed.items() if c not in taken and (c not in own or c in left)]
    widened = [(c, k) for c, k in placed.items() if c in own and c not in taken | left and own[c] != k]
    return Evolution(tuple(added), tuple(widened), tuple(moved))


def refuse_name_conflicts(table: str, placed: Mapping[str, str]) -> None:
    """Raise SchemaRefused if a source has both ``v`` and ``v__v2``, which leaves no name for the second version of
    ``v``; ``V__V2`` is the same name (G4).
    """
    shown = [names.decode(column) for column in placed]
    folded = [names.encode(name).casefold() for name in shown]
    twin = next((name for name, own in zip(shown, folded, strict=True) if folded.count(own) > 1), None)
    if twin is not None:
        raise SchemaRefused(
            f"a new type needs a column {twin}, which the source already has",
            where=table,
            fix="Set `schema_changes: freeze` or `fail` for the table, or rename that column at the source.",
        )


def evolution_to_layout(stored: Mapping[str, str], layout: Layout) -> Evolution:
    """The evolution of a table beside silver's to the columns of a layout; columns that are wider there stay so."""
    own = {column: normalize_type(kind) for column, kind in stored.items()}
    placed = {}
    for column, kind in layout.types.items():
        held = next((each for name, each in own.items() if _is_home(name, each, column, kind)), None)
        wider = common_type(held, kind) if held is not None and type_family(kind) in ("number", "float") else None
        placed[column] = normalize_type(kind if wider is None else wider)
    return evolution(own, placed, moves(own, placed))


def can_follow(layout: Layout, stored: Mapping[str, str]) -> bool:
    """Whether a table beside silver's can follow a layout: silver was not rebuilt without one of its columns."""
    homes = {(version_of(column)[0], type_family(kind)) for column, kind in layout.types.items()}
    return all((version_of(column)[0], type_family(kind)) in homes for column, kind in stored.items())


def first_seen_types(
    forms: Sequence[Form], firsts: Mapping[int, str], named: Callable[[str], str]
) -> dict[tuple[str, str], str]:
    """The smallest ``_seq`` at which each column (by its stored name, from ``named``) has each type family, from that
    of each form (``firsts``).
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
