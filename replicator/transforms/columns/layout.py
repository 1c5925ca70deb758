"""The layout of a source table's columns in silver: stored names, types and keys.

A source column whose type changed to one that no widening reaches has several stored columns, one per type family:
``price``, ``price__v2`` ... in the order in which the families first occur at the source (debezium.md G2, G3).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from replicator import names
from replicator.debezium.logical_types import Field, spark_type
from replicator.debezium.schema import Form
from replicator.debezium.widening import common_type, family_of_type
from replicator.transforms import history
from replicator.transforms.merge import SYSTEM_COLUMNS

_TRANSIENT_COLUMNS = (
    "_unavailable", "_reject", "_op", "_old", "_old_text", "_left", "_tx", "_at", "_purged", "_is_here", "_rank",
    "_was", "_place", "_newest", "_cut", "_image", "_before", "_goes_on", "_end", "_each",
    "_passes", "_apply_as_deletes", "_inner", "_outer", "_there", "_action", "_stays", "_inserted", "_verdict",
    "_record", "_told", "_came_from",
)  # fmt: skip
DELTA_CDF_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that Delta's change feed adds: a table with such a column of its own, in any case, cannot have the feed.
"""

_OF_HUDI = (
    "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name",
    "_hoodie_operation", "_hoodie_is_deleted",
)  # fmt: skip
OF_SPARK = "_metadata"
"""The column by which Spark shows the file of a row, and Delta finds it: a MERGE into a table with such a column of its
own, in any case, may fail.
"""

_OF_FORMATS = (*DELTA_CDF_COLUMNS, *_OF_HUDI, OF_SPARK)
RESERVED = tuple(name.casefold() for name in (*SYSTEM_COLUMNS, *history.COLUMNS, *_TRANSIENT_COLUMNS, *_OF_FORMATS))
"""Reserved names, casefolded, since no format distinguishes columns by case: our stored and transient columns, and
those that Delta's change feed, Hudi and Spark add. A Delta table with a column of the feed has no feed; one whose
column differs from those only by case could not be read.
"""

_VERSION = re.compile(r"(.+)__v([2-9]|[1-9]\d+)")


@dataclass(frozen=True)
class Layout:
    """The columns of a batch, as stored: name and Spark type in table order, and the keys.

    ``keys_from_row``: the user declared the keys, so those missing in a record's Kafka key are taken from its row.
    Otherwise a record without Kafka key has no key (C1).
    """

    types: Mapping[str, str]
    keys: tuple[str, ...]
    keys_from_row: bool = False

    @cached_property
    def _spelled(self) -> dict[str, str]:
        return index_by_case(version_of(column)[0] for column in self.types)

    def stored_name(self, column: str) -> str:
        """The stored name of a source column in the table's spelling: a source may change the case of a name, and no
        table format distinguishes columns by case (G4).
        """
        return resolve_name(column, self._spelled)

    def home(self, field: Field) -> str | None:
        """The column that stores a field's values; None if there is none: it was not added, or has other types."""
        kind = normalize_type(spark_type(field.logical))
        return next((column for column in self.versions(field.name) if _fits(kind, self.types[column])), None)

    def find_misfit(self, form: Form) -> str | None:
        """The first field, by source name, whose values the table's columns cannot hold. A column that the table does
        not have at all does not count: its values stay in bronze.
        """
        fields = fields_with_columns(form, self.keys)
        return next((f.name for f in fields if self.versions(f.name) and self.home(f) is None), None)

    def versions(self, column: str) -> list[str]:
        """The stored columns of a source column, oldest version first."""
        name = self.stored_name(column)
        found, number = [name] if name in self.types else [], 2
        while (column := version_name(name, number)) in self.types:
            found.append(column)
            number += 1
        return found


def fields_with_columns(form: Form, keys: Collection[str]) -> list[Field]:
    """The fields of a form that have columns: those of the row, and those of Kafka's key that are the table's keys."""
    own = index_by_case(keys)
    return [*form.fields, *(each for each in form.key_fields if stored_name(each.name, own).casefold() in own)]


def unreserved_names(formats: Collection[str]) -> tuple[str, ...]:
    """Column names reserved only by other formats than these (default: Delta); a table's columns may have them."""
    of_delta = () if "delta" in formats or not formats else DELTA_CDF_COLUMNS
    return of_delta if "hudi" in formats else (*of_delta, *_OF_HUDI)


def index_by_case(stored: Iterable[str]) -> dict[str, str]:
    """Stored names by casefolded name, the first of those that differ by case only, for :func:`resolve_name`."""
    found: dict[str, str] = {}
    for name in stored:
        found.setdefault(name.casefold(), name)
    return found


def resolve_name(column: str, known: Mapping[str, str]) -> str:
    """A source column's stored name, in the spelling of the known ones (:func:`index_by_case`)."""
    name = stored_name(column, known)
    return known.get(name.casefold(), name)


def stored_name(column: str, there: Container[str] = ()) -> str:
    """A source column's stored name: encoded, and distinct from our own columns (N-3) and from versions. A name that
    only another format reserves is kept if the table has it: ``there`` are its columns (:func:`index_by_case`).
    """
    encoded = _encoded(column)
    if encoded.casefold() in _OF_FORMATS and encoded.casefold() in there:
        return encoded
    version = _VERSION.fullmatch(encoded)
    if version is not None:
        return f"{version.group(1)}__x5f_v{version.group(2)}"
    return f"_x5f_{encoded[1:]}" if encoded.casefold() in RESERVED else encoded


def stored_names(columns: Iterable[str], there: Iterable[str]) -> tuple[str, ...]:
    """:func:`stored_name` of each column, for a table that has the columns ``there``."""
    own = index_by_case(there)
    return tuple(stored_name(column, own) for column in columns)


_encoded = lru_cache(maxsize=4096)(names.encode)


def version_name(name: str, number: int) -> str:
    """The column name for the n-th type family of a stored name; the first family has the name itself."""
    return name if number == 1 else f"{name}__v{number}"


def version_of(column: str) -> tuple[str, int]:
    """A stored column's first version and its version number."""
    version = _VERSION.fullmatch(column)
    return (column, 1) if version is None else (version.group(1), int(version.group(2)))


def with_column_metadata(rows: DataFrame, layout: Layout, *ours: str) -> DataFrame:
    """Rows whose columns have the source's spelling and their position in the key as metadata (architecture 9.1),
    followed by ``ours`` and the system columns.
    """

    def column(name: str) -> Column:
        metadata: dict[str, object] = {"name": names.decode(name)}
        if name in layout.keys:
            metadata["key"] = layout.keys.index(name)
        return F.col(names.quote_spark(name)).alias(name, metadata=metadata)

    return rows.select(*[column(name) for name in layout.types], *ours, *SYSTEM_COLUMNS)


def key_of(schema: StructType | None) -> tuple[str, ...]:
    """The key columns recorded by :func:`with_column_metadata`, in key order."""
    found = [(field.metadata["key"], field.name) for field in schema or () if "key" in field.metadata]
    return tuple(name for _, name in sorted(found))


def own_key(schema: StructType) -> tuple[str, ...]:
    """:func:`key_of` a silver or history table; empty for gold, whose columns inherit their metadata from silver."""
    return key_of(schema) if "_deleted" in schema.names else ()


def normalize_type(kind: str) -> str:
    """A Spark type as ``DataFrame.dtypes`` spells it."""
    return kind.lower().replace(": ", ":").replace(", ", ",")


def type_family(kind: str) -> str:
    """The family of a type, whether or not its fields are quoted: columns of one family can hold each other's values
    once they are wide enough.
    """
    return family_of_type(kind.replace("`", ""))


def _fits(kind: str, held: str) -> bool:
    if type_family(kind) != type_family(held):
        return False
    wider = common_type(held, kind)
    return type_family(kind) not in ("number", "float") or (
        wider is not None and normalize_type(wider) == normalize_type(held)
    )
