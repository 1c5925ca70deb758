"""The keys of ``base.yaml`` and ``<env>.yaml``, each block a class: what may be said, and what holds without it."""

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
from replicator.config.strict import Strict, Text
from replicator.config.tablekeys import Format


def absolute_path(path: str) -> str:
    """A path as the JVM shall have it, whose own working directory may be another; one with a scheme as it is."""
    return path if "://" in path else os.path.abspath(os.path.expanduser(path))


DATABASE = r"^[a-z0-9_]{1,255}$"
"""What Glue and Athena take as the name of a database."""

_SECONDS = r"([1-9]\d{0,5}) ?seconds?"
_SHORTEST_LEASE = 6
"""Seconds: a renewal each second, and some for a commit that was let go."""

Name = Annotated[str, Field(min_length=1)]


_URL = re.compile(r"[a-z][a-z0-9+.-]*:/|.*://", re.IGNORECASE)
_LAKE = re.compile(r"s3a://[^/]|hdfs://[^/]|hdfs:///[^/]|file:///[^/]")


def _refuse_file(root: str) -> str:
    """A path that is a folder, or may become one."""
    for path in (Path(root), *Path(root).parents):
        if os.path.isfile(path):  # where nobody may look there is none: the lake's own errors say so
            raise ValueError(f"a lake is a folder, and {path} is a file")
    return root


def _parse_lease(value: Any) -> Any:
    """Seconds of ``30 seconds`` and other durations; None of ``off``, which YAML takes for false."""
    if value in (None, "off") or value is False:
        return None
    found = re.fullmatch(_SECONDS, str(value).strip())
    told = int(found.group(1)) if found else parse_seconds(value)
    if told < _SHORTEST_LEASE:
        raise ValueError(f"a lease lasts {_SHORTEST_LEASE} seconds or longer; `off` keeps none")
    return told


_Lease = Annotated[str, Field(pattern=rf"^\s*{_SECONDS}\s*$")] | DurationText | Literal["off", False] | None


class LakeKeys(Strict):
    """Where the lake is: a local directory (made absolute) or ``s3a://bucket/prefix``. ``lease``: for how many seconds
    a driver that is silent keeps others out; None: nothing keeps two drivers apart.
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
        whole = re.sub("^file:/(?!/)", "file:///", root).rstrip("/")  # as Hadoop writes it
        if not _LAKE.match(whole):
            raise ValueError(f"a lake is a local directory, s3a://bucket/prefix, hdfs:// or file:///, not {root!r}")
        return whole


class KafkaKeys(Strict):
    """What sources share unless their own file says otherwise; ``options`` are Kafka client options."""

    bootstrap_servers: str = ""
    options: dict[str, Text] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return kafka_options.validate(options)


class ConnectKeys(Strict):
    """Kafka Connect's REST interface, which ``connect`` and ``doctor`` ask; ``user`` and ``password`` where it wants a
    login (HTTP basic authentication). Let the password come from the environment.
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
            raise ValueError("an address is printed: give user and password beside it")
        is_whole = parts.scheme in ("http", "https") and parts.hostname and not re.search(r"\s", url)
        if not is_whole or parts.port == 0:  # `port` raises ValueError for what is none
            raise ValueError("an address is http://host:port or https://host:port")
        return url

    @model_validator(mode="after")
    def _whole_login(self) -> ConnectKeys:
        if bool(self.user) != bool(self.password.get_secret_value()):
            raise ValueError("user and password belong together")
        return self


class TargetKeys(Strict):
    """A serving database; ``sslmode`` and ``options`` are libpq's. Let the password come from the environment."""

    kind: str = "postgres"
    host: Name
    port: int = Field(default=5432, ge=1, le=65535)
    database: Name
    user: Name
    password: SecretStr = SecretStr("")
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "verify-full"
    options: dict[str, Text] = Field(default_factory=dict)


class S3Keys(Strict):
    """The object store behind ``s3a://``. Without keys the AWS default chain decides; without endpoint, AWS itself."""

    endpoint: str | None = None
    access_key: SecretStr | None = None
    secret_key: SecretStr | None = None
    region: Name = "us-east-1"
    path_style: bool = False


class AthenaKeys(Strict):
    """Where ``sql --engine athena`` asks. ``output`` is an s3:// folder for results, the workgroup's own without it;
    ``database`` is the catalog's without it; region and credentials are those of AWS's default chain unless said here.
    """

    workgroup: Name = "primary"
    database: str | None = None
    catalog: Name = "AwsDataCatalog"
    output: str | None = None
    region: str | None = None
    endpoint: str | None = None

    @field_validator("output")
    @classmethod
    def _on_s3(cls, output: str | None) -> str | None:
        if output is not None and not output.startswith("s3://"):
            raise ValueError("results go to s3://bucket/prefix/")
        return output


class CatalogKeys(Strict):
    """Where tables are registered for Athena and others. AWS itself without endpoint; credentials, and without one the
    region, are found as by any AWS tool.
    """

    kind: Literal["glue"] = "glue"
    region: str | None = None
    endpoint: str | None = None
    database: Annotated[str, Field(pattern=DATABASE)] = "lakehouse"


class BronzeKeys(Strict):
    """Kafka -> bronze. ``trigger_seconds`` counts only in continuous mode; 0 starts the next batch at once.
    ``max_objects_per_batch`` is for sources whose records lie in objects.
    """

    trigger_seconds: float = Field(default=1.0, ge=0)
    max_offsets_per_trigger: int = Field(default=200_000, ge=1)
    max_objects_per_batch: int = Field(default=5_000, ge=1)


class SilverKeys(Strict):
    """Bronze -> silver. ``tables_at_once``: so many tables of a batch that is not large are worked on at a time."""

    tables_at_once: int = Field(default=3, ge=1, le=32)


class DeadLetterKeys(Strict):
    """When rejects stop a table: ``max_share`` is a share of one batch, 0 to 1; 1 lets all go (debezium.md R5)."""

    max_share: float = Field(default=0.01, ge=0, le=1)


class MaintenanceKeys(Strict):
    """Upkeep of tables: files that only versions need which are older than ``keep`` go; ``every``: how often a
    continuous run does it by itself, None: never (``replicator maintain`` does it). Both in seconds.
    """

    keep: Duration = Field(default=604_800, validate_default=False)
    every: OptionalDuration = None


class Keys(Strict):
    """Every key of ``base.yaml`` and ``<env>.yaml``. ``formats``: what tables may be kept in; each has its JARs.

    ``runtime``: whose Delta and Hudi a ``spark-submit`` runs with: ours, or those that EMR and Glue have themselves.
    """

    lake: LakeKeys = LakeKeys()
    kafka: KafkaKeys = KafkaKeys()
    connect: ConnectKeys = ConnectKeys()
    targets: dict[str, TargetKeys] = Field(default_factory=dict)
    spark: dict[str, Text] = Field(default_factory=dict)
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
            raise ValueError("bronze and gold are kept in delta: give [delta, hudi], or leave it out")
        return tuple(sorted(set(formats)))
