"""The single operation that a lease needs of a store: replace an object only if it is unchanged since it was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Stored:
    """An object's text, and a ``tag`` that differs for any other text."""

    text: str
    tag: str


class Register(Protocol):
    """One small object. All methods raise Unreachable if the store does not answer, ConfigError if it refuses."""

    @property
    def where(self) -> str:
        """Its location, for messages."""

    def read(self) -> Stored | None:
        """Return the current content, as of any process's last successful :meth:`replace`; None if there
        never was any.
        """

    def replace(self, text: str, expected: str | None) -> str | None:
        """Replace the object if its tag is still ``expected`` (None: if it does not exist). Returns its new tag, None
        if another writer came first; of several concurrent calls one succeeds. ``text`` must never have been written
        before; repeating a call whose answer was lost returns the tag. After Unreachable, either outcome is possible.
        """
