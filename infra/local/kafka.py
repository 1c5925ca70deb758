"""Kafka: one node that is broker and controller (KRaft)."""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid
from typing import TYPE_CHECKING

from infra.local import jvm
from replicator.errors import Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.home import Home
    from infra.local.parts import Parts

SMALL: dict[str, str | int] = {
    "num.partitions": 1,
    "default.replication.factor": 1,
    "min.insync.replicas": 1,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "log.cleaner.dedupe.buffer.size": 2097152,  # the default sets 128 MB aside
    "log.retention.hours": -1,  # a demo that was left alone for a week still has its history
    "num.network.threads": 2,
    "num.io.threads": 2,
}


class Kafka:
    """The broker."""

    name = "kafka"
    sections: tuple[str, ...] = ("kafka",)

    def __init__(self, home: Home) -> None:
        self._home = home
        self.ports: tuple[str, ...] = ("kafka", "kafka-controller")

    def start(self, parts: Parts) -> None:
        """Format the log folder at the first start, then start the broker."""
        folder = self._home.folder(self.name)
        properties, class_path = folder / "server.properties", parts.jars("kafka")
        jvm.write_properties(properties, self._properties(folder))
        if not (folder / "data" / "meta.properties").exists():
            main, arguments = "kafka.tools.StorageTool", ("format", "-t", _cluster_id(), "-c", properties)
            tool = jvm.command(parts.java, folder, class_path, ["-Xmx64m"], main, *arguments)
            done = subprocess.run(tool, check=False, capture_output=True, text=True)
            if done.returncode:
                told = (done.stderr + done.stdout)[-500:]  # a JVM that does not start says why on stdout
                raise Unreachable(f"Kafka's log folder cannot be formatted: {told}", where=str(folder))
        heap = ["-Xms64m", "-Xmx256m"]
        broker = jvm.command(parts.java, folder, class_path, heap, "kafka.Kafka", properties)
        self._home.process(self.name).start(broker)

    def ready(self) -> bool:
        """Whether the broker takes connections: it opens its port last."""
        with socket.create_connection(("127.0.0.1", self._home.port("kafka")), timeout=1):
            return True

    def finish(self) -> None:
        """Nothing is left to do."""

    def _properties(self, folder: Path) -> dict[str, str | int]:
        broker, controller = (f"127.0.0.1:{self._home.port(name)}" for name in self.ports)
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{broker}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(folder / "data"),
            **SMALL,
        }


def _cluster_id() -> str:
    """A random id as Kafka writes them; one that starts like a flag would confuse its tool."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return "A" + text[1:] if text.startswith("-") else text
