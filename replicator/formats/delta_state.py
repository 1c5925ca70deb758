"""What Delta's log says, as values: a data file, a commit, and what commits add up to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

MAX_TRACKED_FILES = 256
"""Of a table with more files the driver does not keep account."""


@dataclass(frozen=True)
class AddedFile:
    """A data file of one commit: absolute path, partition values, bytes, and Delta's own ``action``.

    Where ``is_new`` is false its rows were in other files before (OPTIMIZE).
    """

    version: int
    path: str
    partition: tuple[str, ...]
    size: int
    is_new: bool
    action: Any = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """What its path ends in."""
        return self.path.rpartition("/")[2]

    @property
    def has_vector(self) -> bool:
        """Whether a deletion vector hides rows of it."""
        return self.action.deletionVector() is not None

    @cached_property
    def stats(self) -> str:
        """What the log tells of its rows, as JSON; '' for nothing."""
        return str(self.action.stats() or "")

    @property
    def has_row_count(self) -> bool:
        """Whether the log tells how many rows it has."""
        return '"numRecords"' in self.stats

    @cached_property
    def rows(self) -> int:
        """How many rows it has, hidden ones included; 0 where the log does not tell."""
        return int(json.loads(self.stats or "{}").get("numRecords", 0))

    @property
    def marked(self) -> int:
        """How many of them a deletion vector hides."""
        return int(self.action.deletionVector().cardinality()) if self.has_vector else 0


@dataclass(frozen=True)
class Commit:
    """One commit: its files, paths that it ``removed``, paths whose rows are what it ``changed``, its operation's
    metrics (only whole numbers), the ``txn`` actions by app id, by how many bytes the table grew, whether it
    ``replaces`` rows under other columns, and the version that it ``restores``. None where the log alone does not say.
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
    """What the log of the table ``identity`` adds up to at ``version``: live bytes, the ``txn`` per app id, and the
    live files by path; None where they are many. ``is_restored``: Delta itself says otherwise how far the inputs are,
    since a RESTORE took the rows back and no commit has told their progress yet.
    """

    identity: str
    version: int
    size: int
    transactions: Mapping[str, int]
    files: Mapping[str, AddedFile] | None
    is_restored: bool = False

    def after(self, commit: Commit, back: Mapping[str, int] | None = None) -> State | None:
        """The state that a commit makes of this one, which took the progress ``back`` to this; None if it cannot be
        told.
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
