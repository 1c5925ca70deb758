"""One writer per lake and stage on a local disk (architecture 9.14); the kernel frees the lock of a killed process."""

from __future__ import annotations

import fcntl
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from replicator.errors import ReplicatorError
from replicator.lake import Lake


@contextmanager
def exclusive(lake: Lake, stages: Collection[str]) -> Iterator[None]:
    """Hold the locks of some stages. Raises ReplicatorError at once when another process has one.

    A lake on an object store has no lock: there it is for the user to start one driver only.
    """
    with ExitStack() as held:
        for stage in sorted(stages) if lake.is_local() else ():
            path = Path(lake.lock(stage).removeprefix("file://"))
            path.parent.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(path.open("a"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise ReplicatorError(
                    f"another run of {stage} is at work on this lake",
                    where=str(path),
                    mend="Wait for it, or stop it: one driver writes a lake.",
                ) from error
        yield
