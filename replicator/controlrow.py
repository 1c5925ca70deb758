"""Reading control rows: a damaged one, or one of an unknown format version, is named in the error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from replicator.errors import NoControlRow


class ControlRow(dict[str, Any]):
    """A JSON object of the row at ``path``; looking up a missing name raises NoControlRow."""

    def __init__(self, members: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), path: str = "") -> None:
        super().__init__(members)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise NoControlRow.at(self._path, f"a control row has no {name!r}")


def read(path: str, text: str | bytes) -> ControlRow:
    """Parse the text of the row at that path; nested objects become control rows, too. Raises NoControlRow if it is not
    a JSON object.
    """
    try:
        row = json.loads(text, object_hook=lambda each: ControlRow(each, path))
    except ValueError as error:
        raise NoControlRow.at(path) from error
    if not isinstance(row, ControlRow):
        raise NoControlRow.at(path)
    return row


def select_fields(kind: type[Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the dataclass ``kind`` in a row; those with a default may be absent, and fields of a newer
    version are dropped. Only for rows that serve for display, since rewriting such a row would lose what was dropped.
    Raises NoControlRow for a control row that lacks a required field.
    """
    return {each.name: row[each.name] for each in fields(kind) if each.name in row or not _has_default(each)}


def _has_default(each: Field[Any]) -> bool:
    return each.default is not MISSING or each.default_factory is not MISSING
