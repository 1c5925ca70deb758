"""Logs of a run, which EMR writes to S3 with a delay of some minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.aws.s3_folder import S3Folder
from replicator.errors import ReplicatorError

FindNext = Callable[[str], "tuple[str, str] | None"]


@dataclass(frozen=True)
class Log:
    """A file below ``aws.logs``. If it only leads to another file, ``behind`` returns, from its text, the folder of
    that file and the suffix of its name; None if the text does not contain them.
    """

    name: str
    behind: FindNext | None = None


def read_text(log: Log, place: S3Folder) -> str:
    """Return the log's text; for a log that leads to another file, that file's text, or its own if there is none.
    Raises ReplicatorError if the log does not exist yet.
    """
    found = place.get(log.name)
    if found is None:
        what = "no log yet: EMR writes it some minutes later, and never if the run did not start"
        raise ReplicatorError(what, where=f"{place.location}/{log.name}")
    text = found.decode(errors="replace")
    target = log.behind(text) if log.behind is not None else None
    if target is None:
        return text
    folder, end = target
    last = next((name for name in place.names(folder) if name.endswith(end)), None)
    return text if last is None else (place.get(last) or b"").decode(errors="replace")
