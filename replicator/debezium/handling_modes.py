"""Handling modes: connector settings for how decimals, bytes, dates and times are written (types.md Y13)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.errors import ConfigError
from replicator.spec.connectors import BINARY, DECIMALS, TIMES

_BINARY_MODES = {"bytes": "base64", "base64": "base64text", "base64-url-safe": "base64url", "hex": "hex"}
_TIME_MODES: Mapping[str, str | None] = {
    **dict.fromkeys(("adaptive", "adaptive_time_microseconds")),
    "connect": "",
    "isostring": "iso_",
    "microseconds": "micro_",
    "nanoseconds": "nano_",
    "structured": "structured_",
}
"""The prefix of all dates and times in a mode, in their short form; None where each column's digits decide it."""


@dataclass(frozen=True)
class HandlingModes:
    """A connector's settings that change how declared types are written (types.md Y13).

    ``decimals`` is ``decimal.handling.mode``, ``binary`` is ``binary.handling.mode``, ``times`` is
    ``time.precision.mode``. Unknown values raise ConfigError.
    """

    decimals: str = "precise"
    binary: str = "bytes"
    times: str = "adaptive"

    def __post_init__(self) -> None:
        for setting, value, known in (
            (DECIMALS, self.decimals, ("precise", "string", "double")),
            (BINARY, self.binary, tuple(_BINARY_MODES)),
            (TIMES, self.times, tuple(_TIME_MODES)),
        ):
            if value not in known:
                raise ConfigError(f"{setting} is {value!r}", fix=f"Known values: {', '.join(known)}.")

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> HandlingModes:
        """The modes in a connector's settings, by key; Debezium's defaults for missing ones."""
        return cls(
            settings.get(DECIMALS, cls.decimals), settings.get(BINARY, cls.binary), settings.get(TIMES, cls.times)
        )

    @property
    def decimal_encoding(self) -> str:
        """``base64`` or ``text``."""
        return "text" if self.decimals == "string" else "base64"

    @property
    def binary_encoding(self) -> str:
        """``base64``, ``base64text``, ``base64url`` or ``hex``."""
        return _BINARY_MODES[self.binary]

    @property
    def time_prefix(self) -> str | None:
        """The prefix of all dates and times in their short form; None where each column's digits decide it."""
        return _TIME_MODES[self.times]


DEFAULT_MODES = HandlingModes()
