"""A folder on S3: whole files are written and read."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from replicator.aws.manifest import BOOTSTRAP, MANIFEST, Manifest
from replicator.awsclient import Service, refusal
from replicator.errors import ConfigError

_CURRENT = "current"
_GZIP = b"\x1f\x8b"


class S3Folder:
    """``s3://bucket/prefix``. Every method raises Unreachable if S3 does not answer, ConfigError if it refuses."""

    def __init__(self, location: str, region: str | None = None) -> None:
        self.location = location.rstrip("/")
        self._bucket, _, prefix = self.location.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._client: Any = _S3.client(region, None, connect_timeout=5, read_timeout=60, retries={"mode": "standard"})

    def put(self, name: str, content: bytes | Path) -> None:
        """Write one file, replacing an existing one."""
        with _S3.translated(self._where(name)):
            if isinstance(content, Path):
                self._upload(content, self._prefix + name)
            else:
                self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a file, decompressed if they are gzip's; None if it does not exist."""
        with _S3.translated(self._where(name)):
            try:
                found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"].read()
            except self._client.exceptions.NoSuchKey:
                return None
        return gzip.decompress(found) if found.startswith(_GZIP) else found

    def names(self, folder: str) -> Iterator[str]:
        """Yield all files below a folder, by name."""
        pages = self._client.get_paginator("list_objects_v2")
        with _S3.translated(self._where(folder)):
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix + folder):
                yield from (each["Key"].removeprefix(self._prefix) for each in page.get("Contents", []))

    def _upload(self, file: Path, key: str) -> None:
        """Upload in parts if the file is large. Only here does boto3 wrap S3's refusals."""
        from boto3.exceptions import S3UploadFailedError  # noqa: PLC0415 - on demand

        try:
            self._client.upload_file(str(file), self._bucket, key)
        except S3UploadFailedError as error:
            raise error.__context__ or error from None

    def _where(self, name: str) -> str:
        return f"{self.location}/{name}"


def upload(folder: Path, packed: Manifest, place: S3Folder, report: Callable[[str], None]) -> str:
    """Upload a package below *place*, into a folder of its own, then mark it as the current one; return its location.
    Existing files are not sent again. ``report`` is called with each file's name before it is sent.
    """
    existing = set(place.names(f"{packed.id}/"))
    for name in (*sorted(packed.files), MANIFEST):
        key = f"{packed.id}/{name}"
        if key not in existing:  # the manifest is uploaded last: if it exists, the package is complete
            report(name)
            place.put(key, folder / name)
    place.put(BOOTSTRAP, folder / BOOTSTRAP)
    place.put(_CURRENT, packed.id.encode())
    return f"{place.location}/{packed.id}"


def select_package(place: S3Folder, wanted: str | None) -> tuple[Manifest, str]:
    """Return a package by its id, by default the current one, and its location. Raises ConfigError if it does not
    exist.
    """
    found = wanted or (place.get(_CURRENT) or b"").decode().strip()
    text = place.get(f"{found}/{MANIFEST}") if found else None
    if text is None:
        fix = "Build and upload one: `replicator aws package --upload`."
        what = f"package {found} does not exist" if found else "there is no package"
        raise ConfigError(what, where=place.location, fix=fix)
    return Manifest.told(text.decode(), f"{place.location}/{found}/{MANIFEST}"), f"{place.location}/{found}"


_S3 = Service(
    "S3",
    "aws.region",
    "Check credentials and permissions on the bucket and its key.",
    refusal("S3", "Check the bucket and its permissions."),
)
