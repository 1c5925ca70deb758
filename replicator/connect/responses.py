"""Kafka Connect's answers about connectors and plugins, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_TRACE_LINES, _TRACE_WIDTH = 4, 300
_LEFT_OUT = " .. "


@dataclass(frozen=True)
class Part:
    """The connector itself (``task`` is None) or one of its tasks: its state, the worker that runs it, and the
    shortened stack trace if it has failed, else ''.
    """

    task: int | None
    state: str
    worker: str
    trace: str = ""


@dataclass(frozen=True)
class Status:
    """The status of one connector; states are RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED or RESTARTING.

    There are no tasks while none is assigned. For some seconds after a worker died, its tasks still show RUNNING.
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
        """Whether the connector or one of its tasks has failed: it stays so until it is restarted."""
        return "FAILED" in (self.connector, *self.tasks)

    @property
    def running(self) -> bool:
        """Whether the connector and at least one task run, and no task has another state."""
        return bool(self.tasks) and {self.connector, *self.tasks} == {"RUNNING"}

    @property
    def is_suspended(self) -> bool:
        """Whether it was paused or stopped: it does not resume by itself."""
        return self.connector in ("PAUSED", "STOPPED")


@dataclass(frozen=True)
class ConnectorInfo:
    """An existing connector: its configuration and its status, None right after its creation."""

    config: Mapping[str, str]
    status: Status | None


@dataclass(frozen=True)
class Plugin:
    """A connector class installed on the workers; ``type`` is source or sink."""

    name: str
    type: str
    version: str


@dataclass(frozen=True)
class Offset:
    """The position of a connector in one partition of its source, both in the plugin's notation; ``offset`` is None if
    the plugin has reset it.
    """

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None


def parse_names(answer: Any) -> tuple[str, ...]:
    """Parse the answer to ``GET /connectors``: the names, sorted. Like the others, raises an error of Python's for an
    answer of another form.
    """
    if not isinstance(answer, list):
        raise TypeError("not a list of names")
    return tuple(sorted(answer))


def parse_plugins(answer: Iterable[Mapping[str, Any]]) -> tuple[Plugin, ...]:
    """Parse the answer to ``GET /connector-plugins``, by name."""
    found = [Plugin(each["class"], each["type"], each.get("version") or "") for each in answer]
    return tuple(sorted(found, key=lambda plugin: plugin.name))


def parse_connectors(answer: Mapping[str, Any]) -> dict[str, ConnectorInfo]:
    """Parse the answer to ``GET /connectors?expand=info&expand=status``, by name. A key without a value, which older
    versions of Connect accept, counts as absent.
    """
    return {
        name: ConnectorInfo(
            {key: value for key, value in each["info"]["config"].items() if value is not None},
            parse_status(each["status"]) if "status" in each else None,
        )
        for name, each in sorted(answer.items())
        if "info" in each
    }


def parse_offsets(answer: Mapping[str, Any]) -> tuple[Offset, ...]:
    """Parse the answer to ``GET /connectors/…/offsets``."""
    return tuple(Offset(each["partition"], each["offset"]) for each in answer["offsets"])


def parse_status(answer: Mapping[str, Any]) -> Status:
    """Parse the answer to ``GET /connectors/…/status``."""
    every = [(None, answer["connector"]), *((task["id"], task) for task in answer["tasks"])]
    return Status(tuple(_parse_part(task, each) for task, each in every))


def _parse_part(task: int | None, part: Mapping[str, Any]) -> Part:
    trace = shorten_trace(part.get("trace") or "") if part["state"] == "FAILED" else ""
    return Part(task, part["state"], part["worker_id"], trace)


def shorten_trace(trace: str) -> str:
    """A Java stack trace in one line: the outermost and the innermost causes, without frames; of a long
    line both ends.
    """
    lines = [line.strip().removeprefix("Caused by: ") for line in trace.splitlines()]
    causes = list(dict.fromkeys(_cut(line) for line in lines if line and not line.startswith(("at ", "... "))))
    selected = causes if len(causes) <= _TRACE_LINES else [causes[0], *causes[1 - _TRACE_LINES :]]
    return " <- ".join(selected)


def _cut(line: str) -> str:
    half = (_TRACE_WIDTH - len(_LEFT_OUT)) // 2
    return line if len(line) <= _TRACE_WIDTH else f"{line[:half]}{_LEFT_OUT}{line[-half:]}"
