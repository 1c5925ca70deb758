"""Forms that are decoded as one. A column that a record does not name is NULL (debezium.md E8), whichever form says
that there is one: forms that agree about the columns that they share are one form with the columns of all.

Of documents nearly each may have other columns, and each form costs a plan of its own, more than half a second: a batch
of some hundred took minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from replicator.debezium.logical_types import Field
from replicator.debezium.schema import Form
from replicator.transforms.columns.layout import Layout


@dataclass(frozen=True)
class FormGroup:
    """A ``form`` that says how the records of some are decoded, by their ``ids``."""

    form: Form
    ids: tuple[int, ...]


def group_forms(forms: Sequence[Form], layout: Layout) -> list[FormGroup]:
    """The forms of a batch, each in one of these, in their order. Rows whose key is made of their columns are by
    themselves, and those with a column that the table cannot follow are not with those that lack it.
    """
    groups: list[_GroupBuilder] = []
    alike = defaultdict[tuple[Any, ...], list[_GroupBuilder]](list)
    for form in forms:
        place = (_frame(form, layout), layout.misfit(form), form.id if form.appended else None)
        group = next((each for each in alike[place] if each.agrees(form)), None)
        if group is None:
            group = _GroupBuilder(form)
            groups.append(group)
            alike[place].append(group)
        group.add(form)
    return [each.joined() for each in groups]


@dataclass
class _GroupBuilder:
    """Forms that agree. ``known`` is what they tell of each column, in whatever case its name is written: two names
    that only case tells apart are not the same.
    """

    first: Form
    ids: list[int] = field(default_factory=list)
    known: dict[str, tuple[Field, bool]] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    image_fields: dict[str, Field] = field(default_factory=dict)
    raw: set[str] = field(default_factory=set)

    def agrees(self, form: Form) -> bool:
        """Whether the form tells the same of the columns that are known."""
        return all(self.known.get(name, told) == told for name, told in _known_fields(form))

    def add(self, form: Form) -> None:
        """Also of that form's records."""
        self.ids.append(form.id)
        self.known.update(_known_fields(form))
        for each in form.fields:
            self.fields.setdefault(each.name, each)
        for each in form.image_fields:
            self.image_fields.setdefault(each.name, each)
        self.raw |= form.raw

    def joined(self) -> FormGroup:
        """All of them as one."""
        columns = tuple(self.fields.values()), tuple(self.image_fields.values())
        form = replace(self.first, fields=columns[0], image_fields=columns[1], raw=frozenset(self.raw))
        return FormGroup(form, tuple(self.ids))


def _frame(form: Form, layout: Layout) -> tuple[Any, ...]:
    """What must be the same: where row and key are, what the key is, whether there is a row, which keys it has."""
    keys = frozenset(layout.named(each.name) for each in form.fields) & frozenset(layout.keys)
    return form.path, form.key_path, form.key_fields, bool(form.fields), keys


def _known_fields(form: Form) -> list[tuple[str, tuple[Field, bool]]]:
    return [(each.name.casefold(), (each, each.name in form.raw)) for each in (*form.image_fields, *form.fields)]
