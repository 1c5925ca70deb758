"""``targets`` of the configuration as connections of the Postgres sink. Loads pyspark: import it on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator.errors import ConfigError
from replicator.sinks.postgres import PostgresConnection

if TYPE_CHECKING:
    from replicator.settingkeys import TargetKeys


def connection(name: str, target: TargetKeys) -> PostgresConnection:
    """The sink's own value for a target. Raises ConfigError naming the target when host or options are refused."""
    try:
        return PostgresConnection(
            host=target.host,
            port=target.port,
            database=target.database,
            user=target.user,
            password=target.password.get_secret_value(),
            sslmode=target.sslmode,
            options=target.options,
        )
    except ConfigError as error:
        raise ConfigError(error.what, where=f"targets.{name}", mend=error.mend) from error
