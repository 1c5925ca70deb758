"""The keys of a ``--declare`` file: tables, and the columns that even bronze does not keep in clear."""

from __future__ import annotations

import re

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator

from replicator.config import conditions, tablekeys
from replicator.config.columnkeys import ColumnName, refuse_duplicates
from replicator.config.shapekeys import ShapeKeys
from replicator.config.strict import Strict
from replicator.config.tablekeys import TableKeys, TableName
from replicator.spec import Declaration, Mask

_SHORTEST_KEY = 16


class MaskKeys(Strict):
    """Columns of a table that bronze keeps as hashes only, or not at all."""

    hash: tuple[ColumnName, ...] = ()
    drop: tuple[ColumnName, ...] = ()

    @model_validator(mode="after")
    def _one_of(self) -> MaskKeys:
        refuse_duplicates([*self.hash, *self.drop], "mask_before_bronze")
        if not (self.hash or self.drop):
            raise ValueError("give columns to hash or to drop")
        return self


class DeclareKeys(Strict):
    """A ``--declare`` file: tables, and optionally the source that they belong to; ``hash_key`` is the secret of hashed
    columns: set it by an environment variable. ``mask_before_bronze`` lists the columns that even bronze does not keep
    in clear.
    """

    name: str | None = Field(default=None, validation_alias=AliasChoices("name", "source"))
    tables: dict[TableName, TableKeys] = Field(default_factory=dict)
    hash_key: SecretStr | None = None
    mask_before_bronze: dict[TableName, MaskKeys] = Field(default_factory=dict)

    @field_validator("hash_key")
    @classmethod
    def _long(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key.get_secret_value()) < _SHORTEST_KEY:
            raise ValueError(f"the key has fewer than {_SHORTEST_KEY} characters: it could be guessed")
        return key

    @model_validator(mode="after")
    def _keyed(self) -> DeclareKeys:
        hashed = [name for name, table in self.tables.items() if table.transform is not None and table.transform.hash]
        hashed += [name for name, mask in self.mask_before_bronze.items() if mask.hash]
        if self.hash_key is None and hashed:
            raise ValueError(
                f"{hashed[0]} has hashed columns: give hash_key: ${{SOME_VARIABLE}}, a secret of the source"
            )
        return self

    @model_validator(mode="after")
    def _asking(self) -> DeclareKeys:
        for name, table in self.tables.items():
            tablekeys.refuse_undeclared_columns(name, table, self._shape(table))
            if table.apply_as_deletes is not None:
                conditions.refuse_masked_column(table.apply_as_deletes, name, self._hidden(name, table.shards))
        return self

    @model_validator(mode="after")
    def _masking(self) -> DeclareKeys:
        for name in self.mask_before_bronze:
            if self._shape(self.tables.get(name, TableKeys())).is_router:
                raise ValueError(
                    f"mask_before_bronze of {name}: an event of the outbox router has a payload, and no columns to "
                    "hide: leave the values out of the payload where it is written"
                )
        return self

    def _shape(self, table: TableKeys) -> ShapeKeys:
        return table

    def _hidden(self, name: str, shards: str | None) -> list[str]:
        """Return the columns that bronze does not keep in clear, of the table or of any of its shards."""
        masks = self.mask_before_bronze.items()
        selected = [mask for table, mask in masks if table == name or (shards and re.fullmatch(shards, table))]
        return [column for mask in selected for column in (*mask.hash, *mask.drop)]

    @field_validator("tables")
    @classmethod
    def _apart(cls, tables: dict[str, TableKeys]) -> dict[str, TableKeys]:
        refuse_duplicates(list(tables), "the list of tables")
        return tables

    def secret(self) -> str:
        """Return the key of hashed columns; '' where there is none."""
        return "" if self.hash_key is None else self.hash_key.get_secret_value()

    def masks(self) -> tuple[Mask, ...]:
        """Return the columns that bronze does not keep in clear, as values of the domain model."""
        return tuple(Mask(name, keys.hash, keys.drop) for name, keys in self.mask_before_bronze.items())

    def declarations(self) -> tuple[Declaration, ...]:
        """Return the tables as values of the domain model."""
        return tuple(tablekeys.build_declaration(name, table) for name, table in self.tables.items())
