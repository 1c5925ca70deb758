"""The lake's control rows without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from replicator import controlrow
from replicator.catalog.store import read_error
from replicator.errors import NoControlRow

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from replicator.catalog.store import Store

_SUFFIX, _BESIDE = ".json", ".new"


class StoredControlReader:
    """``ControlReader`` of rows written by a ``JsonControl``; after a crash of the writer, it reads them as that class
    does. Raises Unreachable, ConfigError, and NoControlRow for a damaged row.
    """

    def __init__(self, store: Store, files: FileSystem) -> None:
        self._store = store
        self._files = files

    def get(self, path: str) -> dict[str, Any] | None:
        """Return the object at its path, else the complete one beside it."""
        text = self._text(path)
        if text is not None:
            return controlrow.read(path, text)
        found = _parse_if_complete(path, self._text(f"{path}{_BESIDE}"))
        # between the two reads it may have been moved to its path
        moved = self._text(path) if found is None else None
        return found if moved is None else controlrow.read(path, moved)

    def under(self, folder: str) -> tuple[str, ...]:
        """Return the rows' names, from the names of the files."""
        names = self._store.names(self._files, folder)
        complete = {name for name in names if name.endswith(_SUFFIX)}
        pending = {name.removesuffix(_BESIDE) for name in names if name.endswith(f"{_SUFFIX}{_BESIDE}")} - complete
        complete |= {name for name in pending if self.get(f"{folder}/{name}") is not None}
        return tuple(sorted(name.removesuffix(_SUFFIX) for name in complete))

    def _text(self, path: str) -> bytes | None:
        try:
            with self._files.open_input_stream(self._store.path(path)) as stream:
                return bytes(stream.readall())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise read_error(path, error) from error


def _parse_if_complete(path: str, text: bytes | None) -> dict[str, Any] | None:
    """None if the writer crashed while writing."""
    try:
        return None if text is None else controlrow.read(path, text)
    except NoControlRow:
        return None
