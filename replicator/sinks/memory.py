"""Tables in memory: a ``Sink`` for tests and experiments, under the same contract as Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replicator.errors import StaleWriter, TargetMoved, TargetRefused
from replicator.protocols import UNFENCED, Difference, Fence
from replicator.sinks.dependency_order import referenced_first
from replicator.sinks.refusals import Refusals, translate_compute_errors
from replicator.spec import Applied, Model, Progress

Rows = dict[tuple[Any, ...], dict[str, Any]]


class MemorySink:
    """``Sink`` in a dict: ``tables`` holds, per table name, the rows by key; ``ledger`` the progress per table name,
    ``tokens`` the greatest token per lake.

    Types are not checked; NULL in a column declared NOT NULL is refused.
    """

    def __init__(self, *, fence: Fence = UNFENCED) -> None:
        self.tables: dict[str, Rows] = {}
        self.ledger: dict[str, Progress] = {}
        self.tokens: dict[str, int] = {}
        self.fence = fence
        self._columns: dict[str, frozenset[str]] = {}

    @classmethod
    def at(cls, *, fence: Fence = UNFENCED, **_: object) -> MemorySink:
        """Return a new sink, whatever address is given; its contents end with the process."""
        return cls(fence=fence)

    def check_connection(self, models: Sequence[Model] = ()) -> str:  # noqa: ARG002
        """Return its name; it is always reachable."""
        return "memory of this process"

    def progress(self, model: Model) -> Progress | None:
        """Return the progress in the ledger; None if the model has a column that was not published."""
        published = self._columns.get(_table(model), _names(model))
        return self.ledger.get(_table(model)) if _names(model) <= published else None

    def invalidate(self, model: Model) -> None:
        """Forget which columns were published, so that :meth:`progress` is None."""
        if _table(model) in self.ledger:
            self._columns = self._columns | {_table(model): frozenset()}

    def publish(self, differences: Sequence[Difference]) -> dict[str, Applied]:
        """Apply all differences that are not refused, and make them visible at once at the end."""
        ordered = referenced_first(differences)
        refusals = Refusals(ordered)
        tables: dict[str, Rows] = {}
        applied: dict[str, Applied] = {}
        for difference in ordered:
            name, table = difference.model.name, _table(difference.model)
            recorded = self.progress(difference.model)
            with refusals.record():
                if self._is_new(difference):
                    tables[name] = self._after(difference)
                    applied[name] = _compare(self.tables.get(table, {}), tables[name], difference.progress.version)
                elif recorded is not None:
                    applied[name] = Applied(0, 0, 0, recorded.version)
        committed = [each for each in ordered if each.model.name in tables and not refusals.blocks(each.model.name)]
        self._let_in()
        self.tables = self.tables | {_table(each.model): tables[each.model.name] for each in committed}
        self.ledger = self.ledger | {_table(each.model): each.progress for each in committed}
        self._columns = self._columns | {_table(each.model): _names(each.model) for each in committed}
        return refusals.raise_or_return(applied)

    def _let_in(self) -> None:
        self.fence.check()
        token = self.fence.token
        if token is None:
            return
        if token.number < self.tokens.get(token.lake, 0):
            raise StaleWriter("a writer of this lake later than this has published", where="memory", fix="Run again.")
        self.tokens[token.lake] = token.number

    def _is_new(self, difference: Difference) -> bool:
        recorded, wanted = self.progress(difference.model), difference.progress
        if not difference.applies_to(recorded):
            what = (
                f"the ledger has no such input for model {difference.model.name}: a partial publication is not enough."
            )
            raise TargetMoved(
                what, where=difference.model.name, fix="Publish again: it sends everything that is missing."
            )
        return recorded is None or not recorded.covers(wanted)

    def _after(self, difference: Difference) -> Rows:
        model = difference.model
        rows: Rows = {} if difference.complete else dict(self.tables.get(_table(model), {}))
        with translate_compute_errors(model.name):
            changes = difference.rows.collect()
        for row in changes:
            key = tuple(row[name] for name in model.key)
            if row["_op"] == "delete":
                rows.pop(key, None)
            else:
                rows[key] = {column.name: row[column.name] for column in model.columns}
                _refuse_null(model, rows[key])
        return rows


def _table(model: Model) -> str:
    return model.name if model.target is None else model.target.table


def _names(model: Model) -> frozenset[str]:
    return frozenset(column.name for column in model.columns)


def _refuse_null(model: Model, row: dict[str, Any]) -> None:
    for column in model.columns:
        if row[column.name] is None and (not column.nullable or column.name in model.key):
            what = f"column {column.name} of model {model.name} may not be NULL."
            raise TargetRefused(what, where=model.name, fix="Fix the model and run publish again.")


def _compare(before: Rows, after: Rows, version: int) -> Applied:
    return Applied(
        inserted=len(after.keys() - before.keys()),
        updated=sum(1 for key in after.keys() & before.keys() if after[key] != before[key]),
        deleted=len(before.keys() - after.keys()),
        version=version,
    )
