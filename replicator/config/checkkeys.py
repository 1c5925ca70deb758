"""``checks`` of a gold model's file: rules for one column below that column, rules for rows below ``checks``.

columns:
  status: {type: text, checks: [not_null, {accepted_values: [open, shipped], severity: warn}]}
checks:
  - unique: [order_key, order_line_key]
  - {expression: quantity > 0, name: something is ordered}
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from replicator.config.columnkeys import ColumnName
from replicator.config.strict import Strict
from replicator.spec import rules
from replicator.spec.rules import Check, Relationship, Rule
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from replicator.config.yamlfile import KeyPath
    from replicator.spec import Model


def check_plain_value(value: Any) -> Any:
    """Return a string, number, boolean or date. Raises ValueError for anything else."""
    if not isinstance(value, (str, int, float, bool, date)):
        raise ValueError("a value must be a string, a number, true or false, or a date")  # noqa: TRY004 - for pydantic
    return value


def _expand_short_form(found: Any) -> Any:
    """Expand a single word to ``{word: true}``."""
    return [{each: True} if isinstance(each, str) else each for each in found] if isinstance(found, list) else found


Share = Annotated[float, Field(ge=0)]
PlainValue = Annotated[Any, AfterValidator(check_plain_value)]


class RelationshipKeys(Strict):
    """``field`` of the model ``to`` contains every value of the column."""

    to: str
    field: ColumnName


class RowCountChangeKeys(Strict):
    """Shares of the previous number of rows: 0.1 is a tenth."""

    max_drop: Annotated[float, Field(ge=0, le=1)] | None = None
    max_growth: Share | None = None

    @model_validator(mode="after")
    def _some(self) -> RowCountChangeKeys:
        if self.max_drop is None and self.max_growth is None:
            raise ValueError("give max_drop, max_growth or both")
        return self


class SemiAdditiveKeys(Strict):
    """A balance: see ``rules.SemiAdditive``."""

    measure: ColumnName
    by: tuple[ColumnName, ...] = Field(min_length=1)
    over: ColumnName
    every: Literal["day", "week", "month"] | None = None


class _CheckKeys(Strict):
    severity: Literal["warn", "fail"] = "fail"
    name: Annotated[str, Field(min_length=1)] | None = None

    kinds: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _one_kind(self) -> _CheckKeys:
        given = [kind for kind in self.kinds if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"a check must be one of {', '.join(self.kinds)}")
        return self

    def _named(self, rule: Rule) -> Check:
        return Check(self.name or str(rule), rule, self.severity)


class ColumnCheckKeys(_CheckKeys):
    """A check of one column."""

    kinds = ("not_null", "unique", "accepted_values", "relationship")

    not_null: Literal[True] | None = None
    unique: Literal[True] | None = None
    accepted_values: Annotated[tuple[PlainValue, ...], Field(min_length=1)] | None = None
    relationship: RelationshipKeys | None = None

    def check(self, column: str) -> Check:
        """Return the check as a value of the domain model."""
        if self.not_null:
            return self._named(rules.NotNull(column))
        if self.accepted_values is not None:
            return self._named(rules.AcceptedValues(column, self.accepted_values))
        if self.relationship is not None:
            return self._named(Relationship(column, self.relationship.to, self.relationship.field))
        return self._named(rules.Unique((column,)))


class ModelCheckKeys(_CheckKeys):
    """A check of a model's rows."""

    kinds = ("unique", "expression", "row_count_change", "semi_additive")

    unique: Annotated[tuple[ColumnName, ...], Field(min_length=1)] | None = None
    expression: Annotated[str, Field(min_length=1)] | None = None
    row_count_change: RowCountChangeKeys | None = None
    semi_additive: SemiAdditiveKeys | None = None

    def check(self) -> Check:
        """Return the check as a value of the domain model."""
        if self.unique is not None:
            return self._named(rules.Unique(self.unique))
        if self.expression is not None:
            return self._named(rules.Expression(self.expression))
        if self.row_count_change is not None:
            change = self.row_count_change
            return self._named(rules.RowCountChange(change.max_drop, change.max_growth))
        given = self.semi_additive
        assert given is not None  # noqa: S101 - it is one of its kinds
        return self._named(rules.SemiAdditive(given.measure, given.by, given.over, given.every))


ColumnChecks = Annotated[
    tuple[ColumnCheckKeys, ...],
    BeforeValidator(
        _expand_short_form, json_schema_input_type=tuple[Literal["not_null", "unique"] | ColumnCheckKeys, ...]
    ),
]
ModelChecks = Annotated[tuple[ModelCheckKeys, ...], BeforeValidator(_expand_short_form)]


def refuse_boolean_values(checks: Iterable[ColumnCheckKeys], kind: str) -> None:
    """Raise ValueError where accepted values of a column that is not BOOLEAN are booleans. YAML reads ``no`` and ``on``
    as booleans, so that valid rows with these words would violate the check.
    """
    accepted = [value for each in checks for value in each.accepted_values or ()]
    switch = next((str(value).lower() for value in accepted if isinstance(value, bool)), None)
    if switch is not None and not kind.startswith("bool"):
        raise ValueError(
            f"accepted_values contains {switch}, but the column is {kind}: quote words such as on, yes and no"
        )


def build_checks(
    columns: Iterable[tuple[str, Sequence[ColumnCheckKeys]]], model: Sequence[ModelCheckKeys]
) -> list[Check]:
    """Return the checks of each column, then those of the rows. Raises ValueError where two have the same name."""
    found = [each.check(column) for column, checks in columns for each in checks]
    found += [each.check() for each in model]
    names = [each.name for each in found]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ValueError(f"the check {duplicate!r} is declared twice: give one of them a name")
    return found


def find_check_errors(model: Model, models: Mapping[str, Model]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the references in a model's checks that do not exist: the key in the model's file, and the message."""
    declared = {column.name for column in model.columns}
    for check in model.checks:
        rule = check.rule
        for column in rules.columns(rule):
            if column not in declared and not column.startswith("_"):
                yield ("checks",), f"{check.name}: {column!r} is not a column{suggest(column, declared)}"
        if isinstance(rule, Relationship):
            wrong = _relationship_error(rule, models)
            if wrong:
                yield ("columns", rule.column, "checks"), f"{check.name}: {wrong}"


def _relationship_error(rule: Relationship, models: Mapping[str, Model]) -> str | None:
    if rule.to not in models:
        return f"model {rule.to!r} does not exist{suggest(rule.to, models)}"
    columns = {column.name for column in models[rule.to].columns}
    return None if rule.field in columns else f"{rule.to} has no column {rule.field!r}{suggest(rule.field, columns)}"
