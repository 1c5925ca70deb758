"""Forms that are decoded as one. A column that a record does not name is NULL (debezium.md E8), whichever form says
that there is one: forms that agree about the columns that they share are one form with the columns of all.

Of documents nearly each may have other columns, and each form costs a plan of its own, more than half a second: a batch
of some hundred took minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from replicator.debezium.logical import Field
from replicator.debezium.schema import Form
from replicator.transforms.columns.layout import Layout


@dataclass(frozen=True)
class Joined:
    """A ``form`` that says how the records of some are decoded, by their ``ids``."""

    form: Form
    ids: tuple[int, ...]


def joined(forms: Sequence[Form], layout: Layout) -> list[Joined]:
    """The forms of a batch, each in one of these, in their order."""
    found: list[Joined] = []
    for form in forms:
        at = next((i for i, each in enumerate(found) if _are_one(each.form, form, layout)), None)
        if at is None:
            found.append(Joined(form, (form.id,)))
        else:
            found[at] = Joined(_both(found[at].form, form), (*found[at].ids, form.id))
    return found


def _are_one(one: Form, other: Form, layout: Layout) -> bool:
    """Whether both can be read as one: not rows whose key is made of their columns, nor where the table cannot follow a
    column that the other's records lack.
    """
    if one.appended or _frame(one, layout) != _frame(other, layout):
        return False
    known = {field.name.casefold(): told for field, told in _told(one)}
    is_same = all(known.get(field.name.casefold(), told) == told for field, told in _told(other))
    return is_same and layout.misfit(one) == layout.misfit(other)


def _frame(form: Form, layout: Layout) -> tuple[Any, ...]:
    """What must be the same: where row and key are, what the key is, whether there is a row, which keys it has."""
    keys = frozenset(layout.named(field.name) for field in form.fields) & frozenset(layout.keys)
    return form.path, form.key_path, form.key_fields, form.appended, bool(form.fields), keys


def _told(form: Form) -> list[tuple[Field, tuple[Field, bool]]]:
    """The columns of a form, each with what is told of it: two names that only case tells apart are not the same."""
    return [(field, (field, field.name in form.raw)) for field in (*form.image_fields, *form.fields)]


def _both(one: Form, other: Form) -> Form:
    return replace(
        one,
        fields=_union(one.fields, other.fields),
        image_fields=_union(one.image_fields, other.image_fields),
        raw=one.raw | other.raw,
    )


def _union(one: Iterable[Field], other: Iterable[Field]) -> tuple[Field, ...]:
    return tuple({field.name: field for field in (*one, *other)}.values())
