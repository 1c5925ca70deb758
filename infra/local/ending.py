"""How a command over the stack ends: its error in one line on stderr, and the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from replicator.errors import ReplicatorError

if TYPE_CHECKING:
    from collections.abc import Callable


def exit_code_of(work: Callable[[], None], *, prefix: str = "", interrupted: str = "Interrupted.") -> int:
    """Do the *work* and return the exit code: 0, or the error's own; the message of an error begins with *prefix*."""
    try:
        work()
    except ReplicatorError as error:
        tell(f"{prefix}{error}")
        return error.exit_code
    except OSError as error:
        tell(f"{prefix}The stack's files are out of reach: {error}")
        return 1
    except KeyboardInterrupt:
        tell(interrupted)
        return 130
    return 0


def tell(line: str) -> None:
    """Print a line on stderr."""
    print(line, file=sys.stderr, flush=True)
