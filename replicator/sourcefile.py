"""``conf/sources/*.yaml`` and ``--declare`` files: one Debezium connector each, and what is declared of its tables.

name: shop                      # the connector's topic.prefix
include: [sales.orders]         # only these tables; without it every topic `shop.*`
tables:
  sales.orders:
    columns: {id: int, placed: date, total: "decimal(10,2)"}
    keys: [id]
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, field_validator, model_validator

from replicator import names
from replicator.debezium.logical import parse_logical
from replicator.errors import ConfigError
from replicator.spec import Column, Declaration, SourceSpec
from replicator.strict import Strict, check
from replicator.yamlfile import Document, Problems, nearest, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PLACEHOLDER = "__debezium_unavailable_value"

# Client options that change how a broker is reached, never what is read: offsets, groups and loss are ours.
_OPTIONS = frozenset(
    {
        "security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.client.callback.handler.class",
        "sasl.kerberos.service.name", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
        "ssl.truststore.certificates", "ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type",
        "ssl.key.password", "ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.protocol",
        "client.id", "client.dns.lookup", "client.rack", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes",
        "max.partition.fetch.bytes", "max.poll.records", "metadata.max.age.ms", "connections.max.idle.ms",
        "reconnect.backoff.ms", "reconnect.backoff.max.ms", "request.timeout.ms", "retry.backoff.ms",
        "default.api.timeout.ms", "receive.buffer.bytes", "session.timeout.ms", "socket.connection.setup.timeout.ms",
    }
)  # fmt: skip

# A JAAS entry names a class to load: one that looks names up in a directory would run a stranger's code.
_LOGIN_MODULES = (
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    "com.sun.security.auth.module.Krb5LoginModule",
    "software.amazon.msk.auth.iam.IAMLoginModule",
)
_CALLBACK_HANDLERS = ("software.amazon.msk.auth.iam.IAMClientCallbackHandler",)


def allowed(options: dict[str, str]) -> dict[str, str]:
    """The options, if every one is a client option that cannot change what is read. Raises ValueError."""
    for option, value in options.items():
        if option not in _OPTIONS:
            raise ValueError(f"the Kafka option {option!r} is not allowed{nearest(option, _OPTIONS)}")
        if option == "sasl.jaas.config" and not re.fullmatch(_jaas(), value.strip(), re.DOTALL):
            raise ValueError(f"{option} must be one entry of {', '.join(_LOGIN_MODULES)}")
        if option == "sasl.client.callback.handler.class" and value not in _CALLBACK_HANDLERS:
            raise ValueError(f"{option} must be {', '.join(_CALLBACK_HANDLERS)}")
    return options


def _jaas() -> str:
    modules = "|".join(re.escape(module) for module in _LOGIN_MODULES)
    return rf'(?:{modules})\s+(?:required|requisite|sufficient|optional)(?:\s+[\w.]+=(?:"[^"]*"|[^\s";]+))*\s*;'


def _logical(text: str) -> str:
    try:
        parse_logical(text)
    except ConfigError as error:
        raise ValueError(f"{error.what}. {error.mend or ''}".rstrip(" .")) from error
    return text


def _two_parts(name: str) -> str:
    database, dot, table = name.partition(".")
    if not (database and dot and table):
        raise ValueError("a table is named <database or schema>.<table>")
    return name


def listed(value: Any) -> Any:
    """Columns in either notation as a list: ``{id: int}``, ``{id: {type: int}}`` or ``[{name: id, type: int}]``."""
    if not isinstance(value, dict):
        return value
    return [{"name": n, **t} if isinstance(t, dict) else {"name": n, "type": t} for n, t in value.items()]


def single_names(found: list[str], what: str) -> None:
    """Raise ValueError when a name is there twice, or again in another case."""
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{what} has {twice!r} twice")
    try:
        names.refuse_case_twins(found, what)
    except ConfigError as error:
        raise ValueError(str(error)) from error


Logical = Annotated[str, AfterValidator(_logical)]
TableName = Annotated[str, AfterValidator(_two_parts)]
ColumnName = Annotated[str, Field(min_length=1)]


class ColumnKeys(Strict):
    """A declared column; ``type`` is a logical type in its short form (types.md Y13)."""

    name: ColumnName
    type: Logical
    unsigned: bool = False


class TableKeys(Strict):
    """What is declared about a table; all of it optional."""

    columns: Annotated[tuple[ColumnKeys, ...], BeforeValidator(listed)] = ()
    keys: tuple[ColumnName, ...] = ()
    truncate: Literal["apply", "ignore", "fail"] = "apply"
    unavailable: bool = True
    schema_changes: Literal["evolve", "freeze", "fail"] = "evolve"

    @model_validator(mode="after")
    def _consistent(self) -> TableKeys:
        declared = [column.name for column in self.columns]
        single_names(declared, "the list of columns")
        single_names(list(self.keys), "the list of keys")
        unknown = next((key for key in self.keys if declared and key not in declared), None)
        if unknown is not None:
            raise ValueError(f"the key {unknown!r} is no declared column{nearest(unknown, declared)}")
        return self


class DeclareKeys(Strict):
    """A ``--declare`` file: tables, and optionally the source that they are of."""

    name: str | None = Field(default=None, validation_alias=AliasChoices("name", "source"))
    tables: dict[TableName, TableKeys] = Field(default_factory=dict)

    @field_validator("tables")
    @classmethod
    def _apart(cls, tables: dict[str, TableKeys]) -> dict[str, TableKeys]:
        single_names(list(tables), "the list of tables")
        return tables

    def declarations(self) -> tuple[Declaration, ...]:
        """The tables as the product's nouns."""
        return tuple(_declaration(name, table) for name, table in self.tables.items())


class SourceKeys(DeclareKeys):
    """A file of ``conf/sources``: ``include`` or ``topics`` (a Java regular expression) narrow what is read."""

    name: Annotated[str, Field(min_length=1, validation_alias=AliasChoices("name", "source"))]
    topics: str | None = None
    include: tuple[TableName, ...] = ()
    bootstrap_servers: str | None = None
    placeholder: str = Field(default=_PLACEHOLDER, min_length=1)
    options: dict[str, str] = Field(default_factory=dict)

    @field_validator("options")
    @classmethod
    def _allowed(cls, options: dict[str, str]) -> dict[str, str]:
        return allowed(options)

    @model_validator(mode="after")
    def _one_of(self) -> SourceKeys:
        if self.topics is not None and self.include:
            raise ValueError("give topics or include, not both: each says which topics are read")
        return self


def declarations(path: Path | str) -> tuple[Declaration, ...]:
    """What a ``--declare`` file says about tables. Raises ConfigError that lists everything wrong with it."""
    problems = Problems()
    document = read(Path(path), problems)
    keys = None if problems.found else check(_model(document), document, problems)
    problems.raise_if_any()
    return () if keys is None else keys.declarations()


def sources(
    folder: Path, bootstrap_servers: str, options: Mapping[str, str], environment: Mapping[str, str], problems: Problems
) -> list[tuple[SourceSpec, str]]:
    """Every source of a folder with the file it stands in; servers and options not given there are the shared ones."""
    found: list[tuple[SourceSpec, str]] = []
    for path in sorted(folder.glob("*.yaml")):
        document = read(path, problems).filled(environment, problems)
        keys = check(SourceKeys, document, problems) if document.values else None
        if keys is not None:
            found.append((_source(keys, bootstrap_servers, options), str(path)))
    _refuse_overlap(found, problems)
    return found


def _model(document: Document) -> type[DeclareKeys]:
    own = set(SourceKeys.model_fields) - set(DeclareKeys.model_fields)
    return SourceKeys if own & set(document.values) else DeclareKeys


def _source(keys: SourceKeys, bootstrap_servers: str, options: Mapping[str, str]) -> SourceSpec:
    servers = keys.bootstrap_servers if keys.bootstrap_servers is not None else bootstrap_servers
    return SourceSpec(
        name=keys.name,
        topics=keys.topics if keys.topics is not None else topics(keys.name, keys.include),
        bootstrap_servers=servers,
        tables=keys.declarations(),
        placeholder=keys.placeholder,
        options={**options, **keys.options},
    )


def topics(prefix: str, include: tuple[str, ...] = ()) -> str:
    """A Java regular expression for the topics of a connector, or of some of its tables only."""
    tables = "|".join(_literal(table) for table in include)
    return f"{_literal(prefix)}[.]" + (f"(?:{tables})" if tables else ".*")


def reads(source: SourceSpec, table: str) -> bool:
    """Whether a source reads a table; a regular expression of the user's own is not second-guessed."""
    generated = source.topics.startswith(topics(source.name).removesuffix(".*") + "(?:")
    return not generated or _literal(table) in source.topics.split("(?:", 1)[1].removesuffix(")").split("|")


def _literal(name: str) -> str:
    # Debezium puts `_` for every character that a topic's name cannot have
    return re.sub(r"[^a-zA-Z0-9._-]", "_", name).replace(".", "[.]")


def _declaration(name: str, table: TableKeys) -> Declaration:
    columns = tuple(Column(column.name, column.type, column.unsigned) for column in table.columns)
    return Declaration(name, columns, table.keys, table.truncate, table.unavailable, table.schema_changes)


def _refuse_overlap(found: Sequence[tuple[SourceSpec, str]], problems: Problems) -> None:
    seen: dict[str, tuple[SourceSpec, str]] = {}
    for source, file in found:
        twin, twin_file = seen.setdefault(source.name.casefold(), (source, file))
        if twin is not source:
            problems.add(f"{twin_file} has the source {twin.name!r} already", file)
        for other, _ in found:
            if other.name.startswith(f"{source.name}.") and source.topics == topics(source.name):
                problems.add(f"the topics of {source.name!r} include those of {other.name!r}: give include", file)
