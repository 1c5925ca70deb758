"""Libraries that only some commands need: loaded on demand, and named with their extra where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

import replicator
from replicator.errors import ConfigError


def load(library: str, extra: str = "sql") -> Any:
    """The module of that name, or one of ours that needs some. Raises ConfigError that says how to install what is
    missing.
    """
    try:
        return importlib.import_module(library)
    except ImportError as error:
        missing = (error.name or library).partition(".")[0]
        if missing == replicator.__name__:
            raise
        raise ConfigError(
            f"{missing} is not installed.", mend=f"pip install 'lakehouse-replicator[{extra}]'"
        ) from error
