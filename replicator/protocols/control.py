"""Facts beside the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class ControlReader(Protocol):
    """Small facts that no table's commit can hold, as JSON objects by path (architecture section 2, idea 3)."""

    def get(self, path: str) -> dict[str, Any] | None:
        """The object, None if nothing was ever written."""

    def under(self, folder: str) -> tuple[str, ...]:
        """Names of the objects directly below a folder, sorted, without the ``.json`` of their paths."""


class Control(ControlReader, Protocol):
    """The same where they are made: written before the commit that makes them count; a later write replaces an earlier
    one.
    """

    def put(self, path: str, value: Mapping[str, Any]) -> None:
        """Write the whole object at once."""

    def remove(self, path: str) -> None:
        """Forget the object; nothing happens if it is not there."""
