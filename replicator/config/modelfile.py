"""``conf/models``: a gold model is one SELECT in ``<name>.sql``, and its constraints in ``<name>.yaml``.

The SELECT names its inputs as ``{placeholder}``, which Spark's own ``spark.sql(query, **inputs)`` resolves; the YAML
file maps each to ``<source>/<database or schema>.<table>`` or another model.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from string import Formatter
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from replicator import names
from replicator.config.checkkeys import (
    ColumnChecks,
    ModelChecks,
    build_checks,
    find_check_errors,
    refuse_boolean_values,
)
from replicator.config.columnkeys import normalize_columns, refuse_duplicates
from replicator.config.lineage import find_lineage_errors, resolve_refresh
from replicator.config.memberkeys import MemberValues, refuse_invalid_member
from replicator.config.postgrestypes import PostgresName, PostgresType
from replicator.config.strict import Strict, check
from replicator.config.topicnames import includes_table
from replicator.config.yamlfile import Document, KeyPath, Problems, read_required, sql_files, yaml_files
from replicator.errors import ConfigError
from replicator.lake import HISTORY
from replicator.spec import OWN_TABLES, Model, ModelColumn, SourceSpec, Target
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from replicator.spec.rules import Check

_SPARK_PARAMETERS = ("self", "sqlQuery", "args")
"""The parameter names of `SparkSession.sql`: an input of that name would be bound to the parameter."""


class NamedColumnKeys(Strict):
    """A column of the model below its name, which is that of the SELECT; ``type`` is its type in Postgres."""

    type: PostgresType
    nullable: bool = True
    description: str = ""
    checks: ColumnChecks = ()

    @model_validator(mode="after")
    def _worded(self) -> NamedColumnKeys:
        refuse_boolean_values(self.checks, self.type)
        return self


class ColumnKeys(NamedColumnKeys):
    """An element of a list of the model's columns."""

    name: PostgresName


Columns = Annotated[
    tuple[ColumnKeys, ...],
    BeforeValidator(
        normalize_columns,
        json_schema_input_type=dict[PostgresName, PostgresType | NamedColumnKeys] | tuple[ColumnKeys, ...],
    ),
    Field(min_length=1),
]


def _refuse_reserved_table(table: str) -> str:
    if table.startswith(OWN_TABLES):
        raise ValueError(f"table names that begin with {OWN_TABLES} are reserved for publishing")
    return table


class PublishKeys(Strict):
    """The table that the model is published to; ``target`` names an entry of ``targets``."""

    target: str
    schema_: PostgresName = Field(alias="schema")
    table: Annotated[PostgresName, AfterValidator(_refuse_reserved_table)]


class ModelKeys(Strict):
    """A file ``<name>.yaml`` of ``conf/models``, beside ``<name>.sql``. ``key`` are the columns that identify a row.
    ``inputs`` maps each placeholder of the SELECT: <source>/<database or schema>.<table>, or a model. ``columns`` are
    those of the SELECT. ``references`` are models that it references: it is published after them. ``publish`` is the
    table that it is published to. ``lineage`` lists for each input the columns that hold the key of the input's row, so
    that only affected rows are computed. ``refresh: full`` computes all of them each time. ``checks`` are rules for its
    rows. ``unknown_member`` is the row that facts point to until their dimension arrives. ``deletion_vectors`` marks
    changed rows instead of rewriting their files: faster where many rows change all over a large table, which some
    engines then cannot read.
    """

    description: str = ""
    key: tuple[str, ...] = Field(min_length=1)
    inputs: dict[str, str]
    columns: Columns
    references: tuple[str, ...] = ()
    publish: PublishKeys | None = None
    lineage: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default_factory=dict)
    refresh: Literal["full", "incremental"] | None = None
    checks: ModelChecks = ()
    unknown_member: MemberValues | None = None
    deletion_vectors: bool | None = None

    @model_validator(mode="after")
    def _consistent(self) -> ModelKeys:
        columns = {column.name: column for column in self.columns}
        refuse_duplicates([column.name for column in self.columns], "the list of columns")
        refuse_duplicates(list(self.key), "the key")
        for name in self.key:
            if name not in columns:
                raise ValueError(f"the key {name!r} is not a column{suggest(name, columns)}")
            if "nullable" in columns[name].model_fields_set and columns[name].nullable:
                raise ValueError(f"the column {name!r} is part of the key and cannot be nullable")
        self.all_checks()
        if self.unknown_member is not None:
            refuse_invalid_member(self.unknown_member, {c.name: c for c in self.columns}, self.key)
        return self

    def all_checks(self) -> tuple[Check, ...]:
        """Return the checks of the columns and those of the rows. Raises ValueError where two have the same name."""
        return tuple(build_checks([(column.name, column.checks) for column in self.columns], self.checks))


def load_models(
    folder: Path,
    sources: Sequence[SourceSpec],
    targets: Sequence[str] | None,
    environment: Mapping[str, str],
    problems: Problems,
) -> tuple[Model, ...]:
    """Return every model of a folder, each after the models that it reads and references.

    Errors become problems: a file without its counterpart, a placeholder without its input, an input, reference or
    target that does not exist, two models that are published to one table, a cycle. *targets* None: their names are not
    known.
    """
    paths = {path.stem: path for path in yaml_files(folder, problems)}
    for path in sql_files(folder):
        if path.stem not in paths:
            problems.add(f"{path.stem}.yaml, which declares its key, inputs and columns, is missing", path)
    found = {}
    for name, path in paths.items():
        document = read_required(path, environment, problems)
        keys = check(ModelKeys, document, problems) if document.values else None
        model = _build_model(name, path, keys, problems) if keys is not None else None
        if model is not None:
            found[name] = (model, document)
    _refuse_conflicts(found, folder, problems)
    by_name = {name: each for name, (each, _) in found.items()}
    for model, document in found.values():
        known = _KnownNames(paths, sources, targets)
        for key, wrong in known.find_broken_references(model):
            problems.add(wrong, document.origin(key))
        for key, wrong in [*find_lineage_errors(model, by_name, sources), *find_check_errors(model, by_name)]:
            problems.add(wrong, document.origin(key))
    return _sort_by_dependencies([model for model, _ in found.values()], folder, problems)


def placeholders(sql: str) -> set[str]:
    """Return the names in braces. Raises ValueError for a brace or a name that Spark could not resolve."""
    found = set()
    for _, name, specification, conversion in Formatter().parse(sql):
        if name is None:
            continue
        if not name.isidentifier() or specification or conversion:
            raise ValueError(f"{{{name}}} is not a placeholder: write {{name}}, and {{{{ for a brace")
        if name in _SPARK_PARAMETERS:
            raise ValueError(f"{{{name}}} is reserved by Spark: rename the input")
        found.add(name)
    return found


def _build_model(name: str, path: Path, keys: ModelKeys, problems: Problems) -> Model | None:
    sql = _read_sql(path, keys, problems)
    if sql is None:
        return None
    columns = tuple(
        ModelColumn(c.name, c.type, c.nullable and c.name not in keys.key, c.description) for c in keys.columns
    )
    publish = keys.publish
    target = None if publish is None else Target(publish.target, publish.schema_, publish.table)
    refresh = resolve_refresh(keys.refresh, keys.inputs, keys.lineage)
    return Model(
        name,
        sql,
        keys.inputs,
        keys.key,
        columns,
        keys.description,
        keys.references,
        target,
        keys.lineage,
        refresh,
        keys.all_checks(),
        keys.unknown_member,
        keys.deletion_vectors,
    )


def _read_sql(path: Path, keys: ModelKeys, problems: Problems) -> str | None:
    """Return the SQL beside a model's file, and check its placeholders against its inputs; None where it cannot be
    read.
    """
    sql_path = path.with_suffix(".sql")
    try:
        sql = sql_path.read_text(encoding="utf-8-sig")
        used = placeholders(sql)
    except OSError as error:
        problems.add(f"{sql_path.name} cannot be read: {error.strerror}", path)
        return None
    except ValueError as error:
        problems.add(f"the placeholders cannot be parsed: {error}", sql_path)
        return None
    for unknown in sorted(used - set(keys.inputs)):
        problems.add(f"{{{unknown}}} is not among the inputs of {path.name}{suggest(unknown, keys.inputs)}", sql_path)
    for unused in sorted(set(keys.inputs) - used):
        problems.add(f"the input {unused!r} is never used in {sql_path.name}{suggest(unused, used)}", path)
    return sql


@dataclass(frozen=True)
class _KnownNames:
    """The names that a model may refer to: other models, tables of the sources, targets (None: not known)."""

    models: Mapping[str, Path]
    sources: Sequence[SourceSpec]
    targets: Sequence[str] | None

    def find_broken_references(self, model: Model) -> Iterator[tuple[KeyPath, str]]:
        """Yield every reference that does not exist: its key in the model's file, and the message."""
        for placeholder, given in model.inputs.items():
            wrong = self._input_error(given)
            if wrong:
                yield ("inputs", placeholder), f"inputs.{placeholder}: {wrong}"
        for index, name in enumerate(model.references):
            if name not in self.models:
                yield ("references", index), f"model {name!r} does not exist{suggest(name, self.models)}"
        target = model.target.connection if model.target is not None else None
        if target is not None and self.targets is not None and target not in self.targets:
            yield ("publish", "target"), f"target {target!r} does not exist{suggest(target, self.targets)}"

    def _input_error(self, given: str) -> str | None:
        name, slash, table = given.partition("/")
        if not slash:
            return None if given in self.models else f"model {given!r} does not exist{suggest(given, self.models)}"
        source = next((s for s in self.sources if s.name == name), None)
        if source is None:
            return f"source {name!r} does not exist{suggest(name, [s.name for s in self.sources])}"
        if not all(table.partition(".")):
            return "a table must be named <source>/<database or schema>.<table>"
        current = table.removesuffix(HISTORY)
        if not includes_table(source, current):
            return f"the source {name!r} does not include {current!r}"
        if current != table and not source.declaration(current).has_history:
            return f"{current} keeps no history: set `stored_as_scd_type: 2` for it in the file of its source"
        return None


def _refuse_conflicts(found: Mapping[str, tuple[Model, Document]], folder: Path, problems: Problems) -> None:
    try:
        names.refuse_case_conflict(found, str(folder))
    except ConfigError as error:
        problems.add(str(error))
    served: dict[tuple[str, ...], str] = {}
    for model, document in found.values():
        if model.target is None:
            continue
        place = (model.target.connection, model.target.schema.casefold(), model.target.table.casefold())
        first = served.setdefault(place, model.name)
        if first != model.name:
            problems.add(f"the model {first!r} is already published there", document.origin(("publish",)))


def _sort_by_dependencies(found: Sequence[Model], folder: Path, problems: Problems) -> tuple[Model, ...]:
    by_name = {model.name: model for model in found}
    needs = {m.name: ({*m.reads, *m.references} & by_name.keys()) for m in found}
    try:
        order = list(TopologicalSorter(needs).static_order())
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        problems.add(f"these models depend on each other: {circle}", folder)
        return ()
    return tuple(by_name[name] for name in order)
