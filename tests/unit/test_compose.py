"""``infra/compose.yaml`` and ``infra/local`` are one stack: the same services, settings and credentials."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from infra.local import SERVICES, Stack
from infra.local.connect import WORKER
from infra.local.kafka import SMALL
from infra.local.mariadb import BINLOG, CONNECTOR_GRANTS
from infra.local.parts import LOCK
from infra.local.postgres import SERVER
from infra.local.settings import read_settings
from replicator import settings
from replicator.jars import load_lock

FILE = Path(__file__).parents[2] / "infra" / "compose.yaml"
COMPOSE = yaml.safe_load(FILE.read_text())
EVERY = COMPOSE["services"]
SETTINGS = read_settings()


def _config(name: str) -> str:
    return str(COMPOSE["configs"][name]["content"])


def _properties(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_every_local_service_is_there_under_its_name() -> None:
    """Beside the five: the UI, Spark, and the one that makes the bucket."""
    assert set(EVERY) == {*SERVICES, "s3-bucket", "kafka-ui", "spark", "spark-worker"}


@pytest.mark.parametrize("name", EVERY)
def test_every_image_is_pinned_to_a_version(name: str) -> None:
    """`latest` is another stack tomorrow."""
    tag = EVERY[name]["image"].rpartition(":")[2]
    assert re.search(r"\d+[.-]\d+", tag)


@pytest.mark.parametrize("name", EVERY)
def test_ports_are_published_on_loopback_only_and_never_twice(name: str) -> None:
    """The credentials are public."""
    published = [port for service in EVERY.values() for port in service.get("ports", [])]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port) for port in EVERY[name].get("ports", []))
    assert len({port.rsplit(":", 1)[0] for port in published}) == len(published)


def test_what_conf_local_has_as_defaults_is_published() -> None:
    """`replicator run --env local` needs no variable; Kafka tells its clients the address that they came by."""
    local = settings.load(FILE.parents[1] / "conf", "local", {})
    published = {port.rpartition(":")[0] for service in EVERY.values() for port in service.get("ports", [])}
    [target], [source] = local.targets.values(), local.sources
    assert local.s3 is not None
    urls = {url.removeprefix("http://") for url in (local.connect.url, local.s3.endpoint)}
    databases = {f"{server.host}:{server.port}" for server in (target, source.database)}
    assert {local.kafka.bootstrap_servers, *urls, *databases} <= published
    advertised = EVERY["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert f"HOST://{local.kafka.bootstrap_servers}" in advertised


@pytest.mark.parametrize("name", EVERY)
def test_what_a_service_refers_to_exists(name: str) -> None:
    """Dependencies with a health check, or that end; configs and volumes."""
    service = EVERY[name]
    for needed, how in service.get("depends_on", {}).items():
        is_server = "healthcheck" in EVERY[needed]
        assert how == {"condition": "service_healthy" if is_server else "service_completed_successfully"}
    assert {config["source"] for config in service.get("configs", [])} <= set(COMPOSE["configs"])
    sources = {volume.split(":")[0] for volume in service.get("volumes", [])}
    assert {source for source in sources if not source.startswith(".")} <= set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"s3-bucket"}))
def test_every_server_has_a_health_check(name: str) -> None:
    """`docker compose up --wait` returns when the stack serves."""
    assert EVERY[name]["healthcheck"]["test"][0] == "CMD"


def test_what_ends_is_waited_for_by_a_server() -> None:
    """Else `docker compose up --wait` takes its end for a failure, and exits with 1 though all is well."""
    ending = {name for name, service in EVERY.items() if "healthcheck" not in service}
    assert ending <= {needed for service in EVERY.values() for needed in service.get("depends_on", {})}


def test_the_versions_are_those_of_the_locks() -> None:
    """Kafka, PostgreSQL, MariaDB and Spark as tested."""
    versions = {name: service["image"].rpartition(":")[2] for name, service in EVERY.items()}
    assert f"org.apache.kafka:kafka_2.13:{versions['kafka']}" in LOCK["kafka"]
    assert versions["connect"] == versions["kafka"]
    assert any(coordinate.endswith(f":{versions['mariadb']}") for coordinate in LOCK["mariadb"])
    assert any(coordinate.endswith(f":{versions['postgres']}.0") for coordinate in LOCK["postgres"])
    spark, scala = re.match(r"([\d.]+)-scala([\d.]+)-", versions["spark"]).groups()
    assert f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{spark}" in load_lock()


def test_mariadb_has_the_local_binlog_logins_and_grants() -> None:
    """What Debezium needs is the same in both."""
    command, logins = EVERY["mariadb"]["command"], _config("mariadb-logins")
    assert {*BINLOG, f"--server-id={SETTINGS.mariadb_server_id}", "--gtid-strict-mode=ON"} <= set(command)
    assert EVERY["mariadb"]["environment"]["MARIADB_ROOT_PASSWORD"] == SETTINGS.mariadb_root.password
    connector = SETTINGS.mariadb_connector
    assert f"USER '{connector.user}'@'%' IDENTIFIED BY '{connector.password}'" in logins
    assert f"GRANT {CONNECTOR_GRANTS} ON *.* TO '{connector.user}'@'%'" in logins


def test_postgres_has_the_local_settings_and_roles() -> None:
    """Logical decoding on, the owner of the target, and the sample database with its owner."""
    assert {f"--{name}={value}" for name, value in SERVER.items()} <= set(EVERY["postgres"]["command"])
    admin, target = SETTINGS.postgres_admin, SETTINGS.postgres_target
    environment = EVERY["postgres"]["environment"]
    assert (environment["POSTGRES_USER"], environment["POSTGRES_PASSWORD"]) == (admin.user, admin.password)
    assert environment["POSTGRES_DB"] == SETTINGS.postgres_database
    assert f"ROLE \"{target.user}\" LOGIN PASSWORD '{target.password}'" in _config("postgres-roles")
    source = SETTINGS.postgres_source
    assert f"ROLE \"{source.user}\" LOGIN REPLICATION PASSWORD '{source.password}'" in _config("postgres-roles")
    assert f'DATABASE "{SETTINGS.postgres_source_database}" OWNER "{source.user}"' in _config("postgres-roles")


def test_kafka_and_connect_have_the_local_settings() -> None:
    """One-replica topics and quick rebalances, in the spelling of the image."""
    environment = EVERY["kafka"]["environment"]
    spelled = {f"KAFKA_{name.upper().replace('.', '_')}": str(value) for name, value in SMALL.items()}
    assert spelled.items() <= environment.items()
    worker = {name: str(value) for name, value in WORKER.items()}
    assert worker.items() <= _properties(_config("connect-worker")).items()


def test_connect_knows_the_local_logins_of_debezium(tmp_path: Path) -> None:
    """What `${env:...}` in conf/sources refers to."""
    logins = Stack(tmp_path).endpoints().logins()
    assert logins.items() <= EVERY["connect"]["environment"].items()
    assert all(re.fullmatch(str(WORKER["config.providers.env.param.allowlist.pattern"]), name) for name in logins)


def test_s3_has_the_local_keys_and_bucket() -> None:
    """A lake's address differs by host and port only."""
    environment = EVERY["s3"]["environment"]
    assert environment == {"MINIO_ROOT_USER": SETTINGS.s3.user, "MINIO_ROOT_PASSWORD": SETTINGS.s3.password}
    [script] = EVERY["s3-bucket"]["command"]
    assert f"http://s3:9000 {SETTINGS.s3.user} {SETTINGS.s3.password};" in script
    assert script.endswith(f" s3/{SETTINGS.s3_bucket}")


def test_docker_compose_accepts_the_file() -> None:
    """Where the tool is installed it reads the file too; no runtime is needed for that."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed")
    told = subprocess.run(
        [docker, "compose", "-f", FILE, "config", "--format", "json"], capture_output=True, check=True
    )
    assert set(json.loads(told.stdout)["services"]) == set(EVERY)
