"""The PostgreSQL sink: whole batches, exactly once, decided by the ledger (architecture section 4, promise E)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import psycopg2
from psycopg2 import errors

from replicator import failpoints
from replicator.errors import ConfigError, TargetRefused, Unreachable
from replicator.protocols import UNFENCED, Difference, Fence
from replicator.sinks.dependency_order import referenced_first
from replicator.sinks.postgres import ddl, keepalive, ledger, privileges, publisher_lock
from replicator.sinks.postgres.connection import PostgresConnection
from replicator.sinks.postgres.retry import Backoff, error_of_sqlstate, refused_error, translate_errors
from replicator.sinks.postgres.transaction import Transaction, refuse_inapplicable
from replicator.sinks.refusals import Refusals
from replicator.spec import Applied, Model, Progress

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Session
    from psycopg2.extensions import cursor as Cursor

    from replicator.sinks.postgres.columns import StagedColumn
    from replicator.sinks.postgres.readback import PostgresReadback
    from replicator.sinks.postgres.staging import StagedRows

    Lacking = Callable[[Cursor, Sequence[Model]], Iterator[tuple[str, str]]]
    """A function that yields each problem for some models, and its remedy."""


class PostgresSink:
    """``Sink`` over one PostgreSQL database, 11 or newer.

    One publisher per schema at a time: a session lock is held from before staging until after the commit, on the
    connection that commits, so a publisher that lost the lock cannot commit either. A second publisher waits 10 s, then
    retries, then raises Unreachable. The server ends the session of a publisher that is silent for a while, hanging or
    cut off, so that nobody waits for it. Needs a direct connection, or a pooler in session mode.

    The token of the ``fence`` is recorded in the transaction; a writer whose token is lower than what the schema has
    seen of its lake is rolled back.
    """

    def __init__(
        self,
        connection: PostgresConnection,
        *,
        backoff: Backoff | None = None,
        fence: Fence = UNFENCED,
    ) -> None:
        self._fence = fence
        self._connection = connection
        self._backoff = backoff or Backoff()
        self._warned: set[str] = set()

    @classmethod
    def at(cls, *, fence: Fence = UNFENCED, brief: bool = False, **keys: Any) -> PostgresSink:
        """Return the sink of a target, by the fields of :class:`PostgresConnection`; a ``brief`` one does not retry."""
        connection = PostgresConnection(**keys)
        return cls(connection.brief(), backoff=Backoff(retries=0)) if brief else cls(connection, fence=fence)

    def check_connection(self, models: Sequence[Model] = ()) -> str:
        """Return server and version, from a session of its own. Raises Unreachable, also if the server takes no writes,
        and ConfigError if the role may not create the temporary tables for staging, or not create and write the tables
        of these models.
        """
        with closing(self._connection.open()) as session, self._translated("the batch"), session.cursor() as cursor:
            if (problem := privileges.read_only_problem(cursor)) is not None:
                raise Unreachable(problem[0], where=self._connection.where, fix=problem[1])
            for missing in privileges.missing_to_publish(cursor, models):
                raise ConfigError(missing[0], where=self._connection.where, fix=missing[1])
            return f"PostgreSQL {session.server_version // 10_000} at {self._connection.where}"

    def progress(self, model: Model) -> Progress | None:
        """Return the progress in the ledger of the model's schema; None without schema, ledger or row, if the table is
        not the one that was published to, or if it lacks what the model has. Raises Unreachable.
        """
        return self._backoff.retrying(lambda: self._recorded([model]).get(model.name))

    def invalidate(self, model: Model) -> None:
        """Mark the table's row of the ledger, if there is one, as that of another table. Raises Unreachable,
        LoginRefused, and TargetRefused for a role that may not.
        """
        self._backoff.retrying(lambda: self._invalidate(model))

    def publish(self, differences: Sequence[Difference]) -> dict[str, Applied]:
        """Publish all differences in one transaction with their ledger rows.

        1. lock; 2. create schema and ledger, and check rights; 3. stage by COPY; 4. one transaction: create missing
        tables, alter those that differ from their model, deletes with referencing models first, upserts with referenced
        models first, ledger; 5. COMMIT, and if its answer is lost, the ledger decides. If the connection is lost
        anywhere, this restarts at 1.

        A refused model is removed from the transaction, as are the models that reference it; the others are committed,
        then TargetRefused names it. A difference that is not complete needs a matching ledger row as its base.
        """
        ordered = referenced_first(differences)
        for difference in ordered:
            ddl.target_of(difference.model)
        if not ordered:
            return {}
        refusals = Refusals(ordered)
        applied = self._backoff.retrying(lambda: self._attempt(ordered, refusals))
        return refusals.raise_or_return(applied)

    @contextmanager
    def read_back(self, model: Model) -> Iterator[PostgresReadback]:
        """Read the ledger and the target in one read-only transaction. Raises TargetRefused, with the GRANT if the role
        may not read them.
        """
        from replicator.databases.postgresql import PostgresDatabase  # noqa: PLC0415 - as below
        from replicator.sinks.postgres.readback import PostgresReadback  # noqa: PLC0415 - as below

        with PostgresDatabase(self._connection.open, self._connection.where).read_snapshot() as snapshot:
            target = ddl.target_of(model)
            translating = self._asking(snapshot.session, model.name, [model], privileges.missing_to_read)
            with translating, snapshot.session.cursor() as cursor:
                keepalive.disable_transaction_timeout(cursor)
                has_ledger = ledger.exists(cursor, target.schema)
                recorded = ledger.read_last(cursor, target) if has_ledger else None
            yield PostgresReadback(model, recorded, snapshot)

    def _invalidate(self, model: Model) -> None:
        target = ddl.target_of(model)
        session = self._connection.open()
        with closing(session), self._asking(session, model.name, [model]), session, session.cursor() as cursor:
            if ledger.exists(cursor, target.schema):
                ledger.invalidate(cursor, target)

    def _attempt(self, ordered: Sequence[Difference], refusals: Refusals) -> dict[str, Applied]:
        from replicator.sinks.postgres.columns import plan_staging  # noqa: PLC0415 - reading the ledger needs no pyspark

        with closing(self._connection.open()) as session:
            session.autocommit = True
            with self._translated("the batch"), session.cursor() as cursor:
                keepalive.set_idle_timeouts(cursor, self._connection.idle_limit)
                publisher_lock.acquire(
                    cursor, ddl.by_schema(each.model for each in ordered), self._connection.idle_seconds
                )
            applied: dict[str, Applied] = {}
            staged: list[StagedRows] = []
            for number, difference in enumerate(ordered):
                if refusals.blocks(difference.model.name):
                    continue
                model = difference.model
                with refusals.record(), self._asking(session, model.name, [model]), session.cursor() as cursor:
                    columns = plan_staging(model, difference.rows.schema)
                    recorded = _prepare(cursor, difference)
                    self._warn_once(cursor, difference.model)
                    if ledger.covers(recorded, difference.progress):
                        applied[difference.model.name] = Applied(0, 0, 0, recorded.version if recorded else 0)
                    else:
                        failpoints.hit("publish.ledger_made")
                        self._refuse_unwritable(cursor, difference.model)
                        staged.append(self._stage(cursor, number, difference, columns))
                        failpoints.hit("publish.model_staged")
            with self._translated("the batch"):
                session.autocommit = False
            failpoints.hit("publish.all_staged")
            return applied | self._commit_unrefused(session, staged, refusals)

    def _refuse_unwritable(self, cursor: Cursor, model: Model) -> None:
        """Check rights to the table and the ledger before staging: otherwise each retry would stage the
        rows in vain.
        """
        target = ddl.target_of(model)
        of_ledger = ledger.TABLES if self._fence.token is not None else (ledger.TABLE,)
        missing = privileges.missing_on_tables(cursor, target.schema, [*of_ledger, target.table])
        if missing is not None:
            raise refused_error(model.name, *missing)

    def _warn_once(self, cursor: Cursor, model: Model) -> None:
        if model.name not in self._warned:
            ddl.warn_of_constraints(cursor, model)
            self._warned.add(model.name)

    def _stage(
        self, cursor: Cursor, number: int, difference: Difference, columns: tuple[StagedColumn, ...]
    ) -> StagedRows:
        from replicator.sinks.postgres.staging import StagedRows  # noqa: PLC0415 - reading the ledger needs no pyspark

        table = ddl.create_staging(cursor, number, columns)
        staged = StagedRows(difference, table, columns)
        self._hand_over(cursor.connection, staged)
        return staged

    def _hand_over(self, session: Session, staged: StagedRows) -> None:
        """Write the staged rows. For a text that the server cannot read, the server reports only the line; the error
        raised here names the column. If only keys of deletes are affected, everything else is written.
        """
        limit = self._connection.idle_seconds
        try:
            staged.write(session, limit)
        except psycopg2.DataError as error:
            column = staged.unreadable(session, limit)
            if column is not None:
                raise error_of_sqlstate(
                    error.pgcode, staged.model, self._connection.where, f"column {column}"
                ) from None
            staged.write(session, limit, readable=True)

    def _commit_unrefused(
        self, session: Session, staged: Sequence[StagedRows], refusals: Refusals
    ) -> dict[str, Applied]:
        """Repeat the transaction without the refused models until the rest is committed."""
        while True:
            remaining = [each for each in staged if not refusals.blocks(each.model)]
            if not remaining:
                return {}
            try:
                applied = Transaction(session, self._connection.where, self._fence).write(remaining)
                failpoints.hit("publish.before_commit")
                self._commit(session, remaining)
                failpoints.hit("publish.committed")
            except TargetRefused as error:
                refusals.note(self._with_column(session, error, remaining))
            else:
                return applied

    def _commit(self, session: Session, committed: Sequence[StagedRows]) -> None:
        self._fence.check()
        try:
            session.commit()
        except psycopg2.Error as error:
            if not session.closed:
                with self._translated("the batch"):
                    raise
            models = [each.difference.model for each in committed]
            recorded = self._backoff.retrying(lambda: self._recorded(models))
            if not all(ledger.covers(recorded.get(each.model), each.difference.progress) for each in committed):
                what = "the connection broke during COMMIT, and the batch is not in the ledger."
                raise Unreachable(what, where=self._connection.where, fix="Run again.") from error

    def _recorded(self, models: Sequence[Model]) -> dict[str, Progress]:
        """The ledger rows of these models, except those whose table is another one, or differs from its model."""
        recorded: dict[str, Progress] = {}
        session = self._connection.open()
        with closing(session), self._asking(session, "the ledger", models), session.cursor() as cursor:
            for schema, in_schema in ddl.by_schema(models).items():
                if ledger.exists(cursor, schema):
                    recorded |= ledger.read(cursor, schema, in_schema)
            lagging = {
                model.name for model in models if model.name in recorded and ddl.needs_full_publish(cursor, model)
            }
        return {name: progress for name, progress in recorded.items() if name not in lagging}

    def _with_column(self, session: Session, error: TargetRefused, candidates: Sequence[StagedRows]) -> TargetRefused:
        """The same error, naming the column if a staged value does not fit into one, which Postgres does not report."""
        staged = next((each for each in candidates if each.model == error.where), None)
        if staged is None:
            return error
        column = None
        with suppress(TargetRefused), self._translated(staged.model), session.cursor() as cursor:
            column = staged.find_misfit(cursor)
        session.rollback()
        if column is None:
            return error
        return TargetRefused(f"{error.what} The column is {column}.", where=error.where, fix=error.fix)

    @contextmanager
    def _asking(
        self, session: Session, whom: str, models: Sequence[Model], lacking: Lacking = privileges.missing_to_publish
    ) -> Iterator[None]:
        """As ``_translated``; if a right is ``lacking`` for these models, the error names it, with the GRANT."""
        with self._translated(whom):
            try:
                yield
            except errors.InsufficientPrivilege:
                session.rollback()
                with session.cursor() as cursor:
                    missing = next(lacking(cursor, models), None)
                if missing is None:
                    raise
                raise refused_error(whom, *missing) from None

    def _translated(self, model: str) -> AbstractContextManager[None]:
        return translate_errors(model, self._connection.where)


def _prepare(cursor: Cursor, difference: Difference) -> Progress | None:
    """Create a missing schema and ledger; return the ledger's progress. Raises TargetRefused, and TargetMoved if the
    recorded progress is not the base of the difference.
    """
    model = difference.model
    target = ddl.target_of(model)
    ddl.create_schema(cursor, target.schema)
    ledger.create(cursor, target.schema)
    needs_all_rows = ddl.prepare_target(cursor, model, complete=difference.complete)
    recorded = None if needs_all_rows else ledger.read(cursor, target.schema, {target.table: model}).get(model.name)
    refuse_inapplicable(difference, recorded)
    return recorded
