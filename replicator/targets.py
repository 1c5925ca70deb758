"""``targets`` of the configuration -> sinks, by their kind. What a kind needs is loaded with its class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import registry
from replicator.errors import ConfigError
from replicator.protocols import UNFENCED

if TYPE_CHECKING:
    from replicator.config.settingkeys import TargetKeys
    from replicator.protocols import Fence, Sink


def sink(name: str, target: TargetKeys, fence: Fence = UNFENCED, *, brief: bool = False) -> Sink:
    """The sink of a target, by ``at`` of its kind's class, which writes while the ``fence`` lets it: nothing is reached
    yet. One that is ``brief`` is for who only looks: where nobody answers it says so, soon.

    Raises ConfigError, naming the target, for a kind that does not exist and for keys that the kind refuses.
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
        raise ConfigError(error.what, where=f"targets.{name}", mend=error.mend) from error
    return made
