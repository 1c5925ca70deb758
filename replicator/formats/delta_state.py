"""The contents of Delta's log as values: a data file, a commit, and the state after a commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

MAX_TRACKED_FILES = 256
"""The driver does not track the files of a table with more than this."""


@dataclass(frozen=True)
class AddedFile:
    """A data file of one commit: absolute path, partition values, bytes, and Delta's own ``action``.

    If ``is_new`` is false, its rows were in other files before (OPTIMIZE).
    """

    version: int
    path: str
    partition: tuple[str, ...]
    size: int
    is_new: bool
    action: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def has_vector(self) -> bool:
        """Whether it has a deletion vector."""
        return self.action.deletionVector() is not None

    @cached_property
    def stats(self) -> str:
        """Its statistics in the log, as JSON; '' if there are none."""
        return str(self.action.stats() or "")

    @property
    def has_row_count(self) -> bool:
        """Whether the log has its row count."""
        return '"numRecords"' in self.stats

    @cached_property
    def rows(self) -> int:
        """Its row count, deleted rows included; 0 if the log does not have it."""
        return int(json.loads(self.stats or "{}").get("numRecords", 0))

    @property
    def marked(self) -> int:
        """How many of its rows the deletion vector marks as deleted."""
        return int(self.action.deletionVector().cardinality()) if self.has_vector else 0


@dataclass(frozen=True)
class Commit:
    """One commit: its files, the paths that it ``removed``, the paths of files whose rows are what it ``changed``, its
    operation's metrics (integers only), the ``txn`` versions by app id, the ``growth`` of the table in bytes, whether
    it ``replaces`` rows under other columns, and the version that it ``restores``. None if the log alone does not tell.
    """

    version: int
    files: tuple[AddedFile, ...]
    removed: frozenset[str]
    changed: tuple[str, ...] | None
    metrics: dict[str, int]
    transactions: dict[str, int]
    growth: int | None
    replaces: bool = False
    restores: int | None = None


@dataclass(frozen=True)
class State:
    """The state of the table ``identity`` at ``version``: live bytes, the ``txn`` version per app id, and the live
    files by path (None if there are too many). ``is_restored``: a RESTORE took the rows back and no commit has recorded
    progress since, so that Delta's own ``txn`` versions are out of date.
    """

    identity: str
    version: int
    size: int
    transactions: Mapping[str, int]
    files: Mapping[str, AddedFile] | None
    is_restored: bool = False

    def after(self, commit: Commit, back: Mapping[str, int] | None = None) -> State | None:
        """The state after a commit, which took the progress ``back`` to this if it is a RESTORE; None if it cannot be
        determined.
        """
        if commit.growth is None:
            return None
        transactions = {**(self.transactions if back is None else back), **commit.transactions}
        files = self.files
        if files is not None:
            kept = {path: file for path, file in files.items() if path not in commit.removed}
            files = kept | {file.path: file for file in commit.files}
        size = self.size + commit.growth
        is_restored = not commit.transactions and (self.is_restored or back is not None)
        return State(self.identity, commit.version, size, transactions, _if_known(files), is_restored)


def _if_known(files: Mapping[str, AddedFile] | None) -> Mapping[str, AddedFile] | None:
    return files if files is not None and len(files) <= MAX_TRACKED_FILES else None
