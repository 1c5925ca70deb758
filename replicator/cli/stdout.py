"""stdout whose reader has seen enough, as in ``replicator ... | head -1``: the program ends there, and says nothing.

The signal that ends other programs then, SIGPIPE, is no way for ours: a server that hangs up would send it as well.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from replicator.errors import ConfigError

SIGPIPE_EXIT_CODE = 141
"""The exit code that a shell tells of a program which SIGPIPE ended: 128 and its number."""


def require_open() -> None:
    """Raise ConfigError where the caller has closed it (``>&-``): what is printed would go nowhere, or into whatever
    file is opened first, which has its number then.
    """
    if sys.__stdout__ is None:
        raise ConfigError("stdout is closed", mend="Say `> /dev/null` where nobody wants what is printed.")


@contextmanager
def that_may_close() -> Iterator[None]:
    """From the block on writing to a stdout that nobody reads any more raises SystemExit, and ConfigError what its
    encoding has no bytes for: another letter would be other data. What is printed in the block is flushed at its end,
    however that comes: raises OSError where it cannot be written.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _Stdout(sys.stdout)
    try:
        yield
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


class _Stdout(io.TextIOWrapper):
    def __init__(self, before: io.TextIOWrapper) -> None:
        lines, through = before.line_buffering, before.write_through
        super().__init__(before.buffer, before.encoding, before.errors, line_buffering=lines, write_through=through)
        self._before = before  # what nobody holds is closed

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"stdout is {self.encoding}, which has no {error.object[error.start]!r}",
                mend="Set PYTHONIOENCODING=utf-8, or LANG to a locale of UTF-8.",
            ) from error
        except OSError as error:
            self._give_up(error)
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)
            raise

    def _give_up(self, error: OSError) -> None:
        """What is still to be written goes nowhere: Python would try once more at its end, and complain."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(SIGPIPE_EXIT_CODE) from None
