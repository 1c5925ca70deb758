"""Where the servers of a stack answer, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Database:
    """A database server on 127.0.0.1 and one login to it."""

    host: str
    port: int
    user: str
    password: str
    database: str


@dataclass(frozen=True)
class ObjectStore:
    """An S3-compatible server (path-style addresses) and the bucket that it holds."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str
    bucket: str


@dataclass(frozen=True)
class Endpoints:
    """Everything a client of the stack needs. A service that is not up keeps the address it will have."""

    kafka: str  # host:port
    connect: str  # URL
    mariadb: Database  # root
    mariadb_connector: Database  # the login for Debezium
    postgres: Database  # the owner of the target schema
    postgres_admin: Database  # superuser
    postgres_source: Database  # the owner of the sample database, with the right to replicate it
    s3: ObjectStore

    def env(self) -> dict[str, str]:
        """The same as variables, as ``eval "$(python -m infra.local env)"`` wants them."""
        return {
            "KAFKA_BOOTSTRAP": self.kafka,
            "CONNECT_URL": self.connect,
            **_variables("MARIADB", self.mariadb),
            **self.logins(),
            **_variables("POSTGRES", self.postgres),
            "POSTGRES_DATABASE": self.postgres.database,
            **_variables("POSTGRES_SOURCE", self.postgres_source),
            "POSTGRES_SOURCE_DATABASE": self.postgres_source.database,
            "S3_ENDPOINT": self.s3.endpoint,
            "S3_BUCKET": self.s3.bucket,
            "S3_ACCESS_KEY": self.s3.access_key,
            "S3_SECRET_KEY": self.s3.secret_key,
            "AWS_ACCESS_KEY_ID": self.s3.access_key,
            "AWS_SECRET_ACCESS_KEY": self.s3.secret_key,
            "AWS_REGION": self.s3.region,
        }

    def logins(self) -> dict[str, str]:
        """The variables that Debezium logs in with."""
        found = {f"MARIADB_CONNECTOR_{key}": value for key, value in _login(self.mariadb_connector).items()}
        return found | {f"POSTGRES_SOURCE_{key}": value for key, value in _login(self.postgres_source).items()}


def _login(server: Database) -> dict[str, str]:
    return {"USER": server.user, "PASSWORD": server.password}


def _variables(prefix: str, server: Database) -> dict[str, str]:
    return {
        f"{prefix}_HOST": server.host,
        f"{prefix}_PORT": str(server.port),
        **{f"{prefix}_{key}": value for key, value in _login(server).items()},
    }
