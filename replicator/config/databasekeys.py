"""The keys of a source's database, as ``verify`` and ``connect check`` log in to it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, model_validator

from replicator.config.connectorkeys import ONE_DATABASE, PORTS, Kind
from replicator.config.strict import Strict
from replicator.spec import Login


class DatabaseKeys(Strict):
    """The source database, for ``verify`` and ``connect check``: a login that may read its tables, or its catalogs. Set
    the password by an environment variable.

    ``dbname`` is for PostgreSQL and Oracle (its service); ``port`` defaults to the usual one of the server.
    """

    kind: Kind
    host: Annotated[str, Field(min_length=1)]
    port: int | None = Field(default=None, ge=1, le=65535)
    dbname: str = ""
    user: Annotated[str, Field(min_length=1)]
    password: SecretStr = SecretStr("")
    sslmode: Literal["disable", "require", "verify-full"] = "verify-full"

    @model_validator(mode="after")
    def _named(self) -> DatabaseKeys:
        needs_database = self.kind in ONE_DATABASE
        if needs_database and not self.dbname:
            raise ValueError("give dbname: which database of the server has the tables")
        if self.dbname and not needs_database:
            raise ValueError(f"dbname is for PostgreSQL and Oracle, not for {self.kind}")
        return self

    def login(self) -> Login:
        """Return the login as a value of the domain model."""
        port = self.port if self.port is not None else PORTS[self.kind]
        password = self.password.get_secret_value()
        return Login(self.kind, self.host, port, self.user, password, self.dbname, self.sslmode)
