"""Libraries that only some commands need: imported on demand, and reported with their extra if missing."""

from __future__ import annotations

import importlib
from typing import Any

import replicator
from replicator.errors import ConfigError


def load(library: str, extra: str = "sql") -> Any:
    """Import and return a module. Raises ConfigError with the installation command if a library is missing."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        missing = (error.name or library).partition(".")[0]
        if missing == replicator.__name__:
            raise
        raise ConfigError(f"{missing} is not installed.", fix=f"pip install 'lakehouse-replicator[{extra}]'") from error
