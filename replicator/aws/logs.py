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
    that file and the suffix of its name; None if the text does not contain them. ``retried`` is the same for the log of
    a run that was attempted more than once, which does not have the file.
    """

    name: str
    behind: FindNext | None = None
    retried: tuple[str, str] | None = None


def read_text(log: Log, place: S3Folder) -> str:
    """Return the log's text; for a log that leads to another file, that file's text, or its own if there is none.
    Raises ReplicatorError if the log does not exist yet.
    """
    found = place.get(log.name)
    if found is None and log.retried is not None:
        found = _newest(place, *log.retried)
    if found is None:
        what = "no log yet: EMR writes it some minutes later, and never if the run did not start"
        raise ReplicatorError(what, where=f"{place.location}/{log.name}")
    text = found.decode(errors="replace")
    target = log.behind(text) if log.behind is not None else None
    if target is None:
        return text
    last = _newest(place, *target)
    return text if last is None else last.decode(errors="replace")


def _newest(place: S3Folder, folder: str, end: str) -> bytes | None:
    """The file of that suffix of the newest attempt: attempts are numbered in its name, from 1."""
    attempts = (name for name in place.names(folder) if name.endswith(end))
    last = max(attempts, key=lambda name: (len(name), name), default=None)
    return None if last is None else place.get(last)
