"""Durations in a configuration: ``30 days``."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_FORM = r"([1-9]\d{0,5}) ?(minute|hour|day|week)s?"

DurationText = Annotated[str, Field(pattern=rf"^\s*(0|{_FORM})\s*$")] | Literal[0]
"""A duration as written in a file."""


def parse_seconds(value: Any) -> Any:
    """Return the seconds of ``30 days``; 0 is 0, None stays None. Raises ValueError for anything else."""
    is_switch = isinstance(value, bool)  # YAML's `off`, which equals 0 in Python
    if value is None or (value in (0, "0") and not is_switch):
        return value if value is None else 0
    found = re.fullmatch(_FORM, str(value).strip())
    if found is None:
        raise ValueError("a duration must be a number of minutes, hours, days or weeks, such as `30 days`")
    return int(found.group(1)) * _SECONDS[found.group(2)]


Duration = Annotated[int, BeforeValidator(parse_seconds, json_schema_input_type=DurationText)]
OptionalDuration = Annotated[int | None, BeforeValidator(parse_seconds, json_schema_input_type=DurationText | None)]
