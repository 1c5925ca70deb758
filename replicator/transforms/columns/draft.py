"""A draft of a table's columns, built by adding the forms of records one by one under a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.debezium.logical_types import Field, spark_type
from replicator.debezium.schema import Form
from replicator.debezium.widening import common_type
from replicator.errors import SchemaRefused
from replicator.transforms.columns.layout import fields_with_columns, normalize_type, resolve_name, type_family
from replicator.transforms.columns.policy import ADDED, UNREACHABLE, UNTYPED, VERSIONED, WIDENED, ColumnChange, Policy

DECLARE = "Declare its type for records that have none: in conf/sources, or with --declare next to --lake."
_GROWS = "Set `schema_changes: evolve` for the table: its old values stay equal to the new ones."
_OTHER_KEYS = (
    "Old and new rows cannot be matched. Declare other `keys` in conf/sources, then `replicator {}` builds it from "
    "bronze with them. Or use another topic prefix."
)


@dataclass
class Draft:
    """Types by source column and family while forms are added, and the changes that follow. ``spelling`` is that of the
    columns (``layout.index_by_case``).
    """

    table: str
    keys: tuple[str, ...]
    policy: Policy
    types: dict[str, dict[str, str]]
    spelling: Mapping[str, str]
    changes: list[ColumnChange] = field(default_factory=list)
    withheld: list[ColumnChange] = field(default_factory=list)
    stored: dict[str, dict[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.stored = {name: dict(kinds) for name, kinds in self.types.items()}

    def take(self, form: Form, *, is_first: bool) -> None:
        """Add one form; the columns of the first form of a new table are always accepted."""
        for each in fields_with_columns(form, self.keys):
            change = self._change(each, is_raw=each.name in form.raw)
            if change is None:
                continue
            if change.column in self.keys and not (is_first and change.kind == ADDED):
                self._refuse_key(change)
            if is_first and change.kind == ADDED:
                self._hold(change)
            elif self.policy.allows(change):
                self._hold(change)
                self.changes.append(change)
            elif change not in self.withheld:
                self.withheld.append(change)

    def _hold(self, change: ColumnChange) -> None:
        self.types.setdefault(change.column, {})[type_family(change.after)] = change.after

    def _change(self, each: Field, *, is_raw: bool) -> ColumnChange | None:
        name, kind = resolve_name(each.name, self.spelling), stored_type(each)
        held = self.types.get(name)
        if held is None:
            return ColumnChange(ADDED, name, "", kind)
        present = held.get(type_family(kind))
        if present is None:
            last = list(held.values())[-1]
            return ColumnChange(UNTYPED, name, last, "") if is_raw else ColumnChange(VERSIONED, name, last, kind)
        if type_family(kind) not in ("number", "float"):
            return None
        wider = common_type(present, kind)
        if wider is None:
            return ColumnChange(UNREACHABLE, name, present, kind)
        return None if normalize_type(wider) == present else ColumnChange(WIDENED, name, present, normalize_type(wider))

    def _refuse_key(self, change: ColumnChange) -> None:
        """Raise SchemaRefused unless the key only widens and its old values stay equal to the new ones (C6), which
        those of a FLOAT in a DOUBLE do not.
        """
        grows = change.kind == WIDENED and type_family(change.after) == "number"
        if (grows and self.policy.allows(change)) or (change.kind == ADDED and not self.stored):
            return
        if change.kind == UNTYPED:
            raise SchemaRefused(str(change), where=self.table, fix=DECLARE)
        fix = _GROWS if grows else _OTHER_KEYS.format(f"rebuild {self.table}" if self.stored else "run")
        raise SchemaRefused(f"the key changed: {change}", where=self.table, fix=fix)


def stored_type(each: Field) -> str:
    """The Spark type in which a field is stored."""
    return normalize_type(spark_type(each.logical))
