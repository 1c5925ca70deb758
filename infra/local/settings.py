"""The values of ``stack.yaml``, and where the cache of downloads is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Login:
    """A user name and its password."""

    user: str
    password: str


@dataclass(frozen=True)
class Settings:
    """Names and credentials of the stack; they are thrown away with it."""

    mariadb_root: Login
    mariadb_connector: Login
    mariadb_server_id: int
    postgres_admin: Login
    postgres_target: Login
    postgres_database: str
    postgres_source: Login
    postgres_source_database: str
    s3: Login
    s3_region: str
    s3_bucket: str


def read_settings() -> Settings:
    """The settings beside this file."""
    told = yaml.safe_load(Path(__file__).with_name("stack.yaml").read_text(encoding="utf-8"))
    mariadb, postgres, s3 = told["mariadb"], told["postgres"], told["s3"]
    return Settings(
        mariadb_root=Login(**mariadb["root"]),
        mariadb_connector=Login(**mariadb["connector"]),
        mariadb_server_id=mariadb["server_id"],
        postgres_admin=Login(**postgres["admin"]),
        postgres_target=Login(**postgres["target"]),
        postgres_database=postgres["database"],
        postgres_source=Login(**postgres["source"]),
        postgres_source_database=postgres["source_database"],
        s3=Login(s3["access_key"], s3["secret_key"]),
        s3_region=s3["region"],
        s3_bucket=s3["bucket"],
    )


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's variables, and *more*."""
    return {**os.environ, **more}


def preferred_java() -> str | None:
    """$JAVA_HOME."""
    return os.environ.get("JAVA_HOME")
