"""``replicator schema infer``: draft the column declarations of tables whose records carry no types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console, options, topics
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from replicator.database_snapshots import Database
    from replicator.debezium.event_reader import KafkaRecord
    from replicator.operate.drafts import Draft
    from replicator.spec import SourceSpec


def infer(
    context: typer.Context,
    what: Annotated[list[str], typer.Argument(help="Files of recorded events, or topics.", metavar="WHAT...")],
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Read this many records of each file or partition.", metavar="N")
    ] = 10_000,
    source: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--source", help="Read column definitions from this source's database.", metavar="NAME"),
    ] = None,
    brokers: options.Brokers = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Draft the columns of tables from records without a schema block: YAML for --declare or conf/sources, each guess
    with its evidence and its alternatives.
    """
    from replicator.debezium.handling_modes import HandlingModes
    from replicator.operate import drafts
    from replicator.spec.connectors import TIMES

    seen = 0

    def counted() -> Iterator[KafkaRecord]:
        nonlocal seen
        for each in what:
            for record in topics.sample_records(context, each, limit, brokers, env, conf):
                seen += 1
                yield record

    if source is None:
        found = drafts.draft_tables(counted())
    else:
        configured = options.settings(env, conf).source(source)
        kind, database = _database(configured)
        modes = HandlingModes.of(configured.modes) if TIMES in configured.modes else None
        with database.read_snapshot() as snapshot:
            found = drafts.draft_tables(counted(), kind, drafts.definitions(snapshot), modes)
    if as_json:
        console.print_json([_object(each) for each in found])
        return
    console.print_text(drafts.to_yaml(found, f"{seen:,} records of {', '.join(what)}"))
    if not found:
        console.narrate("None of these records changes a row of a table.", style="yellow")


def _database(source: SourceSpec) -> tuple[str, Database]:
    """Return the kind and the database of a source. Raises ConfigError where its file has no ``database``, or one of a
    kind that cannot be queried.
    """
    from replicator import registry

    login = source.database
    if login is None:
        raise ConfigError(
            "the source's file has no `database` block", where=source.name, fix="Add it: see docs/databases.md."
        )
    if login.kind not in registry.CLASSES["database"]:
        raise ConfigError(
            f"reading definitions from {login.kind} is not supported", where=source.name, fix="Omit --source."
        )
    return login.kind, registry.load("database", login.kind)(login)


def _object(draft: Draft) -> dict[str, object]:
    columns = [{"column": name, "type": each.type, "remark": each.remark} for name, each in draft.columns.items()]
    return {"table": draft.table, "records": draft.records, "keyless": draft.keyless, "columns": columns}
