"""What Delta's log says of a RESTORE, which takes a table's rows back to an older version and leaves its progress
(``txn``) as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNKNOWN_VERSION = -1
"""Stands for a version that nobody knows."""

OPERATION = "RESTORE"
"""By which a commit that takes its table back says so."""

_ACTION_PREFIXES = ('{"commitInfo"', '{"txn"')
"""Prefixes of a commit's actions that say what it did and which progress the table has."""


def restored_version(parameters: Mapping[str, Any]) -> int:
    """The version to which a RESTORE took the table back; UNKNOWN_VERSION if the commit names a time instead."""
    told = str(parameters.get("version")).strip('"')  # delta-rs has it as a text
    return int(told) if told.isdigit() else UNKNOWN_VERSION


def find_pending_restore(commits: Iterable[Sequence[str] | None]) -> int | None:
    """The actions of commits, newest first, each a line -> the version to which a RESTORE took the table back, if none
    has told progress since; else None, as where a commit has left the log (None). Mostly one is looked at.
    """
    for lines in commits:
        told = [json.loads(line) for line in lines or () if line.startswith(_ACTION_PREFIXES)]
        if lines is None or any("txn" in action for action in told):
            return None
        for info in (action.get("commitInfo", {}) for action in told):
            if info.get("operation") == OPERATION:
                return restored_version(info.get("operationParameters") or {})
    return None
