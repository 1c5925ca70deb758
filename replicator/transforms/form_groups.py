"""Grouping of forms that can be decoded together. A column that a record does not have is NULL (debezium.md E8), so
forms that agree on their common columns can be one form with the columns of all.

Documents may have different columns in nearly every record, and each form costs a plan of its own, more than half a
second: a batch of some hundred forms took minutes.
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
    """A ``form`` by which the records of several forms are decoded, and their ``ids``."""

    form: Form
    ids: tuple[int, ...]


def group_forms(forms: Sequence[Form], layout: Layout) -> list[FormGroup]:
    """Group the forms of a batch, each into one group, in their order. Append-only forms, whose key is computed from
    the columns, stay alone; forms with a column that the table cannot follow are not grouped with those that lack it.
    """
    groups: list[_GroupBuilder] = []
    alike = defaultdict[tuple[Any, ...], list[_GroupBuilder]](list)
    for form in forms:
        place = (_frame(form, layout), layout.find_misfit(form), form.id if form.appended else None)
        group = next((each for each in alike[place] if each.agrees(form)), None)
        if group is None:
            group = _GroupBuilder(form)
            groups.append(group)
            alike[place].append(group)
        group.add(form)
    return [each.joined() for each in groups]


@dataclass
class _GroupBuilder:
    """Forms that agree. ``known`` is the definition of each column by its casefolded name: two names that differ only
    by case do not agree.
    """

    first: Form
    ids: list[int] = field(default_factory=list)
    known: dict[str, tuple[Field, bool]] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    image_fields: dict[str, Field] = field(default_factory=dict)
    raw: set[str] = field(default_factory=set)

    def agrees(self, form: Form) -> bool:
        """Whether the form defines the known columns in the same way."""
        return all(self.known.get(name, field) == field for name, field in _known_fields(form))

    def add(self, form: Form) -> None:
        """Add the form to the group."""
        self.ids.append(form.id)
        self.known.update(_known_fields(form))
        for each in form.fields:
            self.fields.setdefault(each.name, each)
        for each in form.image_fields:
            self.image_fields.setdefault(each.name, each)
        self.raw |= form.raw

    def joined(self) -> FormGroup:
        """The group, with the columns of all its forms."""
        columns = tuple(self.fields.values()), tuple(self.image_fields.values())
        form = replace(self.first, fields=columns[0], image_fields=columns[1], raw=frozenset(self.raw))
        return FormGroup(form, tuple(self.ids))


def _frame(form: Form, layout: Layout) -> tuple[Any, ...]:
    """What must be equal within a group: the paths of row and key, the key's fields, whether there is a row, and which
    key columns it has.
    """
    keys = frozenset(layout.stored_name(each.name) for each in form.fields) & frozenset(layout.keys)
    return form.path, form.key_path, form.key_fields, bool(form.fields), keys


def _known_fields(form: Form) -> list[tuple[str, tuple[Field, bool]]]:
    return [(each.name.casefold(), (each, each.name in form.raw)) for each in (*form.image_fields, *form.fields)]
