"""A name in a configuration -> a class, imported on demand. The complete list of what is supported."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal

from replicator.errors import ConfigError
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["control", "database", "format", "outlet", "sink", "source"]

CLASSES: Mapping[Kind, Mapping[str, str]] = {
    "control": {
        "json": "replicator.formats.control:JsonControl",
        "memory": "replicator.formats.control:MemoryControl",
    },
    "database": {
        "mariadb": "replicator.databases.mysql:source",
        "mysql": "replicator.databases.mysql:source",
        "postgresql": "replicator.databases.postgresql:source",
    },
    "format": {
        "delta": "replicator.formats.delta:DeltaFormat",
        "hudi": "replicator.formats.hudi:HudiFormat",
        "memory": "replicator.formats.memory:MemoryFormat",
    },
    "outlet": {
        "kafka": "replicator.sinks.kafka:KafkaOutlet",
        "memory": "replicator.sinks.memory_outlet:MemoryOutlet",
    },
    "sink": {
        "memory": "replicator.sinks.memory:MemorySink",
        "postgres": "replicator.sinks.postgres:PostgresSink",
    },
    "source": {
        "kafka": "replicator.sources.kafka:KafkaSource",
        "objects": "replicator.sources.objects:ObjectsSource",
        "recorded": "replicator.sources.recorded:RecordedSource",
    },
}


def check(kind: Kind, name: str) -> None:
    """Raise ConfigError, with the nearest spelling, for a name that is not in the list; imports nothing."""
    if name not in CLASSES[kind]:
        raise ConfigError(f"{kind} {name!r} does not exist{suggest(name, CLASSES[kind])}")


def load(kind: Kind, name: str) -> Any:
    """Return the class of that name. Raises ConfigError, with the nearest spelling, for a name that is
    not in the list.
    """
    check(kind, name)
    module, _, attribute = CLASSES[kind][name].partition(":")
    return getattr(importlib.import_module(module), attribute)
