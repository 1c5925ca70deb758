"""Binding of a ``transform`` to a table's changes: validation, and the resulting columns, from the schema alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from replicator import names
from replicator.jvm import causes, gateway
from replicator.spec import Transform
from replicator.transforms.columns.layout import RESERVED, index_by_case, stored_name, version_of
from replicator.transforms.columns.unsupported_types import has_null_type
from replicator.transforms.table_transform import as_deletes, rowwise, steps, versions
from replicator.transforms.table_transform.steps import PASSES, Function
from replicator.transforms.table_transform.versions import Versions

_HIDDEN = "string"
"""The type of hashed or masked columns."""


class InvalidTransform(ValueError):
    """The transform does not fit these columns; the message is a sentence without its end."""


@dataclass(frozen=True)
class BoundTransform:
    """A transform bound to a table's changes, with the user's ``function``, the secret ``key`` of hashes, and the
    ``table`` named in dead letters.

    ``keys`` are the key columns before the last steps. ``columns`` are the resulting columns, by stored name: the
    column before the last steps, and the Spark type of each. ``sources`` are the columns that each is computed from,
    ``filtered_by`` those that the filter reads, ``deleted_by`` those that ``as_deletes`` reads. ``over`` are columns
    with several versions, of which ``as_deletes`` reads the one that has a value; ``passes_over`` those of the filter.
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
        """The types of the resulting columns."""
        return {name: kind for name, (_, kind) in self.columns.items()}

    @property
    def keys_there(self) -> tuple[str, ...]:
        """The key columns in the result."""
        new = {before: name for name, (before, _) in self.columns.items()}
        return tuple(new[key] for key in self.keys)


def bind(
    transform: Transform, function: Function | None, key: str, table: str, changes: DataFrame, keys: Sequence[str]
) -> BoundTransform:
    """Bind the transform to changes of this schema. Raises InvalidTransform, InvalidCondition, and ConfigError for
    names that no table can have.
    """
    if transform.shard and stored_name(transform.shard) in changes.columns:
        raise InvalidTransform(f"the source already has a column {transform.shard}")
    probe = gateway.create_frame(changes.sparkSession, (), changes.schema)
    deleted_by, over = _delete_inputs(transform, probe)
    _refuse_unknown(transform, probe, keys, is_whole=function is None)
    with _translate_errors():
        remade = _refuse_unsafe_function(
            function,
            steps.cast(steps.mark_deletes(probe, transform, over), transform, keys, table),
            keys,
            transform,
        )
        rows = steps.apply_steps(probe, transform, function, keys, table, over)
        passes_over = _filter_versions(transform, rows, remade)
        made = steps.with_passes(rows, transform, passes_over)
        lineage = rowwise.lineage(probe, made).of
    _refuse_untyped(made)
    _refuse_unknown(transform, made, keys, is_whole=True)
    keys = [*keys, stored_name(transform.shard)] if transform.shard else keys
    own = steps.row_columns(made)
    columns = _output_columns(transform, {name: kind for name, kind in made.dtypes if name in own}, keys)
    names.refuse_case_conflict(map(names.decode, columns), f"the result of the transform of {table}")
    known = frozenset(steps.row_columns(probe))
    return BoundTransform(
        transform,
        function,
        key,
        table,
        tuple(keys),
        columns,
        sources={name: lineage[before] & known for name, (before, _) in columns.items()},
        filtered_by=lineage.get(PASSES, frozenset()) & known,
        deleted_by=deleted_by,
        over=over,
        passes_over=passes_over,
    )


def _delete_inputs(transform: Transform, probe: DataFrame) -> tuple[frozenset[str], Versions]:
    """The columns that ``as_deletes`` reads, and those with several versions of which it reads the one with a value."""
    if not transform.as_deletes:
        return frozenset(), {}
    read = as_deletes.columns_read(transform.as_deletes, probe, steps.row_columns(probe))
    return read, versions.implicit_versions(probe, F.expr(transform.as_deletes))


def _filter_versions(transform: Transform, rows: DataFrame, remade: frozenset[str]) -> Versions:
    """The columns with several versions of which the filter reads the one with a value, without those that are
    ``remade`` or derived.
    """
    if not transform.where:
        return {}
    whole = remade | steps.to_stored_names(dict(transform.derive), steps.known_names(transform, rows.columns))
    return versions.implicit_versions(rows, F.expr(transform.where), whole)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of Spark and of the plan checks into InvalidTransform."""
    try:
        yield
    except PySparkException as error:
        raise InvalidTransform(causes.summarize(error)) from error
    except rowwise.NotRowwise as error:
        raise InvalidTransform(str(error)) from error
    except versions.IncompleteVersions as error:
        raise InvalidTransform(f"`where` reads a column that has had several types: {error}") from error


def _output_columns(transform: Transform, kinds: Mapping[str, str], keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The resulting columns with their former names and types; a source column is left out with all its versions."""
    there = index_by_case(version_of(name)[0] for name in kinds)
    free = index_by_case(steps.known_names(transform, there.values()))
    told = (transform.column_list, transform.except_column_list, (*transform.hashed, *transform.masked))
    only, without, changed = (steps.to_stored_names(each, there.values()) for each in told)
    renamed = {stored_name(old, there): stored_name(new, free) for old, new in transform.rename}
    found: dict[str, tuple[str, str]] = {}
    for name, kind in kinds.items():
        first = version_of(name)[0]
        if name in keys or (first not in without and (not only or first in only)):
            new = renamed.get(first, first) + name.removeprefix(first)
            if new in found:
                raise InvalidTransform(f"two columns would be named {names.decode(new)}")
            found[new] = (name, _HIDDEN if first in changed else kind)
    return found


def _refuse_unknown(transform: Transform, rows: DataFrame, keys: Sequence[str], *, is_whole: bool) -> None:
    """Refuse unknown names: a misspelled one must not let a column through. Columns new in ``derive`` exist only after
    it.
    """
    own = {version_of(name)[0] for name in steps.row_columns(rows)}
    there = own | steps.to_stored_names(dict(transform.derive), steps.known_names(transform, own))
    told = (*transform.hashed, *transform.masked, *transform.column_list, *transform.except_column_list)
    renamed = tuple(name for name, _ in transform.rename)
    wanted = (*told, *renamed) if is_whole else ()
    strange = next(
        (n for n in (*wanted, *dict(transform.cast)) if not steps.to_stored_names([n], there) <= there), None
    )
    if strange is not None:
        raise InvalidTransform(f"column {strange} does not exist")
    lost = steps.to_stored_names((*transform.masked, *transform.except_column_list, *dict(transform.derive)), own)
    key = next((key for key in keys if key in lost), None)
    if key is not None:
        raise InvalidTransform(f"{names.decode(key)} is a key column: it can only be renamed, cast or hashed")


def _refuse_untyped(rows: DataFrame) -> None:
    own = steps.row_columns(rows)
    untyped = next((field.name for field in rows.schema if field.name in own and has_null_type(field.dataType)), None)
    if untyped is not None:
        raise InvalidTransform(f"{untyped} has no type: cast it, as in CAST(NULL AS STRING)")


def _refuse_unsafe_function(
    function: Function | None, rows: DataFrame, keys: Sequence[str], transform: Transform
) -> frozenset[str]:
    """Refuse a function that drops or adds rows, or changes the key or our own columns; return the columns that it
    computes.
    """
    if function is None:
        return frozenset()
    probe = gateway.create_frame(rows.sparkSession, (), rows.schema)
    made = rowwise.lineage(probe, function(probe))
    needed = [name for name in rows.columns if name in keys or name in steps.CHANGE_COLUMNS]
    lost = next((name for name in needed if made.same.get(name) != name), None)
    if lost is not None:
        raise InvalidTransform(f"the function must leave {names.decode(lost)} unchanged")
    there = {*rows.columns, *transform.free}
    ours = {*RESERVED, transform.shard.casefold()} - {""}
    new = next((name for name in made.of if name.casefold() in ours and name not in there), None)
    if new is not None:
        raise InvalidTransform(f"the function must not return a column {new}")
    return frozenset(name for name in made.of if made.same.get(name) != name)
