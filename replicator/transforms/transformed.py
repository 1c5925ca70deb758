"""Typed changes of a source table -> changes of the silver table that its ``transform`` makes of it.

Each change is changed by itself, so that any order, repetition and batching of changes ends in the same rows. A row for
which ``where`` does not hold is not in the table: whatever says so is a delete at its own ``_seq`` (:func:`filtered`),
before whichever change it arrives; so is one for which ``as_deletes`` does. A column that is made of one that was not
sent is not known either (debezium.md E4); a filter needs rows that are whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from replicator import gateway, names
from replicator.spec import Transform
from replicator.transforms import as_deletes, hashed, rowwise, versions
from replicator.transforms import casts as casts_of
from replicator.transforms.layout import RESERVED, stored_name, version_of
from replicator.transforms.letters import letter
from replicator.transforms.moved_keys import MOVE_COLUMNS
from replicator.transforms.row_keys import FROM
from replicator.transforms.untyped import is_untyped
from replicator.transforms.versions import Versions

PASSES = "_passes"
"""Of a change: whether the row that it leaves is in the table. Only with a ``where`` or ``as_deletes``."""

_ALWAYS = ("_seq", "_deleted", "_source_ts_ms", "_unavailable", "_reject")
_OURS = (*_ALWAYS, *MOVE_COLUMNS, FROM, PASSES, as_deletes.ENDS)
_TEXT = "string"
_TWO_PARTS = "([^.]+[.][^.]+)$"

Function = Callable[[DataFrame], DataFrame]


class Unfit(ValueError):
    """The transform cannot be done with these columns: what is wrong, as a sentence without its end."""


@dataclass(frozen=True)
class Making:
    """A transform that fits a table's changes, with the user's ``function``, the secret ``key`` of hashes, and the
    ``table`` that dead letters name.

    ``keys`` are the key's columns before the last steps. ``columns`` are what it gives, by stored name: of which column
    before the last steps each is, and its Spark type. ``sources`` says of which columns each is made, ``filtered_by``
    of which the filter is, ``deleted_by`` of which ``as_deletes`` is. ``over`` are columns of which ``as_deletes``
    means the one that has a value, ``passes_over`` those of the filter.
    """

    transform: Transform
    function: Function | None
    key: str
    table: str
    keys: tuple[str, ...]
    columns: Mapping[str, tuple[str, str]]
    sources: Mapping[str, frozenset[str]]
    filtered_by: frozenset[str]
    deleted_by: frozenset[str]
    over: Versions
    passes_over: Versions

    @property
    def types(self) -> dict[str, str]:
        """The columns that it gives."""
        return {name: kind for name, (_, kind) in self.columns.items()}

    @property
    def keys_there(self) -> tuple[str, ...]:
        """The key's columns as it gives them."""
        new = {before: name for name, (before, _) in self.columns.items()}
        return tuple(new[key] for key in self.keys)


def shard_of(topic: str) -> str:
    """What the column that tells shards apart has of a topic: the last two parts of its name."""
    found = re.search(_TWO_PARTS, topic)
    return topic if found is None else found[1]


def fitted(
    transform: Transform, function: Function | None, key: str, table: str, changes: DataFrame, keys: Sequence[str]
) -> Making:
    """The transform for changes such as these. Raises Unfit, NoCondition, ConfigError for names that no table can
    have.
    """
    if transform.shard and stored_name(transform.shard) in changes.columns:
        raise Unfit(f"the source has a column {transform.shard} already")
    probe = gateway.frame(changes.sparkSession, (), changes.schema)
    ended = as_deletes.read_by(transform.as_deletes, probe, _registers(probe)) if transform.as_deletes else frozenset()
    over = versions.read_as_one(probe, F.expr(transform.as_deletes)) if transform.as_deletes else {}
    _refuse_unknown(transform, probe, keys, is_whole=function is None)
    try:
        remade = _refuse_careless(function, _cast(_marked(probe, transform, over), transform, keys, table), keys)
        rows = _stepped(probe, transform, function, keys, table, over)
        whole = {*remade, *(stored_name(name) for name, _ in transform.derive)}
        passes_over = versions.read_as_one(rows, F.expr(transform.where), whole) if transform.where else {}
        made = _passing(rows, transform, passes_over)
        lineage = rowwise.lineage(probe, made).of
    except PySparkException as error:
        raise Unfit(gateway.shortened(error)) from error
    except rowwise.NotRowwise as error:
        raise Unfit(str(error)) from error
    except versions.PartlyRead as error:
        raise Unfit(f"`where` reads a column that has had several types: {error}") from error
    own = _registers(made)
    untyped = next((field.name for field in made.schema if field.name in own and is_untyped(field.dataType)), None)
    if untyped is not None:
        raise Unfit(f"{untyped} has no type: give it one, as in CAST(NULL AS STRING)")
    _refuse_unknown(transform, made, keys, is_whole=True)
    keys = [*keys, stored_name(transform.shard)] if transform.shard else keys
    columns = _given(transform, {name: kind for name, kind in made.dtypes if name in own}, keys)
    names.refuse_case_twins(map(names.decode, columns), f"what the transform makes of {table}")
    known = frozenset(_registers(probe))
    return Making(
        transform,
        function,
        key,
        table,
        tuple(keys),
        columns,
        {name: lineage[before] & known for name, (before, _) in columns.items()},
        lineage.get(PASSES, frozenset()) & known,
        ended,
        over,
        passes_over,
    )


def made(changes: DataFrame, making: Making) -> DataFrame:
    """The changes, one for one, with the columns that the transform gives, and PASSES where some may not be in it."""
    told = making.transform
    rows = _stepped(changes, told, making.function, making.keys, making.table, making.over)
    rows = _passing(rows, told, making.passes_over)
    if told.hashed:
        rows = hashed.with_key(rows, making.key)
    kinds = dict(rows.dtypes)
    values = [
        _rested(F.col(names.spark(before)), before, kinds[before], told).alias(name)
        for name, (before, _) in making.columns.items()
    ]
    unsent = _unsent(making)
    ours = {name: F.col(name) for name in _OURS if name in rows.columns and name != as_deletes.ENDS}
    ours["_unavailable"] = unsent
    if "_old" in ours:
        before = {field.name: field.dataType.simpleString() for field in changes.select("_old.*").schema}
        ours["_old"] = _old(making, before, kinds)
    if told.as_deletes and "_at" in ours:
        lacking = as_deletes.undecided(making.deleted_by)
        undecided = F.when(lacking.isNotNull(), _letter(making.table, "delete_undecided", lacking))
        ours["_reject"] = F.coalesce(ours["_reject"], undecided)
    if told.where and "_at" in ours:
        half = F.when(_is_half(making, unsent), _letter(making.table, "filter_incomplete"))
        ours["_reject"] = F.coalesce(ours["_reject"], half)
    return rows.select(*values, *[value.alias(name) for name, value in ours.items()])


def filtered(changes: DataFrame) -> DataFrame:
    """Changes without PASSES: those that do not pass are deletes."""
    if PASSES not in changes.columns:
        return changes
    leaves = ~F.col(PASSES) & F.col("_reject").isNull()
    replaced = {
        "_deleted": F.col("_deleted") | leaves,
        "_unavailable": F.when(~leaves, F.col("_unavailable")),
    }
    kept = [name for name in changes.columns if name != PASSES]
    return changes.select(*[replaced.get(name, F.col(names.spark(name))).alias(name) for name in kept])


def _stepped(
    changes: DataFrame,
    transform: Transform,
    function: Function | None,
    keys: Sequence[str],
    table: str,
    over: Versions,
) -> DataFrame:
    """What is computed of plain values before the filter: which are deletes, casts, the function, derived columns."""
    rows = _cast(_marked(changes, transform, over), transform, keys, table)
    if function is not None:
        before = set(rows.columns)
        rows = function(rows)
        rows = rows.select(*[F.col(names.spark(c)).alias(c if c in before else stored_name(c)) for c in rows.columns])
    derived = {stored_name(name): F.expr(sql) for name, sql in transform.derive}
    own = list(dict.fromkeys([*_registers(rows), *derived]))
    ours = [F.col(name) for name in rows.columns if name in _OURS]
    rows = rows.select(*[derived.get(name, F.col(names.spark(name))).alias(name) for name in own], *ours)
    if transform.shard:
        rows = rows.select(*map(names.spark, own), _shard().alias(stored_name(transform.shard)), *ours)
    return rows


def _passing(rows: DataFrame, transform: Transform, over: Versions) -> DataFrame:
    """The rows with PASSES, where some may not be in the table."""
    passes = [F.coalesce(F.expr(transform.where).cast("boolean"), F.lit(False))] if transform.where else []
    passes += [~F.col(as_deletes.ENDS)] if transform.as_deletes else []
    return versions.judged(rows, reduce(and_, passes), PASSES, over) if passes else rows


def _marked(changes: DataFrame, transform: Transform, over: Versions) -> DataFrame:
    return as_deletes.marked(changes, transform.as_deletes, over) if transform.as_deletes else changes


def _ends(transform: Transform) -> Column:
    """Whether a change is a delete already, whatever else its row holds."""
    return F.col("_deleted") | F.col(as_deletes.ENDS) if transform.as_deletes else F.col("_deleted")


def _cast(changes: DataFrame, transform: Transform, keys: Sequence[str], table: str) -> DataFrame:
    """A value that is not the same in its new type makes the change a dead letter."""
    if not transform.cast:
        return changes
    held, told = dict(changes.dtypes), casts_of.kinds(changes, _told(transform))
    casts = {name: casts_of.exactly(names.spark(name), held[name], kind) for name, kind in told.items()}
    wrong = F.col("_reject")
    for name, value in casts.items() if "_at" in changes.columns else ():
        lost = F.col(names.spark(name)).isNotNull() & value.isNull()
        reason = "key_undecodable" if name in keys else "type_mismatch"
        matters = lost if name in keys else lost & ~_ends(transform)
        wrong = F.coalesce(wrong, F.when(matters, _letter(table, reason, names.decode(name))))
    casts["_reject"] = wrong
    return changes.select(*[casts.get(c, F.col(names.spark(c))).alias(c) for c in changes.columns])


def _shard() -> Column:
    """The source table that a change is of: the last two parts of its topic's name."""
    found = F.regexp_extract("_at.topic", _TWO_PARTS, 1)
    return F.when(found != "", found).otherwise(F.col("_at.topic"))


def _told(transform: Transform) -> dict[str, str]:
    return {stored_name(name): kind for name, kind in transform.cast}


def _given(transform: Transform, kinds: Mapping[str, str], keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The columns that stay, with what becomes of their names and types; a source column goes with all its versions."""
    only, without = _stored(transform.column_list), _stored(transform.except_column_list)
    changed = _stored((*transform.hashed, *transform.masked))
    renamed = {stored_name(old): stored_name(new) for old, new in transform.rename}
    found: dict[str, tuple[str, str]] = {}
    for name, kind in kinds.items():
        first = version_of(name)[0]
        if name in keys or (first not in without and (not only or first in only)):
            new = renamed.get(first, first) + name.removeprefix(first)
            if new in found:
                raise Unfit(f"two columns would be named {names.decode(new)}")
            found[new] = (name, _TEXT if first in changed else kind)
    return found


def _rested(value: Column, name: str, kind: str, transform: Transform) -> Column:
    """A value as it may rest."""
    first = version_of(name)[0]
    if first in _stored(transform.hashed):
        return hashed.hashed(value, kind)
    return _masked(value.cast("string")) if first in _stored(transform.masked) else value


def _masked(text: Column) -> Column:
    """Letters as ``x`` and ``X``, digits as ``n``. Spark's ``mask`` leaves letters that have no case, and all that are
    two characters to Java; marks are the vowels of some scripts.
    """
    return F.regexp_replace(F.mask(text), r"[[\p{L}\p{M}]&&[^\x00-\x7f]]", "x")


def _unsent(making: Making) -> Column:
    """Names of the columns that are made of one that was not sent."""
    there = [
        F.when(F.arrays_overlap("_unavailable", _texts(sources)), F.lit(name))
        for name, sources in making.sources.items()
        if sources and name not in making.keys_there
    ]
    named = F.array_compact(F.array(*there)) if there else F.array()
    return F.when(F.size("_unavailable") > 0, named.cast("array<string>"))


def _is_half(making: Making, unsent: Column) -> Column:
    """Whether a change does not know all of a row that is to be filtered."""
    asked = F.arrays_overlap("_unavailable", _texts(making.filtered_by)) if making.filtered_by else F.lit(False)
    return ~_ends(making.transform) & F.coalesce((F.size(unsent) > 0) | asked, F.lit(False))


def _old(making: Making, before: Mapping[str, str], kinds: Mapping[str, str]) -> Column:
    """The key that a row had before, as its columns are now; ``before`` are its types as they were sent."""
    casts = _told(making.transform)

    def value(key: str) -> Column:
        if key == stored_name(making.transform.shard or " "):
            return _shard()
        path = f"_old.{names.spark(key)}"
        told = casts_of.exactly(path, before[key], kinds[key]) if key in casts else F.col(path)
        return _rested(told, key, kinds[key], making.transform)

    pairs = zip(making.keys, making.keys_there, strict=True)
    return F.when(F.col("_old").isNotNull(), F.struct(*[value(key).alias(new) for key, new in pairs]))


def _letter(table: str, reason: str, column: str | Column | None = None) -> Column:
    detail = column if isinstance(column, Column) else F.lit(column)
    return letter(table, F.lit(reason), detail=detail, seq=F.col("_seq"), at="_at.")


def _refuse_unknown(transform: Transform, rows: DataFrame, keys: Sequence[str], *, is_whole: bool) -> None:
    """A misspelled name must not let a column through; what is new in ``derive`` is there behind it only."""
    there = {version_of(name)[0] for name in _registers(rows)} | {stored_name(name) for name, _ in transform.derive}
    told = (*transform.hashed, *transform.masked, *transform.column_list, *transform.except_column_list)
    renamed = tuple(name for name, _ in transform.rename)
    wanted = (*told, *renamed) if is_whole else ()
    strange = next((n for n in (*wanted, *(n for n, _ in transform.cast)) if stored_name(n) not in there), None)
    if strange is not None:
        raise Unfit(f"there is no column {strange}")
    lost = _stored((*transform.masked, *transform.except_column_list, *(name for name, _ in transform.derive)))
    key = next((key for key in keys if key in lost), None)
    if key is not None:
        raise Unfit(f"{names.decode(key)} is of the key: it can be renamed, cast and hashed, and nothing else")


def _refuse_careless(function: Function | None, rows: DataFrame, keys: Sequence[str]) -> frozenset[str]:
    """A function gives each row it is given, and leaves its key and what is ours as it is. Gives the others that it
    makes anew.
    """
    if function is None:
        return frozenset()
    probe = gateway.frame(rows.sparkSession, (), rows.schema)
    made = rowwise.lineage(probe, function(probe))
    needed = [name for name in rows.columns if name in keys or name in _OURS]
    lost = next((name for name in needed if made.same.get(name) != name), None)
    if lost is not None:
        raise Unfit(f"the function must leave {names.decode(lost)} as it is")
    new = next((name for name in made.of if name.casefold() in RESERVED and name not in needed), None)
    if new is not None:
        raise Unfit(f"the function may not give a column {new}")
    return frozenset(name for name in made.of if made.same.get(name) != name)


def _registers(rows: DataFrame) -> list[str]:
    return [name for name in rows.columns if name not in _OURS]


def _stored(columns: Sequence[str]) -> frozenset[str]:
    return frozenset(map(stored_name, columns))


def _texts(columns: frozenset[str]) -> Column:
    return F.array(*map(F.lit, sorted(columns)))
