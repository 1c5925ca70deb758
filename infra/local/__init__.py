"""The servers around the replicator as plain processes: Kafka, Kafka Connect with Debezium, MariaDB, PostgreSQL, S3.

    stack = Stack(Path(".cache/stack"))
    endpoints = stack.up(owner=os.getpid())
    ...
    stack.down()

From a shell: ``python -m infra.local up``. Nothing has to be installed: the servers come as JARs and wheels.
"""

from infra.local.endpoints import Database, Endpoints, ObjectStore
from infra.local.stack import SERVICES, Stack, Status

__all__ = ["SERVICES", "Database", "Endpoints", "ObjectStore", "Stack", "Status"]
