"""A register on S3: a conditional PUT, which boto3 supports and Hadoop 3.3.4 does not (reliability.md F-O3)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from replicator import s3
from replicator.errors import ConfigError, Unreachable
from replicator.leases.register import Stored

_CONFLICT, _FAILED = 409, 412
_TRIES = 5
_NO_TAG = f'"{"0" * 32}"'
_FIX = "Check that the bucket exists and these keys may read and write below _replicator/leases."


class S3Register:
    """``Register`` in an object; its ETag is its tag."""

    def __init__(self, client: Any, location: str) -> None:
        self._client = client
        self._location = location
        self._bucket, self._key = s3.split_location(location)

    @property
    def where(self) -> str:
        """The object's location."""
        return self._location

    def read(self) -> Stored | None:
        """Read the object by GET."""
        with s3.translate_errors(self.where, "read", _FIX):
            try:
                text, tag = s3.read_object(self._client, self._bucket, self._key)
            except self._client.exceptions.NoSuchKey:
                return None
            return Stored(text, tag)

    def replace(self, text: str, expected: str | None) -> str | None:
        """PUT with ``If-None-Match: *`` or ``If-Match``. A refusal may be that of a request that was sent twice: then
        the object has the sent text. 409 means that another writer is active, and leaves the outcome open.
        """
        for _ in range(_TRIES):
            with s3.translate_errors(self.where, "write", _FIX):
                tag = _put(self._client, self._bucket, self._key, text, expected)
            if tag is not None:
                return tag
            stored = self.read()
            if stored is not None and stored.text == text:
                return stored.tag
            if (None if stored is None else stored.tag) != expected:
                return None
        fix = "Try again later."
        raise Unreachable("the object store did not resolve a conflict between writers", where=self.where, fix=fix)


def refuse_unconditional(client: Any, folder: str) -> None:
    """Raise ConfigError for a store that ignores the conditions of writes: leases cannot be kept there (F-O3)."""
    location = f"{folder}/probe-{uuid4().hex}"
    bucket, key = s3.split_location(location)
    probe = S3Register(client, location)  # its first write may be sent twice, and then the second is refused
    with s3.translate_errors(folder, "write with a condition", _FIX):
        try:
            is_conditional = probe.replace("first", None) is not None
            is_conditional = (
                is_conditional and probe.replace("second", None) is None and probe.replace("third", _NO_TAG) is None
            )
        finally:
            client.delete_object(Bucket=bucket, Key=key)
    if not is_conditional:
        raise ConfigError(
            "the object store ignores If-None-Match or If-Match and overwrites objects: it cannot hold a lease",
            where=folder,
            fix="Use a store with conditional writes, or set lake.lease: off and start only one driver.",
        )


def _put(client: Any, bucket: str, key: str, text: str, expected: str | None) -> str | None:
    """The new ETag; None if the condition was not met, or possibly not met."""
    condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
    try:
        answer = client.put_object(Bucket=bucket, Key=key, Body=text.encode(), **condition)
    except client.exceptions.ClientError as error:
        missing = expected is not None and error.response.get("Error", {}).get("Code") == "NoSuchKey"
        if missing or s3.status(error) in {_CONFLICT, _FAILED}:
            return None
        raise
    return str(answer["ETag"])
