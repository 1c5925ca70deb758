"""Applying the files' connectors to Kafka Connect, one after the other: the refusal of one does not
affect the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.connect.differences import Configs, Step, steps
from replicator.errors import ReplicatorError

if TYPE_CHECKING:
    from replicator.connect.responses import ConnectorInfo, Status
    from replicator.connect.rest import Connect
    from replicator.connect.validation import Finding


@dataclass(frozen=True)
class Outcome:
    """The result of one step: the connector's state afterwards ('' if it does not exist), the error if it failed, and
    the sent keys that have no effect (``idle``).
    """

    step: Step
    state: str = ""
    error: ReplicatorError | None = None
    idle: tuple[Finding, ...] = ()


def plan(connect: Connect, wanted: Configs, *, prune: bool = False) -> list[Step]:
    """Return what :func:`reconcile` would do; changes nothing. Raises Unreachable."""
    return list(steps(wanted, {name: known.config for name, known in connect.known().items()}, prune=prune))


def reconcile(connect: Connect, wanted: Configs, todo: Iterable[Step], seconds: float = 60.0) -> Iterator[Outcome]:
    """Execute each step, wait until what should run does, and yield each outcome as it is done. Raises Unreachable.

    A paused or stopped connector gets its new configuration and stays paused or stopped. One that already runs as
    declared is not touched; if it has failed, that is an error. Offsets of a deleted one are kept.
    """
    known = connect.known()
    for step in todo:
        yield _run_step(connect, step, wanted, known.get(step.connector), seconds)


def _run_step(connect: Connect, step: Step, wanted: Configs, known: ConnectorInfo | None, seconds: float) -> Outcome:
    idle: tuple[Finding, ...] = ()
    try:
        if step.action in ("create", "update"):
            idle = connect.apply(step.connector, wanted[step.connector])
        return Outcome(step, _await_state(connect, step, known, seconds), idle=idle)
    except ReplicatorError as error:
        return Outcome(step, _read_state(connect, step.connector), error, idle)


def _await_state(connect: Connect, step: Step, known: ConnectorInfo | None, seconds: float) -> str:
    name, before = step.connector, None if known is None else known.status
    if step.action == "foreign":
        return _state(before)
    if step.action == "delete":
        connect.delete(name)
        return ""
    if before is not None and before.is_suspended:
        return before.connector
    return connect.wait_running(name, seconds).connector


def _read_state(connect: Connect, name: str) -> str:
    """The connector's state, if Connect still answers."""
    with suppress(ReplicatorError):
        return _state(connect.status(name))
    return ""


def _state(status: Status | None) -> str:
    return "" if status is None else "FAILED" if status.failed else status.connector
