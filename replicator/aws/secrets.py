"""Secrets of a job: ``$REPLICATOR_SECRETS`` says where the value of each variable comes from, and contains no secret
itself.

    REPLICATOR_SECRETS=WAREHOUSE_PASSWORD=replicator-publish:password;WAREHOUSE_USER=replicator-publish:username

``replicator aws submit`` writes it from the stage's ``secrets`` in ``aws.jobs``; secrets that were read are never
written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from replicator.awsclient import Service, refusal
from replicator.errors import ConfigError

VARIABLE = "REPLICATOR_SECRETS"


def parse(text: str) -> dict[str, str]:
    """Return variable -> ``secret:key``. Raises ConfigError."""
    pairs = [each.partition("=") for each in text.split(";") if each]
    if any(not name or ":" not in place for name, _, place in pairs):
        raise ConfigError("not a list of NAME=SECRET:KEY, separated by ;", where=VARIABLE)
    return {name: place for name, _, place in pairs}


def read(places: Mapping[str, str], region: str | None = None) -> dict[str, str]:
    """Return variable -> value; each secret is read once. Raises ConfigError for one that does not exist or has no such
    key, Unreachable if Secrets Manager does not answer.
    """
    client = _SERVICE.client(region, None, connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 4})
    names = sorted({place.rpartition(":")[0] for place in places.values()})
    found = {name: _get_secret(client, name) for name in names}
    return {variable: _value(found, place) for variable, place in places.items()}


def _get_secret(client: Any, name: str) -> dict[str, Any]:
    with _SERVICE.translated(name):
        text = client.get_secret_value(SecretId=name).get("SecretString", "")
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    if not isinstance(keys, dict):
        raise ConfigError("the secret is not a JSON object of keys and values", where=name)
    return keys


def _value(found: Mapping[str, Mapping[str, Any]], place: str) -> str:
    name, _, key = place.rpartition(":")
    if key not in found[name]:
        raise ConfigError(
            f"the secret has no key {key!r}", where=name, fix=f"It has: {', '.join(sorted(found[name]))}."
        )
    value = found[name][key]
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise ConfigError(f"the secret's key {key!r} is neither a text nor a whole number", where=name)
    return str(value)


_SERVICE = Service(
    "SecretsManager",
    None,
    "The job's role needs secretsmanager:GetSecretValue.",
    refusal("Secrets Manager", "Check `secrets` in `aws.jobs`."),
)
