"""A schema of its own on the stack's Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from psycopg2 import sql

from replicator.sinks.postgres import PostgresConnection, PostgresSink
from tests.contract.serving import QUICK, Served


@pytest.fixture
def postgres(request: pytest.FixtureRequest) -> Iterator[Served]:
    """A schema of its own on the stack's Postgres, dropped afterwards."""
    server = request.getfixturevalue("serving").postgres
    connection = PostgresConnection(
        server.host,
        server.port,
        server.database,
        server.user,
        server.password,
        sslmode="disable",
    )
    schema = f"sink_{uuid4().hex[:12]}"
    served = Served(PostgresSink(connection, backoff=QUICK), schema, connection)
    yield served
    served.run(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


@pytest.fixture
def admin(request: pytest.FixtureRequest, postgres: Served) -> Served:
    """The superuser on the same schema: it makes roles, and what the sink's role may not."""
    login = request.getfixturevalue("serving").postgres_admin
    return replace(postgres, connection=replace(postgres.connection, user=login.user, password=login.password))
