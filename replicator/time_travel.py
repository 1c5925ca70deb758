"""Points in a table's past: their notation, and the version that each selects. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

from replicator.errors import ConfigError, VersionMissing
from replicator.spec import CommittedVersion, Table

RETENTION_HINT = "`maintenance.keep` sets how long versions are kept."
"""Why a version of a Delta table is no longer retained."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(
    r"(?P<minus>-)?\s*(?P<number>\d{1,9})\s*"
    r"(?P<unit>s|m|h|d|w|(?:sec|second|min|minute|hour|day|week)s?)(?P<ago>\s+ago)?"
)
_FRACTION = re.compile(r"\.(\d{1,6})")
_COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:[0-9a-f-]{36}\.)?(?:parquet|json)")
"""The name of a checkpoint in a Delta log that is complete as soon as it exists; a checkpoint in several parts does not
match.
"""


def parse(text: str, now: datetime) -> int | datetime:
    """Parse a version or a time: ``7``; ``2026-11-21``, ``2026-11-21T10:00``, in UTC unless it has an offset; ``-2h``,
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
        return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
    except (ValueError, OverflowError) as error:
        fix = "Write 7, 2026-11-21T10:00 (UTC), -2h or '2 hours ago'."
        raise ConfigError(f"{text!r} is neither a version nor a time.", fix=fix) from error


def _microseconds(fraction: re.Match[str]) -> str:
    """Pad the fraction to six digits: Python 3.10 accepts only three or six."""
    return f".{fraction[1]:0<6}"


def list_delta_versions(log: Iterable[tuple[str, int]]) -> list[CommittedVersion]:
    """Return the versions that a Delta log can reconstruct, the oldest first, from names and times (epoch milliseconds)
    of its files.

    As in Delta, a version has the time of its file, and at least a millisecond later than the version before. Versions
    before the first checkpoint can be reconstructed only while the log begins at version 0.
    """
    times: dict[int, int] = {}
    checkpoints: list[int] = []
    for name, milliseconds in log:
        if commit := _COMMIT.fullmatch(name):
            times[int(commit[1])] = milliseconds
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
    """Return the version of that number, or the newest one that was committed at or before that time.

    Raises VersionMissing: for a future version or a time before the table existed with the nearest existing version,
    else with the oldest of ``known`` and ``why`` older ones are gone.
    """
    if isinstance(when, int):
        found = [moment for moment in known if moment.version == when]
        if not found and when > known[-1].version:
            fix = f"The newest is {describe(known[-1])}."
            raise VersionMissing(f"{table.name} has no version {when}", where=table.location, fix=fix)
    else:
        found = [moment for moment in known if moment.at <= when]
        if not found and known[0].version == 0:
            fix = f"Its first version is {describe(known[0])}."
            raise VersionMissing(f"{table.name} did not exist at {format_time(when)}", where=table.location, fix=fix)
    if not found:
        raise expired_error(table, when, known[0], why)
    return found[-1]


def expired_error(table: Table, when: int | datetime, oldest: CommittedVersion, why: str) -> VersionMissing:
    """Return the error for a version, or a time, whose rows are no longer retained."""
    what = f"version {when} of {table.name}" if isinstance(when, int) else f"{table.name} of {format_time(when)}"
    fix = f"The oldest one kept is {describe(oldest)}. {why}"
    return VersionMissing(f"{what} is no longer kept", where=table.location, fix=fix, oldest=oldest.version)


def describe(moment: CommittedVersion) -> str:
    """A version with its time, for messages."""
    return f"version {moment.version} of {format_time(moment.at)}"


def format_time(at: datetime) -> str:
    """A time in UTC, with milliseconds if there are any."""
    utc = at.astimezone(timezone.utc)
    return f"{utc.isoformat(' ', 'milliseconds' if utc.microsecond else 'seconds').removesuffix('+00:00')} UTC"
