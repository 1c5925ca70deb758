"""Logs of a run, where EMR leaves them on S3 some minutes after they were written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from replicator.aws.s3_folder import S3Folder
from replicator.errors import ReplicatorError

FindNext = Callable[[str], "tuple[str, str] | None"]


@dataclass(frozen=True)
class Log:
    """A file below ``aws.logs``. Where it is only the way to another one, ``behind`` makes of its text the folder of
    that file and the end of its name; None where the text does not tell.
    """

    name: str
    behind: FindNext | None = None


def read_text(log: Log, place: S3Folder) -> str:
    """The log's text; of a way to another one, its own where there is none behind it. Raises ReplicatorError where
    nothing is there yet.
    """
    found = place.get(log.name)
    if found is None:
        what = "there is no log yet: EMR writes it some minutes later, and never where the run did not start"
        raise ReplicatorError(what, where=f"{place.location}/{log.name}")
    told = found.decode(errors="replace")
    way = log.behind(told) if log.behind is not None else None
    if way is None:
        return told
    folder, end = way
    last = next((name for name in place.names(folder) if name.endswith(end)), None)
    return told if last is None else (place.get(last) or b"").decode(errors="replace")
