"""``replicator connect snapshot``: read tables again while changes continue to be captured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from replicator.cli import console, options
from replicator.cli.connect import lookup
from replicator.errors import ConfigError, ConnectorFailed, Unreachable

if TYPE_CHECKING:
    from replicator.connect.notifications import Notification
    from replicator.connect.responses import Status
    from replicator.connect.rest import Connect
    from replicator.connect.signals import Signal, SnapshotRequest
    from replicator.settings import Settings
    from replicator.spec import SourceSpec

_CHECK_SECONDS = 60.0
_COLUMNS = ("table", "then", "rows")


@dataclass(frozen=True)
class _Order:
    """A signal for a connector that runs with ``config``."""

    name: str
    source: SourceSpec
    config: Mapping[str, str]
    signal: Signal


def snapshot(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="The source: its topic prefix.", metavar="SOURCE")],
    tables: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Argument(help="Tables as named in silver. With --stop, default: all.", metavar="TABLE..."),
    ] = None,
    where: Annotated[
        str, typer.Option("--where", help="Only the rows that meet this SQL condition.", metavar="SQL")
    ] = "",
    blocking: Annotated[
        bool, typer.Option("--blocking", help="Pause the stream until the snapshot is complete.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop the incremental snapshot in progress.")] = False,
    remove_missing: Annotated[
        bool, typer.Option("--remove-missing", help="Delete rows from silver that the snapshot does not contain.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Report progress, and exit when the snapshot is complete.")
    ] = True,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Take a snapshot of tables while changes continue, by a signal to the connector. Exit code 1 if a table was not
    read.

    A snapshot does not report rows that the source no longer has: they stay in silver, unless --remove-missing is
    given; then the next run removes them.
    """
    from replicator.connect import notifications, signals

    settings = options.settings(env, conf)
    connect = lookup.cluster(settings)
    request = signals.SnapshotRequest(tuple(tables or ()), where, blocking, stop, remove_missing)
    if remove_missing and not wait:
        raise ConfigError("--remove-missing has to wait for the end of the snapshot", fix="Omit --no-wait.")
    order = _order(lookup.sources_by_connector(settings, [source]), connect, request)
    _require_tables(order, request.tables)
    if not (blocking or stop):
        _refuse_obstacles(order.source, request.tables)
    waits = wait and not stop
    answers = signals.notifications(order.name, order.config, whole=remove_missing) if waits else ""
    finish = _prepare_removal(context, settings, order.source, request.tables) if remove_missing else None
    jvm = _jvm(context, settings) if answers or signals.topic(order.config) else None
    if not answers:
        _send(order, jvm)
        console.narrate(f"The signal was sent to {order.name}.")
        return
    found = _watch(order, connect, answers, jvm, request.tables)
    _print(found, as_json=as_json)
    notifications.require_read(source, found)
    if finish is not None:
        finish()


def _order(described: Mapping[str, SourceSpec], connect: Connect, request: SnapshotRequest) -> _Order:
    """Build the signal. Raises ConfigError for a request that the running connector does not support, ConnectorFailed
    where it has failed.
    """
    from replicator.connect import signals

    [(name, source)] = described.items()
    known = lookup.find_connectors(connect, [name])[name]
    signals.require_channel(name, known.config)
    signal = signals.build_signal(request, known.config)
    _require_running(name, known.status)
    return _Order(name, source, known.config, signal)


def _require_running(name: str, status: Status | None) -> None:
    if status is not None and status.failed:
        raise ConnectorFailed(f"connector {name} failed: {status.trace}", fix="Fix the cause, then restart it.")
    if status is not None and status.is_suspended:
        fix = f"Resume it: `replicator connect resume {name}`."
        raise ConfigError(f"the connector {name} is {status.connector} and reads no signals", fix=fix)


def _require_tables(order: _Order, tables: tuple[str, ...]) -> None:
    """Raise ConfigError for a table that the source does not have, which a connector skips silently. Where this cannot
    be determined, print a warning.
    """
    from replicator.connect import table_existence

    if not tables:
        return
    seen, why = _visible_tables(order.source)
    login = order.source.database
    unknown = table_existence.find_unverified(tables, order.config, seen, "" if login is None else login.user)
    if unknown:
        console.narrate(
            f"warning: it is unknown whether {', '.join(unknown)} exists: {why}. A connector ignores a name that it "
            "does not know",
            style="yellow",
        )


def _refuse_obstacles(source: SourceSpec, tables: tuple[str, ...]) -> None:
    """Raise ConfigError for a table of which an incremental snapshot would skip or alter rows. A source that cannot be
    queried is not checked.
    """
    from replicator.databases.readiness import preflight

    if source.database is None or source.connector is None:
        return
    try:
        found = preflight.snapshot_obstacles(source.database, source.connector)
    except (ConfigError, Unreachable):
        return  # _require_tables has reported it
    known = {name.casefold(): why for name, why in found.items()}
    for table in tables:
        if why := known.get(table.casefold()):
            raise ConfigError(f"{table}: {why}", fix="Use --blocking, which reads every row.")


def _visible_tables(source: SourceSpec) -> tuple[list[str] | None, str]:
    """Return the tables that the source's login can see (None where the source cannot be queried), and why a table may
    be missing among them.
    """
    from replicator.databases.readiness import preflight

    if source.database is None or source.connector is None:
        return None, f"the file of {source.name} has no block `database`"
    try:
        tables = preflight.list_tables(source.database, source.connector)
    except (ConfigError, Unreachable) as error:
        return None, error.what.rstrip(".")
    return tables, f"{source.database.user} does not see the tables of the source"


def _prepare_removal(
    context: typer.Context, settings: Settings, source: SourceSpec, tables: tuple[str, ...]
) -> Callable[[], None]:
    """Record where Kafka ends before the signal is sent, and return a function to be called once every table was read.
    The lease that it needs is acquired once now, so that a lake which grants none fails at once and not after hours.
    """
    from replicator import assemble
    from replicator.operate import snapshot_removal
    from replicator.operate.lock import operator_lock

    spark, [refinement] = options.open_sources(context, settings, source.name, brief=True)
    reader = assemble.kafka_source(source)
    with operator_lock(refinement.lake, assemble.lease_options(settings)):
        begun = snapshot_removal.begin(spark, refinement, reader, tables)

    def finish() -> None:
        with operator_lock(refinement.lake, assemble.lease_options(settings)) as fence:
            snapshot_removal.finish(spark, refinement, reader, begun, int(time.time() * 1000), fence)
        console.narrate("The next run removes from silver the rows that the source no longer has.")

    return finish


def _jvm(context: typer.Context, settings: Settings) -> Any:
    from replicator import session

    return session.jvm(settings, debug=options.is_debug(context))


def _send(order: _Order, jvm: Any) -> None:
    """Send the signal by the signal topic where there is one, since that needs no login to the database; else by the
    table.
    """
    from replicator.connect import signal_topic, signals
    from replicator.databases import signal_table

    source, login = order.source, order.source.database
    if topic := signals.topic(order.config):
        client = (source.bootstrap_servers, source.options)
        signal_topic.send(jvm, *client, topic, order.config["topic.prefix"], order.signal)
    elif login is None:
        fix = (
            "Add to the source's file a `database` block that may INSERT there, or to its connector a topic: `signals`."
        )
        raise ConfigError(f"no way to insert a row into {signals.table(order.config)} is configured", fix=fix)
    else:
        signal_table.send(login, signals.quote(login.kind, signals.table(order.config)), order.signal.row())


def _watch(order: _Order, connect: Connect, answers: str, jvm: Any, tables: tuple[str, ...]) -> list[Notification]:
    """Send the signal, report its progress, and return the final notification of each table."""
    from replicator.connect import notifications
    from replicator.debezium.event_reader import StartingOffset
    from replicator.sources.consumer import Topic

    topic = Topic(answers, order.source.bootstrap_servers, order.source.options)
    with closing(topic.batches(jvm, StartingOffset(last=0), follow=True)) as batches:
        next(batches)  # positions the consumer: every notification from here on is read
        _send(order, jvm)
        read = partial(notifications.parse_notification, of=order.signal, prefix=order.config["topic.prefix"])
        values = ([each.value for each in batch] for batch in batches)
        notices, tell = [], _progress_printer(order.name)
        for each in notifications.follow(values, read, status_check(connect, order.name), patience=_CHECK_SECONDS):
            tell(each)
            notices.append(each)
    return notifications.outcomes(notices, tables)


def status_check(connect: Connect, name: str, patience: float = _CHECK_SECONDS) -> Callable[[], None]:
    """Return a function that raises if the connector has failed or was suspended, or if for longer than ``patience``
    seconds Kafka Connect has not answered or has not known it: a restarted worker continues an incremental snapshot.
    """
    seen = time.monotonic()

    def check() -> None:
        nonlocal seen
        is_patient = time.monotonic() - seen <= patience
        try:
            status = connect.status(name)
        except Unreachable:
            if is_patient:
                return
            raise
        if status is not None:
            seen = time.monotonic()
        elif not is_patient:
            raise ConnectorFailed(f"connector {name} was deleted", fix="Apply it again, then repeat the command.")
        _require_running(name, status)

    return check


def _progress_printer(name: str) -> Callable[[Notification], None]:
    """Return a function that prints notifications; those of chunks only at intervals."""
    last = time.monotonic()

    def tell(notice: Notification) -> None:
        nonlocal last
        if notice.is_progress and time.monotonic() - last >= console.LINE_SECONDS:
            last = time.monotonic()
            chunk = f": chunk {notice.chunk:,} of {notice.chunks:,}" if notice.chunk and notice.chunks else ""
            console.narrate(f"{name}: {notice.table} is being read{chunk}")
        elif notice.is_scan:
            console.narrate(f"{name}: {notice.describe}")

    return tell


def _print(found: list[Notification], *, as_json: bool) -> None:
    if as_json:
        console.print_json([{"table": each.table, "then": each.status, "rows": each.rows} for each in found])
    else:
        rows = [(each.table, each.status, None if each.rows is None else f"{each.rows:,}") for each in found]
        console.print_table(_COLUMNS, rows)
