"""Points in a table's past: what people write for one, and which version that is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from replicator.errors import ConfigError, VersionMissing
from replicator.spec import CommittedVersion, Table

RETENTION_HINT = "`maintenance.keep` says for how long versions stay."
"""Why a version of a Delta table goes."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(
    r"(?P<minus>-)?\s*(?P<number>\d{1,9})\s*"
    r"(?P<unit>s|m|h|d|w|(?:sec|second|min|minute|hour|day|week)s?)(?P<ago>\s+ago)?"
)
_FRACTION = re.compile(r"\.(\d{1,6})")
_COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:[0-9a-f-]{36}\.)?(?:parquet|json)")
"""The name of a checkpoint in a Delta log that is whole as soon as it is there; one in several parts is none."""


def parse(text: str, now: datetime) -> int | datetime:
    """A version, or a time: ``7``; ``2026-11-21``, ``2026-11-21T10:00``, UTC unless it says otherwise; ``-2h``,
    ``2 hours ago``. Raises ConfigError.
    """
    words = text.strip()
    if re.fullmatch(r"\d{1,18}", words):
        return int(words)
    ago = _AGO.fullmatch(words.lower())
    try:
        if ago is not None and (ago["minus"] is None) != (ago["ago"] is None):
            return now - timedelta(**{_UNITS[ago["unit"][0]]: int(ago["number"])})
        time = datetime.fromisoformat(_FRACTION.sub(_microseconds, re.sub(r"[zZ]$", "+00:00", words)))
    except (ValueError, OverflowError) as error:
        mend = "Write 7, 2026-11-21T10:00 (UTC), -2h or '2 hours ago'."
        raise ConfigError(f"{text!r} is neither a version nor a time.", mend=mend) from error
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time


def _microseconds(fraction: re.Match[str]) -> str:
    """Python 3.10 reads three or six digits of a second, no others."""
    return f".{fraction[1]:0<6}"


def list_delta_versions(log: Iterable[tuple[str, int]]) -> list[CommittedVersion]:
    """The versions that a Delta log can tell, the oldest first, from names and times (epoch milliseconds) of its files.

    As Delta has it, a version is from when its file is, and at least a millisecond later than the one before. What lies
    before the first checkpoint can be told only while the log begins at version 0.
    """
    times: dict[int, int] = {}
    checkpoints: list[int] = []
    for name, at in log:
        if commit := _COMMIT.fullmatch(name):
            times[int(commit[1])] = at
        elif checkpoint := CHECKPOINT.fullmatch(name):
            checkpoints.append(int(checkpoint[1]))
    found: list[CommittedVersion] = []
    last = 0
    for version in sorted(times):
        last = max(times[version], last + 1)
        found.append(CommittedVersion(version, _time(last)))
    first = 0 if 0 in times else min(checkpoints, default=0)
    return [moment for moment in found if moment.version >= first]


def _time(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)


def select(table: Table, known: Sequence[CommittedVersion], when: int | datetime, why: str) -> CommittedVersion:
    """The version of that number, or the newest one that was committed at or before that time.

    Raises VersionMissing: of what was not yet there with what there is, else with the oldest of ``known`` and ``why``
    older ones go.
    """
    if isinstance(when, int):
        found = [moment for moment in known if moment.version == when]
        if not found and when > known[-1].version:
            mend = f"The newest is {describe(known[-1])}."
            raise VersionMissing(f"{table.name} has no version {when}", where=table.location, mend=mend)
    else:
        found = [moment for moment in known if moment.at <= when]
        if not found and known[0].version == 0:
            mend = f"It begins with {describe(known[0])}."
            raise VersionMissing(f"{table.name} was not there at {format_time(when)}", where=table.location, mend=mend)
    if not found:
        raise expired_error(table, when, known[0], why)
    return found[-1]


def expired_error(table: Table, when: int | datetime, oldest: CommittedVersion, why: str) -> VersionMissing:
    """The error about a version, or a time, of which the rows are not kept any more."""
    what = f"version {when} of {table.name}" if isinstance(when, int) else f"{table.name} of {format_time(when)}"
    mend = f"The oldest that is left is {describe(oldest)}. {why}"
    return VersionMissing(f"{what} is not kept any more", where=table.location, mend=mend, oldest=oldest.version)


def describe(moment: CommittedVersion) -> str:
    """A version with its time, for people."""
    return f"version {moment.version} of {format_time(moment.at)}"


def format_time(at: datetime) -> str:
    """A time in UTC, to the millisecond where it has any."""
    utc = at.astimezone(timezone.utc)
    return f"{utc.isoformat(' ', 'milliseconds' if utc.microsecond else 'seconds').removesuffix('+00:00')} UTC"
