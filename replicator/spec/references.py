"""Secrets of connectors: references that Kafka Connect resolves, never the secret itself.

Connect stores the configuration of a connector in a topic and returns it from its REST interface to anyone. A reference
``${provider:path:key}`` or ``${provider:key}`` is resolved inside the worker (its ``config.providers``), so that both
only contain the reference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXAMPLE = "${env:SHOP_PASSWORD} or ${file:/etc/kafka/secrets.properties:shop}"

_REFERENCE = r"\$\{[A-Za-z][\w-]*:[^}\s]+\}"
_SECRET_KEY = re.compile(
    r"password|passwd|passphrase|\bpwd\b|secret|token|credential|(?:access|private|keystore)[._]?key|user[.]info",
    re.IGNORECASE,
)
_HARMLESS_KEY = re.compile(r"[.](url|uri|class|file|path|location|type|id|ms|seconds|name|algorithm)$", re.IGNORECASE)
_SECRET_INSIDE = re.compile(
    r"((?:password|passwd|passphrase|pwd|secret|secret[._]?key)\s*=\s*)"
    rf"(?![\"']?{_REFERENCE})(\"(?:\\.|[^\"\\])+\"?|'[^']+'?|[^\"'\s;&,][^\s;&,]*)"
    rf"|(//[^/:@\s]*:|jdbc:oracle:\w+:[^/@\s]+/)(?!{_REFERENCE})([^/\s]+)(?=@)",
    re.IGNORECASE,
)


def is_reference(value: str) -> bool:
    """Return whether a value is a reference and nothing else."""
    return re.fullmatch(_REFERENCE, value) is not None


def plain_secrets(config: Mapping[str, str]) -> Iterator[str]:
    """Yield the keys whose value is, or contains, a secret in plain text."""
    for key, value in config.items():
        if (_is_secret_key(key) and value and not is_reference(value)) or _SECRET_INSIDE.search(value):
            yield key


def mask(key: str, value: str) -> str:
    """Return the value for display: a secret in plain text becomes ``***``, a reference is kept."""
    if _is_secret_key(key) and value and not is_reference(value):
        return "***"
    return _SECRET_INSIDE.sub(lambda found: f"{found[1] or found[3]}***", value)


def _is_secret_key(key: str) -> bool:
    # sasl.jaas.config is not matched: its value may contain a password, which _SECRET_INSIDE finds
    return _SECRET_KEY.search(key) is not None and _HARMLESS_KEY.search(key) is None
