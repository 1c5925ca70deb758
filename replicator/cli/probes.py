"""The checks of ``replicator doctor``. Each returns a short description of what it found, or raises ReplicatorError."""

from __future__ import annotations

import importlib.metadata
import os
import socket
import struct
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from replicator import endpoint, environment, jars
from replicator import s3 as s3_client
from replicator.errors import ConfigError, Unreachable
from replicator.jvm import spark_home, sparkline
from replicator.jvm.java import java_home, java_version, refuse_nameless_user
from replicator.lake import Lake, is_local, local_path
from replicator.leases.s3_register import refuse_unconditional

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from replicator.config.settingkeys import S3Keys, TargetKeys
    from replicator.spec import Model

_SECONDS, _LAST_PORT = 5.0, 65_535
_PYTHONS = (3, 10), (3, 12)
_API_VERSIONS, _CORRELATION = 18, 4711


def python() -> str:
    """Check that the Python version is a tested one."""
    version, (oldest, newest) = sys.version_info[:2], _PYTHONS
    name = f"Python {version[0]}.{version[1]}"
    if not oldest <= version <= newest:
        fix = f"Use Python {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}."
        raise ConfigError(f"{name} is not a tested version.", where=sys.executable, fix=fix)
    return name


def spark() -> str:
    """Check that the installed Spark is of a tested release line, and describe what that line supports."""
    line, installed = sparkline.installed(), importlib.metadata.version("pyspark")
    tested = "" if installed == line.spark else f" (tested: {line.spark})"
    configured = environment.variable("SPARK_HOME")
    is_other = configured is not None and not spark_home.fits(Path(configured), line)
    passed = f"; SPARK_HOME is ignored: {configured} does not contain Spark {line.name}" if is_other else ""
    capabilities = f"tables in {' and '.join(line.formats)}{passed}"
    return f"Spark {installed}{tested}, Scala {line.scala}, Delta {line.delta}; {capabilities}"


def java() -> str:
    """Check that there is a Java that Spark runs on, and a user whom its JVM accepts."""
    home = java_home(environment.variable("JAVA_HOME"))
    refuse_nameless_user()
    return f"Java {java_version(home)} in {home}"


def jar_cache(cache: Path, formats: Sequence[str]) -> str:
    """Check that all JARs of the table formats are in the cache and match the lock."""
    try:
        found = jars.locate(jars.load_lock(sparkline.installed().name, formats), cache)
    except OSError as error:
        fix = "Set REPLICATOR_CACHE to a folder that this user can read."
        raise ConfigError(f"The cache cannot be read: {error.strerror}.", where=str(cache), fix=fix) from error
    return f"{len(found)} verified in {cache}"


def kafka(bootstrap_servers: str, options: Mapping[str, str]) -> str:
    """Check that one of the brokers responds; where connections are encrypted or need a login, that it accepts a
    connection.
    """
    if not bootstrap_servers.strip():
        raise ConfigError("No bootstrap servers are configured.", fix="Set kafka.bootstrap_servers.")
    servers = endpoint.parse_addresses(bootstrap_servers, "Kafka", "Check kafka.bootstrap_servers.")
    plain = options.get("security.protocol", "PLAINTEXT") == "PLAINTEXT"
    reasons = []
    for server in servers:
        refusal = _refusal(server, speak=plain)
        if refusal is None:
            return f"{server} answers" if plain else f"{server} accepts connections (login not tried)"
        reasons.append(f"{server}: {refusal}")
    raise Unreachable(
        f"Kafka does not answer: {'; '.join(reasons)}.",
        fix="Check that the broker runs and kafka.bootstrap_servers is right.",
    )


def connect(url: str, login: tuple[str, str] | None) -> str:
    """Check that Kafka Connect responds, and list its connectors."""
    from replicator.connect.rest import Connect

    names = Connect(url, login=login, timeout=_SECONDS, patience=0.0).list()
    return f"connectors: {', '.join(names) if names else 'none'}"


def target(name: str, keys: TargetKeys, models: Sequence[Model]) -> str:
    """Check that the serving database responds and permits this login to publish these models."""
    from replicator import targets

    return targets.sink(name, keys).check_connection(models)


def objects(root: str, s3: S3Keys | None) -> str:
    """Check that the folder of a sink's objects can be listed."""
    if root.startswith("s3a://"):
        bucket, _, prefix = root.removeprefix("s3a://").partition("/")
        with s3_client.translate_errors(root, "list", "Check that the bucket exists and these keys may list it."):
            found = s3_client.client(s3).list_objects_v2(
                Bucket=bucket, Prefix=f"{prefix}/" if prefix else "", MaxKeys=1
            )
        return f"{root} holds objects" if found["KeyCount"] else f"{root} is empty"
    if not is_local(root):
        return f"{root} is not checked from here"
    folder, fix = local_path(root), "Check `objects`, and that the sink ran."
    try:
        with os.scandir(folder):
            return f"{folder} exists"
    except OSError as error:
        raise ConfigError(f"The folder cannot be read: {error.strerror}.", where=str(folder), fix=fix) from error


def lake(root: str, s3: S3Keys | None, *, leased: bool = True) -> str:
    """Check that a file can be written to the lake and deleted again and, where leases are kept in an object store,
    that it supports conditional writes (F-O3).
    """
    if root.startswith("s3a://"):
        return _object_store(root, s3, leased=leased)
    if not is_local(root):
        return f"{root} is not checked from here"
    return _directory(local_path(root))


def _refusal(server: str, *, speak: bool) -> str | None:
    try:
        _greet(server, speak=speak)
    except OSError as error:
        return error.strerror or str(error)
    except ValueError as error:
        return str(error)
    return None


def _greet(server: str, *, speak: bool) -> None:
    """Connect, and request the API versions: only a Kafka broker returns the correlation id."""
    host, _, port = server.rpartition("://")[2].rpartition(":")  # Kafka's clients accept PLAINTEXT://host:port, too
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        raise ValueError("not a host:port address")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS) as link:
        if not speak:
            return
        request = struct.pack(">hhih", _API_VERSIONS, 0, _CORRELATION, -1)
        link.sendall(struct.pack(">i", len(request)) + request)
        answer = b""
        while len(answer) < 8 and (more := link.recv(8 - len(answer))):
            answer += more
    if len(answer) < 8 or struct.unpack(">ii", answer)[1] != _CORRELATION:
        raise ValueError("the server there is not Kafka")


def _directory(root: Path) -> str:
    try:
        existing = next(folder for folder in (root, *root.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=existing, buffering=0) as file:
            file.write(b"\n")  # creating a file succeeds on a full disk, too
    except OSError as error:
        fix = "Set lake.root to a directory with free space that this user can write to."
        raise ConfigError(f"The lake cannot be written: {error.strerror}.", where=str(root), fix=fix) from error
    return f"{root} is writable" if existing == root else f"{root} can be created"


def _object_store(root: str, s3: S3Keys | None, *, leased: bool) -> str:
    bucket, _, prefix = root.removeprefix("s3a://").partition("/")
    key = "/".join(part for part in (prefix, "_replicator", f"doctor-{uuid.uuid4()}") if part)
    with s3_client.translate_errors(root, "write", "Check that the bucket exists and these keys may write to it."):
        client = s3_client.client(s3)
        client.put_object(Bucket=bucket, Key=key, Body=b"")
        client.delete_object(Bucket=bucket, Key=key)
    if leased:
        refuse_unconditional(client, Lake(root).leases_root())
    return f"{root} is writable"
