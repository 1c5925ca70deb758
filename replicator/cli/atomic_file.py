"""Files that commands write: each is there whole or not at all, and who opens an old one meanwhile gets the old one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


def write_atomically(output: Path, write: Callable[[Path], Result]) -> Result:
    """What ``write`` gives when it has written the file that becomes *output*, or to which it is a link. Raises
    ConfigError, before it is asked, where no file can be, or a device or a pipe is, which a file must not replace.
    """
    own = Path(os.path.realpath(output))
    beside = own.with_name(f".{own.name}.new")
    try:
        _refuse_non_file(output)
        beside.touch()
    except OSError as error:
        mend = "Give another --output FILE, in a folder that there is."
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(output), mend=mend) from error
    try:
        done = write(beside)
        beside.replace(own)
    finally:
        beside.unlink(missing_ok=True)
    return done


def _refuse_non_file(output: Path) -> None:
    if output.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    if output.exists() and not output.is_file():
        raise OSError(0, "it is a device or a pipe")
