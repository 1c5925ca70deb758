"""SQL over columns with several type versions: each row is evaluated with the version that has its value.

``price`` in a condition means the column of the source. If silver also has ``price__v2`` (debezium.md G2), a row has a
value in at most one of them: the condition is evaluated over each in its own type, and for a row the result over the
version with its value counts. So the result for a record depends neither on the types that came before or after it, nor
on which of them has the plain name (M2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import product
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import gateway
from replicator.transforms.columns.layout import version_name, version_of
from replicator.transforms.table_transform import rowwise

Versions = Mapping[str, Sequence[str]]
"""The stored columns of each source column that has several, by the first of them; oldest first."""

_TOLD = "_told"


class IncompleteVersions(ValueError):
    """SQL that reads a later version of a source column, but not all versions; the message is a sentence without its
    end.
    """


class TypeConflict(ValueError):
    """SQL whose result type differs between versions of a column; the message, the end of a sentence, names both."""


def multi_version_columns(columns: Collection[str]) -> dict[str, list[str]]:
    """The Versions among some stored columns."""
    found: dict[str, list[str]] = {}
    for first, number in sorted(map(version_of, columns)):
        found.setdefault(first, []).append(version_name(first, number))
    return {first: each for first, each in found.items() if len(each) > 1 and each[0] == first}


def implicit_versions(rows: DataFrame, value: Column, whole: Iterable[str] = ()) -> dict[str, list[str]]:
    """Source columns with several versions of which the SQL reads only the first: it means whichever has a value.
    ``whole`` are first columns that were computed from all versions already. Raises IncompleteVersions,
    rowwise.NotRowwise.
    """
    found = {first: each for first, each in multi_version_columns(rows.columns).items() if first not in set(whole)}
    if not found:
        return {}
    probe = gateway.create_frame(rows.sparkSession, (), rows.schema)
    read = rowwise.lineage(probe, probe.select("*", value.alias(_TOLD))).of[_TOLD]
    for each in found.values():
        unread = [name for name in each if name not in read]
        if unread and read.intersection(each[1:]):
            raise IncompleteVersions(f"it must also read {unread[0]}, as in `coalesce(a, a__v2)`, or only {each[0]}")
    return {first: each for first, each in found.items() if first in read and not read.intersection(each[1:])}


def evaluate(rows: DataFrame, value: Column, name: str, versions: Versions) -> DataFrame:
    """Add the value as column ``name``, evaluated over the version that has a value of each of the ``versions``. Raises
    TypeConflict.
    """
    result = rows.select("*", value.alias(name))
    for chosen in product(*versions.values()):
        swapped = {first: one for first, one in zip(versions, chosen, strict=True) if one != first}
        if swapped:
            result = _over(result, value, name, swapped, versions)
    return result


def _over(rows: DataFrame, value: Column, name: str, swapped: Mapping[str, str], versions: Versions) -> DataFrame:
    """Replace ``name`` in the rows in which all swapped-in versions have values, and no newer version has."""
    there = {**swapped, **{one: first for first, one in swapped.items()}}
    turned = rows.select(*[F.col(names.quote_spark(there.get(c, c))).alias(c) for c in rows.columns])
    asked = turned.select("*", value.alias(_TOLD))
    kind, other = (asked.schema[each].dataType.simpleString() for each in (name, _TOLD))
    if kind != other:
        raise TypeConflict(f"{other} over {', '.join(swapped.values())}")
    applies = [F.col(names.quote_spark(first)).isNotNull() for first in swapped]
    newer = [c for first, one in swapped.items() for c in versions[first][versions[first].index(one) + 1 :]]
    applies += [F.col(names.quote_spark(c)).isNull() for c in newer]
    chosen = F.when(reduce(and_, applies), F.col(_TOLD)).otherwise(F.col(names.quote_spark(name)))
    back = [chosen.alias(c) if c == name else F.col(names.quote_spark(there.get(c, c))).alias(c) for c in rows.columns]
    return asked.select(*back)
