"""What Kafka Connect tells of connectors and plugins, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TRACE_LINES, _TRACE_WIDTH = 4, 300
_LEFT_OUT = " .. "


@dataclass(frozen=True)
class Part:
    """The connector itself (``task`` is None) or one of its tasks: its state, the worker that has it, and the shortened
    stack trace where it has failed, else ''.
    """

    task: int | None
    state: str
    worker: str
    trace: str = ""


@dataclass(frozen=True)
class Status:
    """What Connect says of one connector; RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED or RESTARTING.

    There are no tasks while none is assigned. For some seconds after a worker died its tasks still show RUNNING.
    """

    parts: tuple[Part, ...]

    @property
    def connector(self) -> str:
        """The state of the connector itself."""
        return self.parts[0].state

    @property
    def tasks(self) -> tuple[str, ...]:
        """The states of its tasks."""
        return tuple(part.state for part in self.parts[1:])

    @property
    def trace(self) -> str:
        """The shortened stack trace of the first failure, else ''."""
        return next((part.trace for part in self.parts if part.trace), "")

    @property
    def failed(self) -> bool:
        """The connector or one of its tasks has failed: it stays so until someone restarts it."""
        return "FAILED" in (self.connector, *self.tasks)

    @property
    def running(self) -> bool:
        """The connector and at least one task run, and nothing else is the case."""
        return bool(self.tasks) and {self.connector, *self.tasks} == {"RUNNING"}

    @property
    def held(self) -> bool:
        """Somebody paused or stopped it: it does not run by itself."""
        return self.connector in ("PAUSED", "STOPPED")


@dataclass(frozen=True)
class ConnectorInfo:
    """A connector that Connect has: its configuration and its status, None right after it was made."""

    config: Mapping[str, str]
    status: Status | None


@dataclass(frozen=True)
class Plugin:
    """A connector class that the workers have: ``type`` is source or sink."""

    name: str
    type: str
    version: str


@dataclass(frozen=True)
class Offset:
    """How far a connector has got in one partition of its source, both as the plugin writes them; ``offset`` is None
    where the plugin has taken it back.
    """

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None


def parse_status(told: Mapping[str, Any]) -> Status:
    """The answer to ``GET /connectors/…/status``."""
    every = [(None, told["connector"]), *((task["id"], task) for task in told["tasks"])]
    return Status(tuple(_parse_part(task, each) for task, each in every))


def _parse_part(task: int | None, told: Mapping[str, Any]) -> Part:
    trace = shorten_trace(told.get("trace") or "") if told["state"] == "FAILED" else ""
    return Part(task, told["state"], told["worker_id"], trace)


def shorten_trace(trace: str) -> str:
    """A Java stack trace as one line: the outermost and the innermost causes, no frames; of a long one both ends."""
    lines = [line.strip().removeprefix("Caused by: ") for line in trace.splitlines()]
    causes = list(dict.fromkeys(_cut(line) for line in lines if line and not line.startswith(("at ", "... "))))
    kept = causes if len(causes) <= _TRACE_LINES else [causes[0], *causes[1 - _TRACE_LINES :]]
    return " <- ".join(kept)


def _cut(line: str) -> str:
    half = (_TRACE_WIDTH - len(_LEFT_OUT)) // 2
    return line if len(line) <= _TRACE_WIDTH else f"{line[:half]}{_LEFT_OUT}{line[-half:]}"
