"""A control row as it is read: one that is damaged, or of a version that this one does not know, is named."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from replicator.errors import NoControlRow


class ControlRow(dict[str, Any]):
    """A JSON object of the row at a ``path``; to look up a name that it has not raises NoControlRow."""

    def __init__(self, told: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), path: str = "") -> None:
        super().__init__(told)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise NoControlRow.at(self._path, f"a control row has no {name!r}")


def read(path: str, text: str | bytes) -> ControlRow:
    """The row at that path, which holds this text, and so each object in it. Raises NoControlRow for what is no JSON
    object.
    """
    try:
        told = json.loads(text, object_hook=lambda each: ControlRow(each, path))
    except ValueError as error:
        raise NoControlRow.at(path) from error
    if not isinstance(told, ControlRow):
        raise NoControlRow.at(path)
    return told


def select_fields(kind: type[Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of the fields of a dataclass, those with a default only where they are told; what a newer version
    tells besides is left out. Only of what is for people, since who writes it anew writes it without that. Raises
    NoControlRow for a control row that lacks one.
    """
    return {each.name: told[each.name] for each in fields(kind) if each.name in told or not _has_default(each)}


def _has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING
