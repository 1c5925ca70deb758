"""Templates as plain values, in the order in which their stacks are made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cfnlint.decode import decode_str

FOLDER = Path(__file__).parents[1] / "aws"

ORDER = (
    "network", "access", "lake", "database", "streaming", "connect", "catalog", "roles", "processing", "ui", "alarms",
)  # fmt: skip
"""Each uses outputs of those before it alone."""

ASIDE: Mapping[str, str] = {"vpn": "access", "image": "", "cluster": "roles", "dashboard": "catalog"}
"""Stacks that not everybody needs, and the one of ``ORDER`` behind which they come; '': before all."""

Template = Mapping[str, Any]


def read(name: str) -> Template:
    """One template by its name."""
    return parsed((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def parsed(text: str) -> Template:
    """A template's text. Raises ValueError."""
    template, problems = decode_str(text)
    if problems:
        raise ValueError("; ".join(str(each) for each in problems))
    plain: Template = json.loads(json.dumps(template))  # cfn-lint's own values know where they stand
    return plain


def every() -> dict[str, Template]:
    """All templates by name, those of ``ORDER`` first."""
    return {name: read(name) for name in (*ORDER, *ASIDE)}


def resources(template: Template, *kinds: str) -> dict[str, Mapping[str, Any]]:
    """Resources by their names, those of some types where any are named."""
    found = template.get("Resources", {})
    return {name: each for name, each in found.items() if not kinds or each["Type"] in kinds}


def properties(template: Template, *kinds: str) -> dict[str, Mapping[str, Any]]:
    """The same, of each its properties."""
    return {name: each.get("Properties", {}) for name, each in resources(template, *kinds).items()}


def text(value: Any, known: Mapping[str, str]) -> str:
    """A value as CloudFormation would fill it in. *known*: parameters, pseudo parameters and exports by name. Raises
    KeyError for another name, ValueError for a function that is not among those that make texts.
    """
    if not isinstance(value, Mapping):
        return str(value)
    [(function, given)] = value.items()
    if function == "Ref":
        return known[given]
    if function == "Fn::ImportValue":
        return known[text(given, known)]
    if function == "Fn::Join":
        return str(given[0]).join(text(each, known) for each in given[1])
    if function == "Fn::Base64":
        return text(given, known)
    if function != "Fn::Sub":
        raise ValueError(function)
    pattern, more = (given, {}) if isinstance(given, str) else given
    return _substituted(pattern, {**known, **{name: text(each, known) for name, each in more.items()}})


def _substituted(pattern: str, known: Mapping[str, str]) -> str:
    for name in sorted(known, key=len, reverse=True):
        pattern = pattern.replace(f"${{{name}}}", known[name])
    return pattern


def listed(value: Any) -> Sequence[Any]:
    """What may be one or several, as several."""
    return value if isinstance(value, list) else [value]
