"""How the S3 server of tests is reached."""

from __future__ import annotations

from pydantic import SecretStr

from replicator.config.settingkeys import S3Keys


def keys(endpoint: str) -> S3Keys:
    """Path style, and credentials that nobody looks at."""
    return S3Keys(endpoint=endpoint, access_key=SecretStr("key"), secret_key=SecretStr("secret"), path_style=True)
