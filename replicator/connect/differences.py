"""The changes that make the running connectors match the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from replicator.connect.configuration import CLASSES
from replicator.spec.references import mask

Action = Literal["create", "update", "unchanged", "delete", "foreign"]
Configs = Mapping[str, Mapping[str, str]]
"""Connectors' configurations by name."""


@dataclass(frozen=True)
class Change:
    """One key of a connector with its running and its wanted value, None where it is absent; secrets are masked."""

    key: str
    runs: str | None
    wanted: str | None


@dataclass(frozen=True)
class Step:
    """What is to be done with one connector. ``foreign``: no file declares it, and it is left alone."""

    connector: str
    action: Action
    changes: tuple[Change, ...] = ()


def steps(wanted: Configs, running: Configs, *, prune: bool = False) -> Iterator[Step]:
    """Yield one step per connector of either side, by name. A connector is deleted only with ``prune``, and only if it
    is one of Debezium's that a file could declare.
    """
    for name in sorted({*wanted, *running}):
        if name not in wanted:
            ours = running[name].get("connector.class") in CLASSES.values()
            yield Step(name, "delete" if prune and ours else "foreign")
        elif name not in running:
            yield Step(name, "create", changes(wanted[name], {}))
        else:
            found = changes(wanted[name], running[name])
            yield Step(name, "update" if found else "unchanged", found)


def changes(wanted: Mapping[str, str], running: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the keys that differ; ``name``, which Connect adds, is ignored."""
    keys = sorted(key for key in {*wanted, *running} - {"name"} if wanted.get(key) != running.get(key))
    return tuple(Change(key, _mask_value(key, running), _mask_value(key, wanted)) for key in keys)


def _mask_value(key: str, config: Mapping[str, str]) -> str | None:
    return mask(key, config[key]) if key in config else None
