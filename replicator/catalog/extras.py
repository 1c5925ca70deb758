"""Libraries that only some commands need: loaded on demand, and named with their extra where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from replicator.errors import ConfigError


def load(library: str, extra: str = "sql") -> Any:
    """The module of that name. Raises ConfigError that says how to install it."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ConfigError(
            f"{library.partition('.')[0]} is not installed.", mend=f"pip install 'lakehouse-replicator[{extra}]'"
        ) from error
