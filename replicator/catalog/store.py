"""The place of a lake for libraries without a JVM: a local folder, or an object store with the settings of ``s3``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from replicator import s3
from replicator.errors import ConfigError, ReplicatorError, first_line

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

SPARK_HINT = "Use `--engine spark`."
"""The hint for everything that only a JVM can read."""

_REFUSAL = re.compile(
    r"AWS Error (?:ACCESS_DENIED|INVALID_ACCESS_KEY_ID|INVALID_CLIENT_TOKEN_ID|SIGNATURE_DOES_NOT_MATCH"
    r"|NO_SUCH_BUCKET)\b"
    r"|lacked the necessary privileges"
)
"""Messages of pyarrow and delta-rs about denied access, and of pyarrow about a missing bucket."""

_CONNECT_SECONDS, _REQUEST_SECONDS = 5.0, 30.0


@dataclass(frozen=True)
class Store:
    """A lake's root, and the settings of its object store. Without keys AWS's default chain decides; without an
    endpoint it is AWS itself.
    """

    root: str
    endpoint: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    region: str | None = None
    path_style: bool = False

    @property
    def is_local(self) -> bool:
        """Whether the lake is a local folder."""
        return urlsplit(self.root).scheme in {"", "file"}

    def files(self) -> FileSystem:
        """Return the file system for :meth:`path`. Raises ConfigError for one that needs a JVM, Unreachable for an
        endpoint at which nothing listens, or that hangs.
        """
        from pyarrow import fs  # noqa: PLC0415 - takes a quarter of a second, which --help need not wait

        if self.is_local:
            return fs.LocalFileSystem()
        if not self.root.startswith(("s3a://", "s3://")):
            raise ConfigError("only local lakes and s3a:// are read without Spark", where=self.root, fix=SPARK_HINT)
        if self.endpoint:
            s3.check_reachable(self.endpoint)
        parts = urlsplit(self.endpoint or "")
        return fs.S3FileSystem(
            access_key=self.access_key,
            secret_key=self.secret_key,
            endpoint_override=parts.netloc or None,
            scheme=parts.scheme or None,
            region=self.region,
            force_virtual_addressing=bool(self.endpoint) and not self.path_style,
            connect_timeout=_CONNECT_SECONDS,
            request_timeout=_REQUEST_SECONDS,
        )

    def path(self, location: str) -> str:
        """A location of the lake as a path for :meth:`files`."""
        parts = urlsplit(location)
        if parts.scheme == "":
            return location
        return parts.path if parts.scheme == "file" else f"{parts.netloc}{parts.path}"

    def url(self, location: str) -> str:
        """A location of the lake as delta-rs and hudi-rs expect it."""
        return self.path(location) if self.is_local else f"s3://{self.path(location)}"

    def options(self) -> dict[str, str]:
        """The settings of the object store for delta-rs and hudi-rs."""
        if self.is_local:
            return {}
        given = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_ALLOW_HTTP": "true" if (self.endpoint or "").startswith("http:") else None,
            "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": str(not self.path_style).lower() if self.endpoint else None,
        }
        return {key: value for key, value in given.items() if value is not None}

    def has(self, files: FileSystem, location: str) -> bool:
        """Whether a file, or a folder that is not empty, exists. Raises as :func:`read_error`."""
        from pyarrow import fs  # noqa: PLC0415 - as above

        try:
            return bool(files.get_file_info(self.path(location)).type != fs.FileType.NotFound)
        except OSError as error:
            raise read_error(location, error) from error

    def folders(self, files: FileSystem, location: str) -> list[str]:
        """Return the names of the folders directly below a location; none if the location does not exist. Raises as
        :func:`read_error`.
        """
        return self._below(files, location, folders=True)

    def names(self, files: FileSystem, location: str) -> list[str]:
        """Return the names of the files directly below a location, as :meth:`folders` does."""
        return self._below(files, location, folders=False)

    def _below(self, files: FileSystem, location: str, *, folders: bool) -> list[str]:
        from pyarrow import fs  # noqa: PLC0415 - as above

        try:
            found = files.get_file_info(fs.FileSelector(self.path(location)))
        except FileNotFoundError:
            return []  # not by `allow_not_found`, for which a missing bucket is an empty one
        except OSError as error:
            raise read_error(location, error) from error
        wanted = fs.FileType.Directory if folders else fs.FileType.File
        return sorted(each.base_name for each in found if each.type == wanted)


def read_error(location: str, error: OSError) -> ReplicatorError:
    """Return the error for one of pyarrow's or delta-rs': see ``s3.read_error``."""
    reason = first_line(error)
    return s3.read_error(reason, location, is_refused=_REFUSAL.search(reason) is not None)
