"""Versions and times as people write them, and which version a time is."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from replicator import time_travel
from replicator.errors import ConfigError, VersionMissing
from replicator.formats.delta_time_travel import FileChanges, readable_versions
from replicator.spec import CommittedVersion, Table

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)
TABLE = Table("s/db.t", "/lake/t")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("7", 7),
        ("0", 0),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=timezone.utc)),
        ("2026-11-21T10:00", datetime(2026, 11, 21, 10, tzinfo=timezone.utc)),
        ("2026-11-21 10:00:30.5Z", datetime(2026, 11, 21, 10, 0, 30, 500_000, tzinfo=timezone.utc)),
        ("2026-11-21T10:00+02:00", datetime(2026, 11, 21, 8, tzinfo=timezone.utc)),
        ("-2h", NOW - timedelta(hours=2)),
        ("- 90 min", NOW - timedelta(minutes=90)),
        ("2 hours ago", NOW - timedelta(hours=2)),
        ("1 Day ago", NOW - timedelta(days=1)),
        ("3w ago", NOW - timedelta(weeks=3)),
    ],
)
def test_a_version_or_a_time_is_understood(text: str, meant: int | datetime) -> None:
    """UTC unless it says otherwise."""
    assert time_travel.parse(text, NOW) == meant


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00+05:00",
        "9999-12-31T23:00-05:00",
        "",
        "yesterday",
        "2h",
        "-2h ago",
        "-7",
        "1.5",
        "2026-13-01",
        "999999999w ago",
        "v7",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    """With what can be written."""
    with pytest.raises(ConfigError, match="neither a version nor a time"):
        time_travel.parse(text, NOW)


def log(*versions: int, first: int = 1_000, **more: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Files of a log, each half a second after the one before."""
    return [(f"{v:020}.json", first + 500 * at) for at, v in enumerate(versions)] + list(more.get("others", ()))


def test_a_log_tells_when_its_versions_were_committed() -> None:
    """Times rise with versions, as Delta has it, whatever the file system says; other files are none."""
    others = [("_last_checkpoint", 1), (f"{1:020}.crc", 1), (f"{0:020}.{1:020}.compacted.json", 1)]
    copied = [(f"{version:020}.json", 5_000) for version in range(3)]
    found = time_travel.list_delta_versions(copied[::-1] + others)
    assert [(each.version, each.at.microsecond) for each in found] == [(0, 0), (1, 1_000), (2, 2_000)]


def test_a_log_without_its_beginning_tells_versions_from_a_checkpoint_on() -> None:
    """Those before it can be read no more."""
    checkpoint = [(f"{5:020}.checkpoint.parquet", 1)]
    assert [each.version for each in time_travel.list_delta_versions(log(3, 4, 5, 6, others=checkpoint))] == [5, 6]
    assert [each.version for each in time_travel.list_delta_versions(log(0, 1, others=checkpoint))] == [0, 1]


def test_what_is_not_there_is_told_apart_from_what_was_there() -> None:
    """Not yet, never, no more: each with what there is."""
    at = [NOW + timedelta(hours=hour) for hour in range(4)]
    whole = [CommittedVersion(version, at[version]) for version in range(3)]
    cut = whole[1:]
    assert time_travel.select(TABLE, whole, at[1] + timedelta(minutes=59), "Why.").version == 1
    assert time_travel.select(TABLE, whole, at[3], "Why.").version == 2
    for known, when, said in (
        (
            whole,
            NOW - timedelta(days=1),
            r"did not exist at 2026-11-21 12:00:00 UTC .* Its first version is version 0 of 2026-11-22",
        ),
        (whole, 9, r"has no version 9 .* The newest is version 2 of 2026-11-22 14:00:00 UTC"),
        (cut, 0, r"version 0 of s/db.t is no longer kept .* The oldest one kept is version 1 .* Why[.]"),
        (cut, at[0], r"s/db.t of 2026-11-22 12:00:00 UTC is no longer kept .* The oldest"),
    ):
        with pytest.raises(VersionMissing, match=said):
            time_travel.select(TABLE, known, when, "Why.")


def test_a_version_lacks_what_a_vacuum_took_of_it() -> None:
    """A file that a later commit replaced, or its deletion vector; older versions without it are whole."""
    commits = [
        FileChanges(1, frozenset({"b"}), frozenset()),
        FileChanges(2, frozenset({"b", "b.bin"}), frozenset({"b"})),
        FileChanges(3, frozenset({"c"}), frozenset({"b", "b.bin"})),
        FileChanges(4, frozenset({"d"}), frozenset()),
    ]
    assert readable_versions(commits, frozenset("abcd") | {"b.bin"}, 4) == {0, 1, 2, 3, 4}
    assert readable_versions(commits, frozenset("abcd"), 4) == {0, 1, 3, 4}
    assert readable_versions(commits, frozenset("acd"), 4) == {0, 3, 4}
    assert readable_versions(commits[2:], frozenset("d"), 4) == {3, 4}
