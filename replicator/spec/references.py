"""Secrets of connectors: references that Kafka Connect resolves, never the secret itself.

What a connector is configured with is kept in a topic and told by Connect's REST interface to whoever asks. A
reference ``${provider:path:key}`` or ``${provider:key}`` is resolved inside the worker (its ``config.providers``), and
is all that both ever show.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXAMPLE = "${env:SHOP_PASSWORD} or ${file:/etc/kafka/secrets.properties:shop}"

_REFERENCE = r"\$\{[A-Za-z][\w-]*:[^}\s]+\}"
_SECRET_KEY = re.compile(
    r"password|passphrase|secret|token|credential|(?:access|private|keystore)[._]?key|user[.]info", re.IGNORECASE
)
_HARMLESS_KEY = re.compile(r"[.](url|uri|class|file|path|location|type|id|ms|seconds|name|algorithm)$", re.IGNORECASE)
_SECRET_INSIDE = re.compile(
    r"((?:password|passphrase|pwd|secret|secret[._]?key)\s*=\s*)"
    rf"(?![\"']?{_REFERENCE})(\"(?:\\.|[^\"\\])+\"?|'[^']+'?|[^\"'\s;&,][^\s;&,]*)"
    rf"|(//[^/:@\s]+:)(?!{_REFERENCE})([^/\s]+)(?=@)",
    re.IGNORECASE,
)


def is_reference(value: str) -> bool:
    """Whether a value is nothing but a reference."""
    return re.fullmatch(_REFERENCE, value) is not None


def plain_secrets(config: Mapping[str, str]) -> Iterator[str]:
    """The keys whose value is a secret, or holds one, in plain text."""
    for key, value in config.items():
        if (_is_secret_key(key) and value and not is_reference(value)) or _SECRET_INSIDE.search(value):
            yield key


def mask(key: str, value: str) -> str:
    """The value as people may see it: a secret in plain text is ``***``, a reference stays."""
    if _is_secret_key(key) and value and not is_reference(value):
        return "***"
    return _SECRET_INSIDE.sub(lambda found: f"{found[1] or found[3]}***", value)


def _is_secret_key(key: str) -> bool:
    # sasl.jaas.config is a sentence with a password somewhere in it, or with none
    return _SECRET_KEY.search(key) is not None and _HARMLESS_KEY.search(key) is None
