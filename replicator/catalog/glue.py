"""AWS Glue through boto3: the few calls that a sync makes, with pagination and in batches that Glue accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replicator.awsclient import Service, refusal
from replicator.errors import CatalogRefused

CREATE_BATCH, DELETE_BATCH = 100, 25
"""The greatest numbers of partitions in one call of Glue."""

_PATIENCE: dict[str, Any] = {
    "connect_timeout": 5.0,
    "read_timeout": 60.0,
    "retries": {"mode": "standard", "total_max_attempts": 8},
}
_MISSING, _EXISTS = "EntityNotFoundException", "AlreadyExistsException"


class GlueCatalog:
    """One database of Glue.

    Every method raises Unreachable if Glue does not answer, ConfigError if it denies access, and CatalogRefused if it
    refuses a table's definition.
    """

    def __init__(self, database: str, region: str | None = None, endpoint: str | None = None) -> None:
        self.database = database
        self._client = _GLUE.client(region, endpoint, **_PATIENCE)
        self._fields = frozenset(self._client.meta.service_model.shape_for("TableInput").members)

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return every table and view by its name, in the form of its ``TableInput``; empty if the
        database is missing.
        """
        with _GLUE.translated(self.database):
            pages = self._client.get_paginator("get_tables").paginate(DatabaseName=self.database)
            try:
                found = [table for page in pages for table in page["TableList"]]
            except self._client.exceptions.EntityNotFoundException:
                return {}
        return {each["Name"]: {k: v for k, v in each.items() if k in self._fields} for each in found}

    def exists(self) -> bool:
        """Whether the database exists."""
        with _GLUE.translated(self.database):
            try:
                self._client.get_database(Name=self.database)
            except self._client.exceptions.EntityNotFoundException:
                return False
        return True

    def make(self) -> None:
        """Create the database."""
        with _GLUE.translated(self.database):
            self._client.create_database(DatabaseInput={"Name": self.database})

    def create(self, table: Mapping[str, Any]) -> None:
        """Create a table or view."""
        with _GLUE.translated(self._where(table["Name"])):
            self._client.create_table(DatabaseName=self.database, TableInput=table)

    def update(self, table: Mapping[str, Any]) -> None:
        """Replace the definition of the table of that name."""
        with _GLUE.translated(self._where(table["Name"])):
            self._client.update_table(DatabaseName=self.database, TableInput=table)

    def drop(self, name: str) -> None:
        """Delete a table and its partitions from the catalog; its files stay. Does nothing if it does not exist."""
        with _GLUE.translated(self._where(name)):
            try:
                self._client.delete_table(DatabaseName=self.database, Name=name)
            except self._client.exceptions.EntityNotFoundException:
                return

    def partitions(self, name: str) -> dict[tuple[str, ...], dict[str, Any]]:
        """Return the ``StorageDescriptor`` of each partition of a table, by its values."""
        with _GLUE.translated(self._where(name)):
            pages = self._client.get_paginator("get_partitions").paginate(DatabaseName=self.database, TableName=name)
            return {tuple(each["Values"]): each["StorageDescriptor"] for page in pages for each in page["Partitions"]}

    def add_partitions(self, name: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        """Create partitions (``PartitionInput``); existing ones stay as they are."""
        target = {"DatabaseName": self.database, "TableName": name}
        for some in _chunks(partitions, CREATE_BATCH):
            with _GLUE.translated(self._where(name)):
                answer = self._client.batch_create_partition(**target, PartitionInputList=some)
            self._check(name, answer, _EXISTS)

    def update_partitions(self, name: str, partitions: Sequence[Mapping[str, Any]]) -> None:
        """Replace the definitions of existing partitions."""
        target = {"DatabaseName": self.database, "TableName": name}
        for some in _chunks(partitions, CREATE_BATCH):
            updates = [{"PartitionValueList": each["Values"], "PartitionInput": each} for each in some]
            with _GLUE.translated(self._where(name)):
                answer = self._client.batch_update_partition(**target, Entries=updates)
            self._check(name, answer)

    def remove_partitions(self, name: str, values: Sequence[Sequence[str]]) -> None:
        """Delete partitions from the catalog; their files stay."""
        target = {"DatabaseName": self.database, "TableName": name}
        for some in _chunks(values, DELETE_BATCH):
            partition_values = [{"Values": list(each)} for each in some]
            with _GLUE.translated(self._where(name)):
                answer = self._client.batch_delete_partition(**target, PartitionsToDelete=partition_values)
            self._check(name, answer, _MISSING)

    def _where(self, name: str) -> str:
        return f"{self.database}.{name}"

    def _check(self, name: str, answer: Mapping[str, Any], harmless: str = "") -> None:
        """A batch may succeed partly: Glue reports each failed item."""
        codes = {each.get("ErrorDetail", {}).get("ErrorCode", "?") for each in answer.get("Errors", [])} - {harmless}
        if codes:
            raise CatalogRefused(f"Glue refused partitions: {', '.join(sorted(codes))}", where=self._where(name))


def _chunks(every: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(every), size):
        yield every[start : start + size]


_GLUE = Service(
    "Glue",
    "catalog.region",
    "Grant these credentials the permissions listed in docs/catalog.md.",
    refusal("Glue", "Fix it there, then run again.", CatalogRefused),
)
