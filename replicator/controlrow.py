"""A control row as it is read: one that is damaged, or of a version that this one does not know, is named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from replicator.errors import NoControlRow


class ControlRow(dict[str, Any]):
    """A JSON object; to look up a name that it has not raises NoControlRow."""

    def __init__(self, path: str, told: dict[str, Any]) -> None:
        super().__init__(told)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise NoControlRow.at(self._path, f"a control row has no {name!r}")


def read(path: str, text: str | bytes) -> ControlRow:
    """The row at that path, which holds this text. Raises NoControlRow for what is no JSON object."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise NoControlRow.at(path) from error
    if not isinstance(told, dict):
        raise NoControlRow.at(path)
    return ControlRow(path, told)


def known(kind: type[Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of the fields of a dataclass: what a newer version tells besides is left out. Only of what is for
    people, since who writes it anew writes it without that.
    """
    return {each.name: told[each.name] for each in fields(kind) if each.name in told}
