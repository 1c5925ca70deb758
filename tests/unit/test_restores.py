"""A RESTORE is found in the newest commits of Delta's log that say how far a table is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replicator import restores

TOLD = {"txn": {"appId": "b", "version": 3}}


def commit(operation: str, *more: dict[str, Any], **parameters: Any) -> list[str]:
    """The lines of a commit: how their keys are written is Delta's."""
    info = {"commitInfo": {"operation": operation, "operationParameters": parameters}}
    return [json.dumps(each, separators=(",", ":")) for each in (info, *more, {"add": {"path": "txn"}})]


@pytest.mark.parametrize(
    ("commits", "found"),
    [
        ([], None),
        ([commit("WRITE", TOLD), commit("RESTORE", version="1")], None),
        ([commit("RESTORE", version="1"), commit("WRITE", TOLD)], 1),
        ([commit("OPTIMIZE"), commit("RESTORE", version='"2"')], 2),
        ([commit("RESTORE", timestamp="2026-01-31"), commit("RESTORE", version="1")], restores.UNKNOWN_VERSION),
        ([commit("OPTIMIZE"), None, commit("RESTORE", version="1")], None),
        ([commit("WRITE"), commit("WRITE")], None),
    ],
    ids=["no log", "told since", "told before", "by delta-rs", "by time", "has left the log", "no progress"],
)
def test_the_newest_restore_counts_until_a_commit_tells_progress(
    commits: list[list[str] | None], found: int | None
) -> None:
    """Whatever stands before it, and however many commits without progress behind it."""
    assert restores.find_pending_restore(iter(commits)) == found
