"""Notes of what a verb did: less than what it did, so that a lake which takes none holds nothing up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.cli import console
from replicator.errors import NO_LAKE

if TYPE_CHECKING:
    from collections.abc import Callable


def write_best_effort(note: Callable[[], None], lost: str) -> None:
    """Make the note; where the lake does not take it (a full disk, one that is read only, a store that is away), tell
    what is ``lost`` without it, and why.
    """
    from replicator.jvm import causes
    from replicator.jvm.failures import FAILURES

    try:
        note()
    except (*NO_LAKE, *FAILURES) as error:
        console.narrate(f"{lost}: {causes.summarize(error)}", style="yellow")
