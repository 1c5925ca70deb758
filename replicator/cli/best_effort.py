"""Best-effort notes of what a command did: a failure to write one does not stop the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.cli import console
from replicator.errors import NO_LAKE

if TYPE_CHECKING:
    from collections.abc import Callable


def write_best_effort(note: Callable[[], None], lost: str) -> None:
    """Call ``note``; where the lake does not accept the write (a full disk, a read-only or unreachable store), report
    what is ``lost`` and why.
    """
    from replicator.jvm import causes
    from replicator.jvm.failures import FAILURES

    try:
        note()
    except (*NO_LAKE, *FAILURES) as error:
        console.narrate(f"{lost}: {causes.summarize(error)}", style="yellow")
