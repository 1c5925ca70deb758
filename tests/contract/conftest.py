"""A schema of its own on the stack's Postgres, and a lake on each kind of store that keeps leases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from psycopg2 import sql

from replicator.leases.file_register import FileRegister
from replicator.leases.s3_register import S3Register
from replicator.operate.lock import LeaseOptions
from replicator.sinks.postgres import PostgresConnection, PostgresSink
from tests.contract.lease_place import Place
from tests.contract.serving import QUICK, Served

if TYPE_CHECKING:
    from tests.contract.s3_server import S3Server


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


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    from tests.contract.s3_server import S3Server

    server = S3Server()
    yield server
    server.stop()


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "disk":
        return Place(str(tmp_path), LeaseOptions(), lambda path: FileRegister(Path(path)))
    from tests.contract.s3_server import BUCKET

    server: S3Server = request.getfixturevalue("s3")
    root = f"s3a://{BUCKET}/{uuid4().hex}"
    return Place(root, LeaseOptions(s3=server.keys), lambda path: S3Register(server.client, path))
