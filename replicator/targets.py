"""``targets`` of the configuration -> sinks, by their kind. A kind's dependencies are imported with its class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import registry
from replicator.errors import ConfigError
from replicator.protocols import UNFENCED

if TYPE_CHECKING:
    from replicator.config.settingkeys import TargetKeys
    from replicator.protocols import Fence, Sink


def sink(name: str, target: TargetKeys, fence: Fence = UNFENCED, *, brief: bool = False) -> Sink:
    """Return the sink of a target, made by ``at`` of its kind's class; it writes only while ``fence`` allows it. No
    connection is opened yet. A ``brief`` sink is for read-only looks: it soon reports a server that does not answer.

    Raises ConfigError, naming the target, for an unknown kind and for keys that the kind refuses.
    """
    try:
        made: Sink = registry.load("sink", target.kind).at(
            host=target.host,
            port=target.port,
            database=target.database,
            user=target.user,
            password=target.password.get_secret_value(),
            sslmode=target.sslmode,
            options=target.options,
            fence=fence,
            brief=brief,
        )
    except ConfigError as error:
        raise ConfigError(error.what, where=f"targets.{name}", fix=error.fix) from error
    return made
