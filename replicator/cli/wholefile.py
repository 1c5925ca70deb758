"""Files that commands write: each is there whole or not at all, and who opens an old one meanwhile gets the old one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Result = TypeVar("Result")


def written(output: Path, write: Callable[[Path], Result]) -> Result:
    """What ``write`` gives when it has written the file that becomes *output*. Raises ConfigError, before it is asked,
    where no file can be.
    """
    beside = output.with_name(f".{output.name}.new")
    try:
        if output.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        beside.touch()
    except OSError as error:
        mend = "Give another --output FILE, in a folder that there is."
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(output), mend=mend) from error
    try:
        done = write(beside)
        beside.replace(output)
    finally:
        beside.unlink(missing_ok=True)
    return done
