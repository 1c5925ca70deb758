"""Connector configurations as files: flat JSON with ``${NAME}`` where a value differs from place to place."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill(file: Path, values: Mapping[str, str]) -> dict[str, str]:
    """The connector's configuration, each ``${NAME}`` replaced by ``values[NAME]``.

    Connect's own references (``${file:/path:key}``) have a colon and are left alone. Raises ConfigError when the file
    is no flat JSON object of texts, or names a value that is not given.
    """
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the connector file cannot be read: {error.strerror}", where=str(file)) from error
    except ValueError as error:
        raise ConfigError(f"the connector file is not JSON: {error}", where=str(file)) from error
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise ConfigError("a connector file is one JSON object whose values are all texts", where=str(file))
    return {key: _filled(value, values, f"{file}: {key}") for key, value in config.items()}


def _filled(text: str, values: Mapping[str, str], where: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            given = ", ".join(sorted(values)) or "none"
            raise ConfigError(f"${{{name}}} has no value", where=where, mend=f"Given are: {given}.")
        return values[name]

    return _PLACEHOLDER.sub(value, text)
