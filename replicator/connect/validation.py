"""The findings of Kafka Connect's validation of a configuration, one per key: what is wrong and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replicator.spelling import closest_match

_CHOICES, _SENTENCE = 12, 160
_PASS_THROUGH_KEYS = re.compile(
    r"(transforms|predicates|converters|driver|schema\.history\.internal|signal|notification|header|"
    r"key\.converter|value\.converter|header\.converter|producer\.override|consumer\.override|admin\.override|"
    r"column\.(mask|truncate|propagate)|datatype\.propagate|topic\.creation|errors|internal|openlineage|"
    r"custom\.metric|snapshot\.select\.statement\.overrides|post\.processors|log\.mining|rac|mongodb|ssl|custom|name)"
    r"([.]|$)"
    r"|topic\.(cache\.size|delimiter|heartbeat\.prefix|transaction)$"
    r"|(binary\.handling\.mode|field\.name\.adjustment\.mode|money\.fraction\.digits|read\.only"
    r"|skip\.messages\.without\.change)$"
)
"""Keys that a connector's own list does not contain: those of components behind it, and some that it reads itself."""

_RENAMED = (
    (r"database\.server\.name", "topic.prefix"),
    (r"database\.history\.(.+\.)monitored(\..+)", r"schema.history.internal.\1captured\2"),
    (r"database\.history\.(.+)", r"schema.history.internal.\1"),
    (r"(database|schema|table|column)\.whitelist", r"\1.include.list"),
    (r"(database|schema|table|column)\.blacklist", r"\1.exclude.list"),
    (r"toasted\.value\.placeholder", "unavailable.value.placeholder"),
    (r"sanitize\.field\.names", "field.name.adjustment.mode"),
    (
        r"transforms\.([^.]+)\.(drop\.tombstones|delete\.handling\.mode)",
        r"transforms.\1.delete.tombstone.handling.mode",
    ),
)
"""Keys of older Debezium releases, as patterns, and their replacements (trap 8)."""


@dataclass(frozen=True)
class Finding:
    """One problem with one key. ``refused``: Connect accepts no configuration with it; otherwise the key
    may have no effect.
    """

    key: str
    what: str
    fix: str = ""
    refused: bool = True


def parse_findings(answer: Mapping[str, Any], config: Iterable[str]) -> Iterator[Finding]:
    """Yield the findings in the answer of a validation (``PUT /connector-plugins/…/config/validate``) of a
    configuration with these keys: refusals in the answer's order, then keys that the plugin does not know.
    """
    known: set[str] = set()
    for each in answer["configs"]:
        definition = each["definition"] or {}
        value = each["value"] or {"name": definition["name"]}  # for a key that the plugin did not validate
        known.add(value["name"])
        errors = [_clean_message(error, value["name"]) for error in value.get("errors") or ()]
        if errors:
            yield Finding(value["name"], "; ".join(dict.fromkeys(errors)), _hint(value, definition))
    for key in sorted(set(config) - known):
        now = _new_name(key)
        if now is not None or not _PASS_THROUGH_KEYS.match(key):
            fix = _suggest(key, known) if now is None else f"Newer versions of Debezium use {now} instead."
            yield Finding(key, "the plugin does not list this key, so it may have no effect", fix, refused=False)


def _new_name(key: str) -> str | None:
    """The replacement of a key in newer Debezium releases; None if it was not renamed."""
    found = (re.sub(old, now, key) for old, now in _RENAMED if re.fullmatch(old, key))
    return next(found, None)


def _clean_message(error: str, key: str) -> str:
    """The message without the key, the value and the text around it."""
    first = " ".join(error.split())
    first = re.sub(rf"^(The '{re.escape(key)}' value is invalid: )", "", first)
    return re.sub(r"^Invalid value .* for configuration [\w.\-]+: ", "", first)


def _hint(value: Mapping[str, Any], definition: Mapping[str, Any]) -> str:
    """The allowed values, else the first sentence of the plugin's documentation of the key."""
    choices = [str(choice) for choice in value.get("recommended_values") or ()]
    if 0 < len(choices) <= _CHOICES:
        return f"One of {', '.join(choices)}."
    documented = re.sub(r"<[^>]+>", "", " ".join(str(definition.get("documentation") or "").split()))
    sentence = re.match(r".*?[.](?=\s|$)", documented)
    text = sentence.group() if sentence else documented
    return text if len(text) <= _SENTENCE else f"{text[:_SENTENCE].rsplit(' ', 1)[0]} …"


def _suggest(key: str, known: Iterable[str]) -> str:
    near = closest_match(key, known, 0.75)
    return "" if near is None else f"Did you mean {near}?"
