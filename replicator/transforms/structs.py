"""Parsing of rows and keys from JSON: by Spark's parser, or for many records by :class:`MemberStruct`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import field_text, json_members, quoting, types
from replicator.debezium.decoding import FROM_JSON_OPTIONS
from replicator.debezium.logical_types import Field
from replicator.jvm import expressions


@dataclass(frozen=True)
class Struct:
    """The ``fields`` at a ``path`` in the JSON column ``json``, parsed into a column of this ``name``."""

    name: str
    json: str
    path: tuple[str, ...]
    fields: Sequence[Field]

    def parsed(self) -> Column:
        """All fields in their wire types."""
        return self._read(self.kinds)

    @property
    def kinds(self) -> dict[str, str]:
        """The wire type of each field."""
        return {field.name: types.wire_type(field.logical) for field in self.fields}

    def text(self, *, whole: bool) -> Column | None:
        """The fields that are not read as text, as STRING, to see whether they were sent: read only where the parsed
        struct does not show it, or with ``whole`` in every row. None if there are no such fields.
        """
        odd = {field.name: field.logical for field in self.fields if not field_text.is_read_as_text(field.logical)}
        if not odd:
            return None
        read = self._read(dict.fromkeys(odd, "STRING"))
        if whole:
            return read
        lacking = [field_text.needs_text(logical, F.col(self.name).getField(name)) for name, logical in odd.items()]
        return F.when(F.col(self.name).isNotNull() & expressions.any_of(lacking), read)

    def unquoted(self) -> dict[str, Column]:
        """The fields that must be quoted, as read by the probes of ``debezium/quoting.py``, one column per probe; NULL
        if no field looks unquoted.
        """
        asked = {
            field.name: quoting.probe_types(field.logical)
            for field in self.fields
            if quoting.is_required(field.logical)
        }
        found: dict[str, Column] = {}
        for reading in dict.fromkeys(each for readings in asked.values() for each in readings):
            kinds = {name: readings[reading] for name, readings in asked.items() if reading in readings}
            doubts = [quoting.is_worth_probing(reading, F.col(self.name).getField(name)) for name in kinds]
            found[f"{self.name}_{reading}"] = F.when(expressions.any_of(doubts), self._read(kinds))
        return found

    def _read(self, kinds: Mapping[str, str]) -> Column:
        ddl = f"STRUCT<{', '.join(f'{names.quote_spark(name)}: {kind}' for name, kind in kinds.items())}>"
        for step in reversed(self.path):
            ddl = f"STRUCT<{names.quote_spark(step)}: {ddl}>"
        return reduce(
            lambda column, step: column[step], self.path, F.from_json(F.col(self.json), ddl, FROM_JSON_OPTIONS)
        )


@dataclass(frozen=True)
class MemberStruct(Struct):
    """A struct whose fields ``debezium/json_members.py`` extracts; records that it does not handle go to Spark's
    parser. Extracted fields need no second look at their text: a number is there or nothing is, and a string had its
    quotes.
    """

    @staticmethod
    def if_supported(struct: Struct) -> Struct:
        """The struct, as a MemberStruct if its fields can be extracted."""
        can = json_members.is_supported(struct.path, struct.kinds)
        return MemberStruct(struct.name, struct.json, struct.path, struct.fields) if can else struct

    @property
    def members(self) -> str:
        """The column with the extracted members, before anything is parsed."""
        return f"{self.name}_members"

    @property
    def is_extracted(self) -> str:
        """The column that says, after parsing, whether the members were extracted."""
        return f"{self.name}_is_told"

    def extract(self, records: DataFrame) -> Column:
        """The extracted members of records, as the column ``members``."""
        return json_members.extract(records, self.json, self.path, self.kinds).alias(self.members)

    def parsed(self) -> Column:
        """All fields in their wire types, of a record with its ``members``."""
        found = F.col(self.members)
        return F.when(found.isNotNull(), json_members.to_struct(found, self.kinds)).otherwise(super().parsed())

    def text(self, *, whole: bool) -> Column | None:
        """As of any struct; NULL where it was told."""
        read = super().text(whole=whole)
        return None if read is None else F.when(~F.col(self.is_extracted), read)

    def unquoted(self) -> dict[str, Column]:
        """As of any struct; NULL where it was told."""
        return {name: F.when(~F.col(self.is_extracted), reading) for name, reading in super().unquoted().items()}
