"""Rows and keys, parsed from the texts of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from replicator import names
from replicator.debezium import quoted, texts, types
from replicator.debezium.logical import Field


@dataclass(frozen=True)
class Struct:
    """The ``fields`` of what a ``json`` text has at a ``path``, parsed into a column of this ``name``."""

    name: str
    json: str
    path: tuple[str, ...]
    fields: Sequence[Field]

    def parsed(self) -> Column:
        """Every field in its wire type."""
        return self._read({field.name: types.wire_type(field.logical) for field in self.fields})

    def text(self, *, whole: bool) -> Column | None:
        """The fields that are more than a text as STRING, to see whether something was there: read where the parsed
        struct does not show it, or in every row. None: there are none.
        """
        odd = {field.name: field.logical for field in self.fields if not texts.shows_itself(field.logical)}
        if not odd:
            return None
        read = self._read(dict.fromkeys(odd, "STRING"))
        if whole:
            return read
        lacking = [texts.lacks_text(logical, F.col(self.name).getField(name)) for name, logical in odd.items()]
        return F.when(F.col(self.name).isNotNull() & reduce(or_, lacking), read)

    def bare(self) -> dict[str, Column]:
        """What must be quoted, as the readings of ``debezium/quoted.py`` find it, each under its own name; where none
        of it looks so, NULL.
        """
        asked = {field.name: quoted.readings(field.logical) for field in self.fields if quoted.must_be(field.logical)}
        found: dict[str, Column] = {}
        for reading in dict.fromkeys(each for readings in asked.values() for each in readings):
            kinds = {name: readings[reading] for name, readings in asked.items() if reading in readings}
            doubts = [quoted.looks_so(reading, F.col(self.name).getField(name)) for name in kinds]
            found[f"{self.name}_{reading}"] = F.when(reduce(or_, doubts), self._read(kinds))
        return found

    def _read(self, kinds: Mapping[str, str]) -> Column:
        ddl = f"STRUCT<{', '.join(f'{names.spark(name)}: {kind}' for name, kind in kinds.items())}>"
        for step in reversed(self.path):
            ddl = f"STRUCT<{names.spark(step)}: {ddl}>"
        return reduce(lambda column, step: column[step], self.path, F.from_json(F.col(self.json), ddl))
