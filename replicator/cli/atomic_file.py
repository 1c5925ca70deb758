"""Output files of commands: each appears complete or not at all, and a reader of the old file meanwhile keeps it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def write_atomically(output: Path, write: Callable[[Path], Result]) -> Result:
    """Write a file with ``write``, replace *output* (or the target of that link) by it, and return the result of
    ``write``. Raises ConfigError, before ``write`` is called, where no file can be created, and for a device or a pipe,
    which must not be replaced by a file.
    """
    target = Path(os.path.realpath(output))
    temporary = target.with_name(f".{target.name}.new")
    try:
        _refuse_non_file(output)
        temporary.touch()
    except OSError as error:
        fix = "Give another --output FILE, in an existing folder."
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(output), fix=fix) from error
    try:
        result = write(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return result


def _refuse_non_file(output: Path) -> None:
    if output.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    if output.exists() and not output.is_file():
        raise OSError(0, "it is a device or a pipe")
