"""The keys of ``base.yaml`` and ``<env>.yaml``, each block a class: the valid values, and the defaults."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator

from replicator.config import kafka_options
from replicator.config.awskeys import AwsKeys
from replicator.config.duration import Duration, DurationText, OptionalDuration, parse_seconds
from replicator.config.spark_settings import SparkSettings
from replicator.config.strict import Address, Strict, Text, refuse_password
from replicator.config.tablekeys import Format


def absolute_path(path: str) -> str:
    """Return an absolute path, since the JVM's working directory may be another; one with a scheme is unchanged."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


DATABASE = r"^[a-z0-9_]{1,255}$"
"""The database names that Glue and Athena accept."""

_SECONDS = r"([1-9]\d{0,5}) ?seconds?"
_SHORTEST_LEASE = 6
"""Seconds: one renewal per second, and a margin for a commit that was already permitted."""

Name = Annotated[str, Field(min_length=1)]


_URL = re.compile(r"[a-z][a-z0-9+.-]*:/|.*://", re.IGNORECASE)
_LAKE = re.compile(r"s3a://[^/]|hdfs://[^/]|hdfs:///[^/]|file:///[^/]")


def _refuse_file(root: str) -> str:
    """Return a path that is a folder, or can become one. Raises ValueError for a file."""
    for path in (Path(root), *Path(root).parents):
        if os.path.isfile(path):  # False for a path that cannot be read: accessing the lake reports that
            raise ValueError(f"a lake must be a folder, but {path} is a file")
    return root


def _parse_lease(value: Any) -> Any:
    """Return the seconds of ``30 seconds`` and other durations; None for ``off``, which YAML reads as false."""
    if value in (None, "off") or value is False:
        return None
    found = re.fullmatch(_SECONDS, str(value).strip())
    try:
        seconds = int(found.group(1)) if found else parse_seconds(value)
    except ValueError as error:
        raise ValueError(
            "a lease must be `off` or a number of seconds, minutes or hours, such as `30 seconds`"
        ) from error
    if seconds < _SHORTEST_LEASE:
        raise ValueError(f"a lease must last {_SHORTEST_LEASE} seconds or longer; `off` disables leases")
    return seconds


_Lease = Annotated[str, Field(pattern=rf"^\s*{_SECONDS}\s*$")] | DurationText | Literal["off", False] | None


class LakeKeys(Strict):
    """The lake. ``root`` is a local directory (made absolute) or ``s3a://bucket/prefix``. ``lease`` is how long (in
    seconds) a driver that has stopped responding keeps others out; off: nothing keeps two drivers from writing at the
    same time.
    """

    root: Name = "./lake"
    lease: Annotated[int | None, BeforeValidator(_parse_lease, json_schema_input_type=_Lease)] = Field(
        default=30, validate_default=False
    )

    @field_validator("root")
    @classmethod
    def _absolute(cls, root: str) -> str:
        if not _URL.match(root):
            return _refuse_file(absolute_path(root))
        url = re.sub("^file:/(?!/)", "file:///", refuse_password(root)).rstrip("/")  # Hadoop's notation
        if not _LAKE.match(url):
            raise ValueError(
                f"a lake must be a local directory, s3a://bucket/prefix, hdfs:// or file:///, not {root!r}"
            )
        if mark := re.search("[?#]", url):  # Hadoop takes it for a character of the path, others for the path's end
            raise ValueError(f"a lake's address must not contain {mark.group()!r}")
        return url


class KafkaKeys(Strict):
    """Defaults for all sources; ``options`` are Kafka client options."""

    bootstrap_servers: str = ""
    options: dict[str, Text] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return kafka_options.validate(options)


class ConnectKeys(Strict):
    """Kafka Connect's REST interface, used by ``connect`` and ``doctor``; ``user`` and ``password`` where it requires a
    login (HTTP basic authentication). Set the password by an environment variable.
    """

    url: str | None = None
    user: str = ""
    password: SecretStr = SecretStr("")

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password; None where there are none."""
        return (self.user, self.password.get_secret_value()) if self.user else None

    @field_validator("url")
    @classmethod
    def _address(cls, url: str | None) -> str | None:
        if not url:
            return url
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise ValueError("addresses are printed: give user and password as keys of their own")
        is_valid = parts.scheme in ("http", "https") and parts.hostname and not re.search(r"\s", url)
        if not is_valid or parts.port == 0:  # `port` raises ValueError for what is none
            raise ValueError("an address must be http://host:port or https://host:port")
        return url

    @model_validator(mode="after")
    def _whole_login(self) -> ConnectKeys:
        if bool(self.user) != bool(self.password.get_secret_value()):
            raise ValueError("user and password must be given together")
        return self


class TargetKeys(Strict):
    """A serving database; ``sslmode`` and ``options`` are libpq's. Set the password by an environment variable."""

    kind: str = "postgres"
    host: Name
    port: int = Field(default=5432, ge=1, le=65535)
    database: Name
    user: Name
    password: SecretStr = SecretStr("")
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "verify-full"
    options: dict[str, Text] = Field(default_factory=dict)


class S3Keys(Strict):
    """The object store behind ``s3a://``. Without keys, the AWS default credential chain is used; without ``endpoint``,
    AWS.
    """

    endpoint: Address | None = None
    access_key: SecretStr | None = None
    secret_key: SecretStr | None = None
    region: Name = "us-east-1"
    path_style: bool = False


class AthenaKeys(Strict):
    """Where ``sql --engine athena`` runs queries. ``output`` is an s3:// folder for results, by default that of the
    workgroup; ``database`` defaults to that of the catalog; ``region`` and credentials default to those of AWS's
    default chain.
    """

    workgroup: Name = "primary"
    database: str | None = None
    catalog: Name = "AwsDataCatalog"
    output: str | None = None
    region: str | None = None
    endpoint: Address | None = None

    @field_validator("output")
    @classmethod
    def _on_s3(cls, output: str | None) -> str | None:
        if output is not None and not output.startswith("s3://"):
            raise ValueError("results must go to s3://bucket/prefix/")
        return output


class CatalogKeys(Strict):
    """Where tables are registered for Athena and other clients. Without ``endpoint`` it is AWS; credentials, and the
    ``region`` by default, are found as by any AWS tool.
    """

    kind: Literal["glue"] = "glue"
    region: str | None = None
    endpoint: Address | None = None
    database: Annotated[str, Field(pattern=DATABASE)] = "lakehouse"


class BronzeKeys(Strict):
    """Kafka -> bronze. ``trigger_seconds`` applies to continuous mode only; 0 starts the next batch at once.
    ``max_objects_per_batch`` is for sources whose records are in objects.
    """

    trigger_seconds: float = Field(default=1.0, ge=0, le=86_400)
    max_offsets_per_trigger: int = Field(default=200_000, ge=1)
    max_objects_per_batch: int = Field(default=5_000, ge=1)


class SilverKeys(Strict):
    """Bronze -> silver. ``tables_at_once`` is how many tables of a batch are processed in parallel, unless the batch is
    large.
    """

    tables_at_once: int = Field(default=3, ge=1, le=32)


class DeadLetterKeys(Strict):
    """When rejected records stop a table: ``max_share`` is a share of one batch, 0 to 1; 1 never stops it (debezium.md
    R5).
    """

    max_share: float = Field(default=0.01, ge=0, le=1)


class MaintenanceKeys(Strict):
    """Table maintenance: files that are needed only by versions older than ``keep`` are deleted; ``every`` is how often
    a continuous run does it by itself, by default never (``replicator maintain`` does it). Both are seconds once read.
    """

    keep: Duration = Field(default=604_800, validate_default=False)
    every: OptionalDuration = None


class Keys(Strict):
    """Every key of ``base.yaml`` and ``<env>.yaml``. ``formats`` are the formats that tables may have; each requires
    its JARs.

    ``runtime``: which Delta and Hudi a ``spark-submit`` uses: own, or emr for those that EMR and Glue provide.
    """

    lake: LakeKeys = LakeKeys()
    kafka: KafkaKeys = KafkaKeys()
    connect: ConnectKeys = ConnectKeys()
    targets: dict[str, TargetKeys] = Field(default_factory=dict)
    spark: SparkSettings = Field(default_factory=dict)
    s3: S3Keys | None = None
    athena: AthenaKeys = AthenaKeys()
    catalog: CatalogKeys = CatalogKeys()
    bronze: BronzeKeys = BronzeKeys()
    silver: SilverKeys = SilverKeys()
    dead_letter: DeadLetterKeys = DeadLetterKeys()
    maintenance: MaintenanceKeys = MaintenanceKeys()
    runtime: Literal["own", "emr"] = "own"
    aws: AwsKeys = AwsKeys()
    formats: tuple[Format, ...] = ("delta",)

    @field_validator("formats")
    @classmethod
    def _with_delta(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        if "delta" not in formats:
            raise ValueError("bronze and gold are stored in delta: give [delta, hudi], or omit the key")
        return tuple(sorted(set(formats)))
