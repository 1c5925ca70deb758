"""RESTORE commits in Delta's log: a RESTORE takes a table's rows back to an older version and leaves its progress
(``txn``) as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNKNOWN_VERSION = -1
"""Stands for a version that cannot be determined."""

OPERATION = "RESTORE"
"""The operation that such a commit records."""

_ACTION_PREFIXES = ('{"commitInfo"', '{"txn"')
"""Prefixes of those actions of a commit that name its operation and the table's progress."""


def restored_version(parameters: Mapping[str, Any]) -> int:
    """Return the version to which a RESTORE took the table back; UNKNOWN_VERSION if the commit names a time instead."""
    version = str(parameters.get("version")).strip('"')  # delta-rs writes it as a text
    return int(version) if version.isdigit() else UNKNOWN_VERSION


def find_pending_restore(commits: Iterable[Sequence[str] | None]) -> int | None:
    """Return the version to which a RESTORE took the table back if no later commit has recorded progress; else None,
    also if a commit has left the log (None among ``commits``).

    ``commits`` has the actions of each commit, the newest first, one per line. Usually only one commit is read.
    """
    for lines in commits:
        actions = [json.loads(line) for line in lines or () if line.startswith(_ACTION_PREFIXES)]
        if lines is None or any("txn" in action for action in actions):
            return None
        for info in (action.get("commitInfo", {}) for action in actions):
            if info.get("operation") == OPERATION:
                return restored_version(info.get("operationParameters") or {})
    return None
