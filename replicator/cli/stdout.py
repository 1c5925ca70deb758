"""stdout whose reader exits early, as in ``replicator ... | head -1``: the program ends then, without a message.

Other programs are ended by SIGPIPE. This one is not: a server that closes a connection would raise it as well.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from replicator.errors import ConfigError

SIGPIPE_EXIT_CODE = 141
"""The exit code that a shell reports for a program ended by SIGPIPE: 128 plus its number."""


def require_open() -> None:
    """Raise ConfigError where the caller has closed stdout (``>&-``): the output would be lost, or written into the
    next file that is opened, which gets the same descriptor.
    """
    if sys.__stdout__ is None:
        raise ConfigError("stdout is closed", fix="Redirect the output with `> /dev/null` if it is not needed.")


@contextmanager
def that_may_close() -> Iterator[None]:
    """Within the block, writing to a stdout whose reader has exited raises SystemExit; text that its encoding cannot
    represent raises ConfigError, since a replacement character would be other data. stdout is flushed when the block
    ends, however it ends; raises OSError where it cannot be written.
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
        self._before = before  # kept: the wrapper would close the descriptor when it is collected

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"stdout is {self.encoding}, which cannot encode {error.object[error.start]!r}",
                fix="Set PYTHONIOENCODING=utf-8, or LANG to a UTF-8 locale.",
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
        """Discard what is still buffered: Python would try to flush it again at exit, and report an error."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(SIGPIPE_EXIT_CODE) from None
