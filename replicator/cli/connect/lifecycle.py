"""Manage existing connectors: ``plugins``, ``list``, ``status``, ``pause``, ``resume``, ``restart``, ``stop``,
``delete``.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli import advice, console, options
from replicator.cli.connect import lookup
from replicator.errors import ConfigError, ConnectorFailed, ReplicatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from replicator.connect.responses import ConnectorInfo
    from replicator.connect.rest import Connect

_LATER_SECONDS = 3.0
"""Delay before started connectors are checked again: a task may fail after its first read, while it is
already RUNNING.
"""


def plugins(env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None, as_json: options.Json = False) -> None:
    """List the connector classes that are installed on the workers."""
    found = lookup.cluster(options.settings(env, conf)).plugins()
    if as_json:
        console.print_json([asdict(each) for each in found])
    else:
        console.print_table(("class", "type", "version"), [(each.name, each.type, each.version) for each in found])


def list_(env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None, as_json: options.Json = False) -> None:
    """List all connectors with their class, their state and that of their tasks."""
    found = lookup.find_connectors(lookup.cluster(options.settings(env, conf)), None)
    rows = [(name, _class(known), *_states(known)) for name, known in found.items()]
    if as_json:
        console.print_json([dict(zip(("name", "class", "state", "tasks"), row, strict=True)) for row in rows])
    elif rows:
        console.print_table(("name", "class", "state", "tasks"), [(*row[:3], ", ".join(row[3])) for row in rows])
    else:
        apply = advice.command("connect", "apply")
        console.narrate(f"Kafka Connect has no connectors; {apply} registers those of the files.")


def status(
    connectors: lookup.AnyConnectors = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Show the state of connectors and their tasks, with the shortened causes of failures; exit code 1 if one has
    failed.
    """
    found = lookup.find_connectors(lookup.cluster(options.settings(env, conf)), connectors)
    parts_by_name = {name: known.status.parts if known.status is not None else () for name, known in found.items()}
    if as_json:
        console.print_json(
            [{"connector": name, **asdict(part)} for name, parts in parts_by_name.items() for part in parts]
        )
    else:
        rows = [
            (name, "connector" if part.task is None else f"task {part.task}", part.state, part.worker, part.trace)
            for name, parts in parts_by_name.items()
            for part in parts
        ]
        console.print_table(("connector", "part", "state", "worker", "why"), rows)
    failed = [name for name, known in found.items() if known.status is not None and known.status.failed]
    for name in failed:
        restart_it = advice.command("connect", "restart", name)
        console.narrate(f"{name} has failed: fix the cause, then {restart_it}.", style="red")
    if failed:
        raise typer.Exit(ConnectorFailed.exit_code)


def pause(connectors: lookup.Connectors, env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None) -> None:
    """Pause connectors. Their tasks stay, and so does what they keep at the source: a replication slot still retains
    log.
    """
    _each(env, conf, connectors, lambda connect, name: connect.pause(name), "paused")


def resume(connectors: lookup.Connectors, env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None) -> None:
    """Resume paused or stopped connectors, and check for some seconds whether they run. Exit code 1 if one fails."""

    def go_on(connect: Connect, name: str) -> None:
        connect.resume(name)
        connect.wait_running(name)

    _each(env, conf, connectors, go_on, "runs", starts=True)


def restart(
    connectors: lookup.Connectors,
    whole: Annotated[bool, typer.Option("--all", help="Also restart what is running, not only what failed.")] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
) -> None:
    """Restart the failed parts of connectors, and check for some seconds whether they run. Exit code 1 if one fails."""

    def again(connect: Connect, name: str) -> None:
        status = connect.status(name)
        if status is not None and status.is_suspended:
            fix = f"Resume it: {advice.command('connect', 'resume', name)}."
            raise ConfigError(f"it is {status.connector}, which a restart does not change", fix=fix)
        connect.restart(name, only_failed=not whole)
        connect.wait_running(name)

    _each(env, conf, connectors, again, "runs", starts=True)


def stop(connectors: lookup.Connectors, env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None) -> None:
    """Stop the tasks of connectors; the connectors and their offsets are kept."""
    _each(env, conf, connectors, lambda connect, name: connect.stop(name), "stopped")


def delete(connectors: lookup.Connectors, env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None) -> None:
    """Delete connectors. Their offsets are kept: a new connector of the same name continues from there. Replication
    slots and topics are kept, too.

    For a fresh start: stop, offsets reset, delete.
    """
    from replicator.connect.rest import Connect

    connect = lookup.cluster(options.settings(env, conf))
    known = lookup.find_connectors(connect, connectors)
    codes = {name: _act(connect, name, Connect.delete, "deleted; its offsets are kept") for name in known}
    for name in (name for name, code in codes.items() if not code):
        if slot := known[name].config.get("slot.name"):
            fix = f"SELECT pg_drop_replication_slot('{slot}');"
            console.narrate(
                f"{name}: its slot {slot} retains log at the source until it is read again, or dropped: {fix}"
            )
    lookup.exit_with({*codes.values()} - {0})


def _each(
    env: str,
    conf: Path | None,
    names: Sequence[str],
    act: Callable[[Connect, str], None],
    done: str,
    *,
    starts: bool = False,
) -> None:
    """Apply an action to each connector, also where it fails for another one, and exit with the code of the failures.
    Connectors that the action ``starts`` are checked again after a delay.
    """
    connect = lookup.cluster(options.settings(env, conf))
    acted = {name: _act(connect, name, act, done) for name in lookup.find_connectors(connect, names)}
    codes = {code for code in acted.values() if code}
    started = [name for name, code in acted.items() if starts and not code]
    if started and _failed_later(connect, started):
        codes.add(ConnectorFailed.exit_code)
    lookup.exit_with(codes)


def _failed_later(connect: Connect, names: Sequence[str]) -> bool:
    """Return whether a connector that was running has failed after a delay; report it, and how to check the others
    later.
    """
    time.sleep(_LATER_SECONDS)
    states = {name: known.status for name, known in connect.known().items() if name in names}
    failed = {name: status for name, status in states.items() if status is not None and status.failed}
    for name, status in failed.items():
        fix = f"Fix the cause, then {advice.command('connect', 'restart', name)}."
        console.narrate(f"{name}: failed a moment later: {status.trace}. {fix}", style="red")
    if left := [name for name in names if name not in failed]:
        again = advice.command("connect", "status", *left)
        console.narrate(f"{again} shows whether it stays so: a task may fail later.")
    return bool(failed)


def _act(connect: Connect, name: str, act: Callable[[Connect, str], None], done: str) -> int:
    """Apply an action to a connector, report its success or failure, and return the exit code."""
    try:
        act(connect, name)
    except ReplicatorError as error:
        console.narrate(f"{name}: {error}", style="red")
        return error.exit_code
    console.narrate(f"{name}: {done}")
    return 0


def _class(known: ConnectorInfo) -> str:
    return known.config.get("connector.class", "").rpartition(".")[2]


def _states(known: ConnectorInfo) -> tuple[str, tuple[str, ...]]:
    return ("UNASSIGNED", ()) if known.status is None else (known.status.connector, known.status.tasks)
