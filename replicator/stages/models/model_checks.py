"""The checks of a gold model: enforced by builds, or run over the stored rows.

A build checks the rows that it is about to write, and what these can violate: other rows with the same values, the
other balances of an account. Stored rows were checked when they were written; a check that is new or changed, according
to the digests of the newest control row, runs over all rows. A relationship is checked from both ends: written rows
must have their parent, and stored rows must not refer to a parent that was removed since the newest refresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import get_args

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from replicator import names
from replicator.errors import ChecksFailed, ConfigError, TableStopped, first_line
from replicator.spec import Model
from replicator.spec.rules import FAIL, Check, Relationship, RowCountChange
from replicator.stages import engine_errors
from replicator.stages.models.model_parents import Parents
from replicator.transforms import checks
from replicator.transforms.checks import BuildRows, RowRule
from replicator.transforms.display import as_texts

_NAMED = 3
_SHOWN = 40


@dataclass(frozen=True)
class Verdict:
    """The result of a check: how many rows violate it, the keys of a few of them, and another finding in words
    (``found``).
    """

    check: Check
    rows: int = 0
    keys: tuple[str, ...] = ()
    found: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing violates the check."""
        return not (self.rows or self.found)

    def __str__(self) -> str:
        if self.found or not self.rows:
            return f"{self.check.name}: {self.found or 'passed'}"
        more = ", ..." if self.rows > len(self.keys) else ""
        what = "1 row fails" if self.rows == 1 else f"{self.rows:,} rows fail"
        return f"{self.check.name}: {what} ({', '.join(self.keys)}{more})"


def digests(model: Model) -> dict[str, str] | None:
    """Return the digests of the model's checks for the control row; None without checks."""
    return {check.name: check.digest for check in model.checks} or None


def check_difference(
    model: Model,
    stored: DataFrame | None,
    difference: DataFrame,
    counts: Mapping[str, int],
    held: Mapping[str, str] | None,
    parents: Parents,
) -> tuple[str, ...]:
    """Check a difference; return the violations of checks that only warn. Raises ChecksFailed for the others,
    ConfigError for an expression that Spark refuses.

    ``counts``: the rows of the ``difference`` by their ``_op``; ``held``: the digests of the checks that the rows of
    ``stored`` have passed.
    """
    if not model.checks:
        return ()
    rows = BuildRows.from_difference(stored, difference, model.key)
    known = [check for check in model.checks if stored is None or (held or {}).get(check.name) == check.digest]
    fresh = [check for check in model.checks if check not in known]
    found = [] if stored is None else [*_row_count_verdicts(model, stored, rows, counts)]
    found += _verdicts(
        model, [check for check in known if any(counts.values()) or parents.has_moved(check.rule)], rows, parents
    )
    found += _verdicts(model, fresh, BuildRows.unchanged_build(rows.all_rows), parents)
    return _raise_failed(model, found)


def check_full(
    model: Model, stored: DataFrame | None, rows: DataFrame, count: int, parents: Parents
) -> tuple[str, ...]:
    """Check ``rows``, ``count`` many, that are to replace all that is ``stored``, like :func:`check_difference`."""
    bounds = [check for check in model.checks if isinstance(check.rule, RowCountChange)]
    before = stored.count() if bounds and stored is not None else 0
    found = [Verdict(check, found=_describe_excess(check.rule, before, count)) for check in bounds]  # type: ignore[arg-type]
    return _raise_failed(model, [*found, *_verdicts(model, model.checks, BuildRows.unchanged_build(rows), parents)])


def _raise_failed(model: Model, found: Iterable[Verdict]) -> tuple[str, ...]:
    bad = [each for each in found if not each.passed]
    failed = [each for each in bad if each.check.severity == FAIL]
    if failed:
        raise ChecksFailed(
            "; ".join(map(str, failed)),
            where=model.name,
            fix="The gold table was not changed. Fix the source or the model's SQL, or set `severity: warn`.",
        )
    return tuple(map(str, bad))


def check_stored(model: Model, rows: DataFrame, parents: Parents) -> list[Verdict]:
    """Return a verdict for each of a model's checks over all its stored rows; a change in their number cannot be
    checked there. Raises TableStopped if the table was built before the model got a column.
    """
    missing = [column.name for column in model.columns if column.name not in rows.columns]
    if missing:
        message = f"gold table {model.name} lacks columns of its model: {', '.join(missing)}"
        raise TableStopped(message, where=model.name, fix="Run gold first.")
    return list(_verdicts(model, model.checks, BuildRows.unchanged_build(rows), replace(parents, moved=frozenset())))


def _row_count_verdicts(
    model: Model, stored: DataFrame, rows: BuildRows, counts: Mapping[str, int]
) -> Iterator[Verdict]:
    for check in model.checks:
        if isinstance(check.rule, RowCountChange):
            yield Verdict(check, found=_changed_too_much(check.rule, model.key, stored, rows.written, counts))


def _verdicts(model: Model, to_check: Iterable[Check], rows: BuildRows, parents: Parents) -> Iterator[Verdict]:
    row_checks = [check for check in to_check if isinstance(check.rule, get_args(RowRule))]
    others = [check for check in to_check if check not in row_checks and not isinstance(check.rule, RowCountChange)]
    yield from _row_rule_verdicts(model, row_checks, rows)
    for check in others:
        yield _verdict(model, check, _broken(model, check, rows, parents))


def _row_rule_verdicts(model: Model, row_checks: Sequence[Check], rows: BuildRows) -> Iterator[Verdict]:
    """Check rules on single rows, in one pass over the rows."""
    if not row_checks:
        return
    conditions = []
    for check in row_checks:
        with _translate_errors(model, check):
            broken = checks.is_violation(check.rule, rows.written)  # type: ignore[arg-type]  # chosen by its type
            rows.written.where(broken)
            conditions.append(F.count(F.when(broken, 1)))
    [counts] = rows.written.agg(*[each.alias(f"c{number}") for number, each in enumerate(conditions)]).collect()
    for check, count in zip(row_checks, counts, strict=True):
        yield _verdict(model, check, checks.violations(check.rule, rows)) if count else Verdict(check)  # type: ignore[arg-type]


def _broken(model: Model, check: Check, rows: BuildRows, parents: Parents) -> DataFrame:
    rule = check.rule
    with _translate_errors(model, check):
        if isinstance(rule, Relationship):
            return _orphans(model, rule, rows, parents)
        return checks.violations(rule, rows)  # type: ignore[arg-type]


def _orphans(model: Model, rule: Relationship, rows: BuildRows, parents: Parents) -> DataFrame:
    if rule.to == model.name:
        return checks.orphans(rule, rows, rows.all_rows, _none_if_empty(_left(rule, rows)))
    known = parents.rows(rule.to)
    if rule.field not in known.columns:
        fix = f"Run gold, and fix what stopped model {rule.to}."
        raise TableStopped(f"{rule} needs a column that gold table {rule.to} lacks", where=model.name, fix=fix)
    if not parents.has_moved(rule):
        return checks.orphans(rule, rows, known)
    removed = parents.left(rule)
    if removed is None:
        return checks.orphans(rule, BuildRows.unchanged_build(rows.all_rows), known)
    return checks.orphans(rule, rows, known, _none_if_empty(removed))


def _left(rule: Relationship, rows: BuildRows) -> DataFrame:
    """Return the values of the rule's field that rows of the model itself had and that the rows replacing them do not
    have.
    """
    field = names.quote_spark(rule.field)
    return rows.deleted.select(field).join(rows.written.select(field), [rule.field], how="left_anti")


def _none_if_empty(rows: DataFrame) -> DataFrame | None:
    """Return None for an empty frame, so that nothing is searched for."""
    return None if rows.isEmpty() else rows


def _verdict(model: Model, check: Check, broken: DataFrame) -> Verdict:
    count = broken.count()
    if not count:
        return Verdict(check)
    key = [names.quote_spark(column) for column in model.key]
    texts = broken.orderBy(*key).select(*as_texts(model.key))
    return Verdict(check, count, tuple(map(_format_key, texts.take(_NAMED))))


def _format_key(key: Row) -> str:
    return " ".join(f"{column}={str(value)[:_SHOWN]}" for column, value in key.asDict().items())


def _changed_too_much(
    rule: RowCountChange, key: Sequence[str], stored: DataFrame, written: DataFrame, counts: Mapping[str, int]
) -> str:
    """Return which bound is exceeded, or ''. The keys of the table are read only if the number of written rows could
    exceed it.
    """
    before, deleted, added = stored.count(), counts.get("delete", 0), counts.get("upsert", 0)
    if not before:
        return ""
    if deleted > (before if rule.max_drop is None else before * rule.max_drop) or (
        rule.max_growth is not None and added > before * rule.max_growth
    ):
        added = written.join(stored.select(*map(names.quote_spark, key)), list(key), how="left_anti").count()
    return _describe_excess(rule, before, before + added - deleted)


def _describe_excess(rule: RowCountChange, before: int, after: int) -> str:
    """Return which bound is exceeded, in words, or ''."""
    if not before:
        return ""
    drop, growth = (before - after) / before, (after - before) / before
    if rule.max_drop is not None and drop > rule.max_drop:
        return f"from {before:,} to {after:,} rows, more than {rule.max_drop:.0%} fewer"
    if rule.max_growth is not None and growth > rule.max_growth:
        return f"from {before:,} to {after:,} rows, more than {rule.max_growth:.0%} more"
    return ""


@contextmanager
def _translate_errors(model: Model, check: Check) -> Iterator[None]:
    try:
        yield
    except AnalysisException as error:
        if engine_errors.repair_hint(str(error)) is not None:
            raise
        message = f"check {check.name} is invalid: {first_line(error)}"
        raise ConfigError(message, fix=f"Fix {model.name}.yaml.") from error
