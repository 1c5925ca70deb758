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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.config import shapekeys, tablekeys, topicnames
from replicator.config.connectorkeys import ConnectorKeys
from replicator.config.declarekeys import DeclareKeys
from replicator.config.sourcekeys import SourceKeys
from replicator.config.strict import check
from replicator.config.yamlfile import Document, Problems, read, read_required, yaml_files
from replicator.debezium.handling_modes import HandlingModes
from replicator.spec import Connector, Declaration, SourceSpec
from replicator.spec.connectors import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OF_A_PATTERN = re.compile(r"[\\^$*+?()\[\]{}|,]")


def load_declarations(path: Path | str) -> tuple[Declaration, ...]:
    """Return the declarations of a ``--declare`` file. Raises ConfigError that lists all errors in it."""
    return load_declare_file(path).tables


def load_declare_file(path: Path | str, environment: Mapping[str, str] | None = None) -> SourceSpec:
    """Load a ``--declare`` file as a source for recorded events of any name, with variables from *environment*. Raises
    ConfigError as ``load_declarations`` does.
    """
    problems = Problems()
    document = read(Path(path), problems).filled(environment or {}, problems)
    keys = None if problems.found else check(_keys_class(document), document, problems)
    problems.raise_if_any()
    if isinstance(keys, SourceKeys):
        return _build_source(keys, "", {})
    if keys is None:
        return SourceSpec("", "")
    return SourceSpec("", "", tables=keys.declarations(), hash_key=keys.secret(), masks=keys.masks())


def load_sources(
    folder: Path, bootstrap_servers: str, options: Mapping[str, str], environment: Mapping[str, str], problems: Problems
) -> list[tuple[SourceSpec, str]]:
    """Return every source of a folder with the path of its file; ``bootstrap_servers`` and ``options`` are the
    defaults.
    """
    found: list[tuple[SourceSpec, str]] = []
    for path in yaml_files(folder, problems):
        document = read_required(path, environment, problems)
        keys = check(SourceKeys, document, problems) if document.values else None
        if keys is not None:
            found.append((_build_source(keys, bootstrap_servers, options), str(path)))
    _refuse_overlap(found, problems)
    _refuse_shared_capture(found, problems)
    return found


def _keys_class(document: Document) -> type[DeclareKeys]:
    source_only = set(SourceKeys.model_fields) - set(DeclareKeys.model_fields)
    return SourceKeys if source_only & set(document.values) else DeclareKeys


def _build_source(keys: SourceKeys, bootstrap_servers: str, options: Mapping[str, str]) -> SourceSpec:
    if keys.objects is not None and keys.deletes is None:
        keys = keys.model_copy(update={"deletes": "rewrite"})  # not inferred from records: objects contain no nulls
    known = keys.modes()
    modes = HandlingModes.of(known)
    servers = keys.bootstrap_servers if keys.bootstrap_servers is not None else bootstrap_servers
    return SourceSpec(
        name=keys.name,
        topics=keys.topics if keys.topics is not None else _topic_pattern(keys),
        bootstrap_servers=servers,
        tables=tuple(tablekeys.build_declaration(name, table, keys, modes) for name, table in keys.tables.items()),
        placeholder=keys.placeholder,
        options={**options, **keys.options},
        sequence_by=keys.sequence_by,
        default=Declaration(
            "",
            outbox=shapekeys.build_outbox(keys, (), ()),
            deletes=keys.deletes,
            compacted_topic=bool(keys.compacted_topic),
        ),
        signals=None if keys.signal_data_collection is None else _last_two(keys.signal_data_collection),
        latin1_bytes=keys.avro_bytes == "latin1",
        binlog_position=keys.binlog_position,
        objects=keys.objects or "",
        whole_transactions=keys.consistency == "transaction",
        database=None if keys.database is None else keys.database.login(),
        connector=None if keys.connector is None else _build_connector(keys, keys.connector, servers),
        hash_key=keys.secret(),
        masks=keys.masks(),
        modes=known,
    )


def _build_connector(keys: SourceKeys, block: ConnectorKeys, bootstrap_servers: str) -> Connector:
    """Build the connector of a source from its ``connector`` block and from the source's keys that depend on it."""
    connector = block.connector(keys.name, bootstrap_servers)
    if not (connector.tables or connector.except_tables):
        include, exclude = keys.include, keys.exclude
        if block.kind == "sqlserver":  # its lists have <schema>.<table>: a table of one database cannot be excluded
            include = tuple(dict.fromkeys(map(_last_two, include)))
            exclude = tuple(table for table in exclude if table.count(".") == 1)
        connector = replace(
            connector, tables=tuple(map(_escape_pattern, include)), except_tables=tuple(map(_escape_pattern, exclude))
        )
    return replace(
        connector,
        deletes=keys.deletes or Connector.deletes,
        signals=keys.signal_data_collection or "",
        placeholder="" if keys.placeholder == PLACEHOLDER else keys.placeholder,
        transactions=keys.consistency == "transaction",
    )


def _topic_pattern(keys: SourceKeys) -> str:
    """Return the pattern of the included or excluded tables. Topics of a source that is known not to be SQL Server have
    no database before the schema.
    """
    login = keys.connector or keys.database
    is_other = login is not None and login.kind != "sqlserver"
    return topicnames.topic_pattern(keys.name, keys.include, keys.exclude, "" if is_other else topicnames.ANY_DATABASE)


def _escape_pattern(table: str) -> str:
    """Escape a table's name for the connector's lists of regular expressions, which are separated by commas."""
    return _OF_A_PATTERN.sub(lambda found: f"\\{found.group()}", table)


def _last_two(name: str) -> str:
    """Return ``<schema>.<table>`` of a name that may begin with a database."""
    return ".".join(name.split(".")[-2:])


def _refuse_overlap(found: Sequence[tuple[SourceSpec, str]], problems: Problems) -> None:
    seen: dict[str, tuple[SourceSpec, str]] = {}
    for source, file in found:
        first, first_file = seen.setdefault(source.name.casefold(), (source, file))
        if first is not source:
            problems.add(f"{first_file} already declares the source {first.name!r}", file)
        for other, _ in found:
            if other.name.startswith(f"{source.name}.") and topicnames.overlaps(source, other):
                hint = (
                    "set its `kind` in `connector`, or give topics"
                    if topicnames.list_included(source)
                    else "give include"
                )
                problems.add(f"the topics of {source.name!r} include those of {other.name!r}: {hint}", file)


def _refuse_shared_capture(found: Sequence[tuple[SourceSpec, str]], problems: Problems) -> None:
    """Add a problem for what connectors cannot share: one name, one slot, one ``server_id`` at a server."""
    owners: dict[tuple[str, ...], str] = {}
    for source, file in found:
        for key, value, place in _exclusive_settings(source.connector):
            owner = owners.setdefault((key, value, *place), source.name)
            if owner != source.name:
                problems.add(f"connector.{key}: the connector of {owner!r} has {value}, too: choose another", file)


def _exclusive_settings(connector: Connector | None) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return what no other connector may have: the key, the value, and the server where that holds."""
    if connector is None:
        return []
    server = (connector.host, str(connector.port))
    values = (
        ("name", connector.name, ()),
        ("slot", connector.slot, server),
        ("server_id", connector.server_id, server),
    )
    return [(key, str(value), place) for key, value, place in values if value]
