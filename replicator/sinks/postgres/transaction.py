"""The transaction that makes staged rows visible to readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg2

from replicator.errors import StaleWriter, TargetMoved, TargetRefused
from replicator.protocols import Difference, Fence
from replicator.sinks.postgres import ddl, evolve, ledger, violated_constraint
from replicator.sinks.postgres.retry import translate_errors
from replicator.spec import Applied, Progress

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Session
    from psycopg2.extensions import cursor as Cursor

    from replicator.sinks.postgres.staging import StagedRows


@dataclass(frozen=True)
class Transaction:
    """The transaction without its COMMIT, on the ``session`` that staged the rows, for a writer that may write while
    its ``fence`` allows it; ``where`` is the server's address.
    """

    session: Session
    where: str
    fence: Fence

    def write(self, going: Sequence[StagedRows]) -> dict[str, Applied]:
        """Write everything: 1. the writer's token; 2. lock the ledger's rows; 3. create missing tables, and alter those
        that differ from their models; 4. deletes, of referencing models first; 5. upserts, of referenced models first;
        6. constraints that are checked at the end, and the ledger.

        Rolled back if it raises TargetRefused.
        """
        deleted: dict[str, int] = {}
        upserted: dict[str, tuple[int, int]] = {}
        try:
            with self._translated("the batch"), self.session.cursor() as cursor:
                self._let_in(cursor, going)
                cursor.execute("SET CONSTRAINTS ALL DEFERRED")
                fresh = _lock_ledger(cursor, going)
                new = {each.model: self._evolve(cursor, each) for each in fresh}
                for each in reversed(fresh):
                    with self._translated(each.model):
                        deleted[each.model] = _delete(cursor, each)
                for each in fresh:
                    with self._translated(each.model):
                        upserted[each.model] = each.upsert(cursor)
                self._settle(cursor, fresh, new)
        except TargetRefused:
            self.session.rollback()
            raise
        return {
            each.model: Applied(
                *upserted.get(each.model, (0, 0)), deleted.get(each.model, 0), each.difference.progress.version
            )
            for each in going
        }

    def _let_in(self, cursor: Cursor, going: Sequence[StagedRows]) -> None:
        """Record the token and lock its row until the transaction ends. Raises LeaseLost, StaleWriter."""
        self.fence.check()
        token = self.fence.token
        if token is None:
            return
        for schema in ddl.by_schema(each.difference.model for each in going):
            if not ledger.record_token(cursor, schema, token):
                raise StaleWriter(
                    f"a writer of this lake later than number {token.number} has published to schema {schema}",
                    where=self.where,
                    fix="Nothing was written: run again. If the lake was restored from an older copy, remove "
                    "_replicator/leases/token.json first.",
                )

    def _evolve(self, cursor: Cursor, staged: StagedRows) -> tuple[str, ...]:
        """Alter the table to match the model, in the transaction of the rows; return new columns that must become NOT
        NULL.
        """
        with self._translated(staged.model):
            return ddl.evolve_target(cursor, staged.difference.model, complete=staged.difference.complete)

    def _settle(self, cursor: Cursor, written: Sequence[StagedRows], new: Mapping[str, Sequence[str]]) -> None:
        """Check deferred constraints here, where a violation is distinguishable from a lost COMMIT; then NOT NULL of
        new columns, and the ledger.
        """
        try:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg2.Error as error:
            targets = {each.model: ddl.target_of(each.difference.model) for each in written}
            places: dict[violated_constraint.TableName, str] = {
                (to.schema, to.table): name for name, to in targets.items()
            }
            with self._translated(violated_constraint.find_model(cursor, error.diag, places) or "the batch"):
                raise
        for each in written:
            target = ddl.target_of(each.difference.model)
            with self._translated(each.model):
                evolve.set_not_null(cursor, target, new[each.model])
                ledger.write(cursor, target, each.difference.model, each.difference.progress)

    def _translated(self, model: str) -> AbstractContextManager[None]:
        return translate_errors(model, self.where)


def _delete(cursor: Cursor, staged: StagedRows) -> int:
    """Return the number of rows deleted. Raises TargetRefused if they belong to a table that the ledger does not know:
    they were never published, so they may be foreign.
    """
    rows = staged.delete(cursor)
    target = ddl.target_of(staged.difference.model)
    if rows and ledger.read_last(cursor, target) is None:
        what = (
            f"table {target.schema}.{target.table} has {rows} rows that gold does not have, and nothing was ever "
            "published to it: they may belong to someone else."
        )
        fix = "Give the model another table, or remove these rows from this one: then it is taken over."
        raise TargetRefused(what, where=staged.model, fix=fix)
    return rows


def refuse_inapplicable(difference: Difference, recorded: Progress | None) -> None:
    """Raise TargetMoved if the ledger's progress is not the base that the difference was made for."""
    if not difference.applies_to(recorded):
        recorded_version = f"version {recorded.version} of {recorded.input}" if recorded else "nothing"
        model = difference.model.name
        what = f"the ledger has {recorded_version} for model {model}, so a partial publication is not possible."
        raise TargetMoved(what, where=model, fix="Run publish again: it sends everything that is missing.")


def _lock_ledger(cursor: Cursor, staged: Sequence[StagedRows]) -> list[StagedRows]:
    """Lock the ledger rows until the transaction ends; return the staged rows whose progress, or table, is not there
    yet. Raises TargetMoved if a table or a column was recreated while a part of its model's rows was staged.
    """
    recorded: dict[str, Progress] = {}
    for schema, names in ddl.by_schema(each.difference.model for each in staged).items():
        recorded |= ledger.read(cursor, schema, names, lock=True)
    fresh = [
        each
        for each in staged
        if not ledger.covers(recorded.get(each.model), each.difference.progress)
        or ddl.needs_full_publish(cursor, each.difference.model)
    ]
    for each in fresh:
        refuse_inapplicable(each.difference, recorded.get(each.model))
    return fresh
