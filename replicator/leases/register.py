"""The one thing that a lease needs of a store: an object that is replaced only where it is as it was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Stored:
    """An object's text, and the ``tag`` that another text would not have."""

    text: str
    tag: str


class Register(Protocol):
    """One small object. Everything raises Unreachable where the store does not answer; ConfigError where it refuses."""

    @property
    def where(self) -> str:
        """Its place, for people."""

    def read(self) -> Stored | None:
        """What is there now, by any process's last successful :meth:`replace`; None where nothing ever was."""

    def replace(self, text: str, expected: str | None) -> str | None:
        """Write the whole object if its tag is still ``expected`` (None: if there is none); its new tag, None where
        somebody else was there. Of several at once one succeeds. ``text`` is one that nobody wrote before; repeating a
        call whose answer was lost gives the tag. Unreachable may mean either outcome.
        """
