"""Kafka Connect with the Debezium connectors.

At its start the log holds one ERROR about ``CloudEventsConverter``: Debezium 3.5's was made for an older Connect. It is
not used here, and nothing else depends on it.
"""

from __future__ import annotations

import http.client
import shutil
from typing import TYPE_CHECKING

from infra.local import jvm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from infra.local.home import Home
    from infra.local.parts import Parts

PLUGINS = ("debezium-mariadb", "debezium-mysql", "debezium-oracle", "debezium-postgres", "debezium-sqlserver")

WORKER: dict[str, str | int] = {
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "offset.storage.topic": "_connect_offsets",
    "offset.storage.partitions": 1,
    "offset.storage.replication.factor": 1,
    "config.storage.topic": "_connect_configs",
    "config.storage.replication.factor": 1,
    "status.storage.topic": "_connect_status",
    "status.storage.partitions": 1,
    "status.storage.replication.factor": 1,
    "offset.flush.interval.ms": 1000,
    "scheduled.rebalance.max.delay.ms": 0,
    "session.timeout.ms": 6000,  # how long the status of a dead worker goes on saying RUNNING
    "heartbeat.interval.ms": 1500,
    "plugin.discovery": "service_load",
    "connector.client.config.override.policy": "All",
    # passwords of connectors stay with the worker: ${env:MARIADB_CONNECTOR_PASSWORD}, ${file:/path:key}
    "config.providers": "env,file",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.env.param.allowlist.pattern": "[A-Z0-9_]+_(USER|PASSWORD)",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


def lay_out_plugins(folder: Path, parts: Parts, place: Callable[[Path, Path], object]) -> None:
    """Make a folder per connector anew in *folder*, whose other content stays; *place* puts a JAR there: a link, or a
    copy for a container.
    """
    for name in PLUGINS:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
        for jar in parts.jars(name):
            place(jar, folder / name / jar.name)


class Connect:
    """One worker in distributed mode: its connectors and their offsets live in Kafka and survive a restart.

    ``secrets`` are variables that connectors may refer to, as ``${env:MARIADB_CONNECTOR_PASSWORD}``.
    """

    name = "connect"
    sections: tuple[str, ...] = ("kafka", *PLUGINS)

    def __init__(self, home: Home, secrets: Mapping[str, str]) -> None:
        self._home, self._secrets = home, secrets
        self.ports: tuple[str, ...] = ("connect",)

    def start(self, parts: Parts) -> None:
        """Lay out the plugins and start the worker. Kafka may still be on its way."""
        folder = self._home.folder(self.name)
        plugins = folder / "plugins"
        (folder / "secrets").mkdir(exist_ok=True)  # a folder that files may be read from has to exist
        lay_out_plugins(plugins, parts, lambda jar, place: place.symlink_to(jar))
        properties = folder / "worker.properties"
        jvm.write_properties(properties, self._properties(plugins))
        main, heap = "org.apache.kafka.connect.cli.ConnectDistributed", ["-Xms96m", "-Xmx512m"]
        worker = jvm.command(parts.java, folder, parts.jars("kafka"), heap, main, properties)
        self._home.process(self.name).start(worker, env=self._secrets)

    def ready(self) -> bool:
        """Whether the worker has joined its group: only then it lists connectors."""
        client = http.client.HTTPConnection("127.0.0.1", self._home.port("connect"), timeout=2)
        try:
            client.request("GET", "/connectors")
            return client.getresponse().status == http.client.OK
        except http.client.HTTPException:
            return False
        finally:
            client.close()

    def finish(self) -> None:
        """Nothing is left to do."""

    def _properties(self, plugins: Path) -> dict[str, str | int]:
        return {
            "bootstrap.servers": f"127.0.0.1:{self._home.port('kafka')}",
            "listeners": f"http://127.0.0.1:{self._home.port('connect')}",
            "rest.advertised.host.name": "127.0.0.1",
            "plugin.path": str(plugins),
            "config.providers.file.param.allowed.paths": str(plugins.parent / "secrets"),
            **WORKER,
        }
