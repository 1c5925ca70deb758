"""The gold star schema in PostgreSQL: staged by COPY, made visible by one transaction (architecture section 4)."""

from replicator.sinks.postgres.connection import PostgresConnection
from replicator.sinks.postgres.retry import Backoff
from replicator.sinks.postgres.sink import PostgresSink

__all__ = ["Backoff", "PostgresConnection", "PostgresSink"]
