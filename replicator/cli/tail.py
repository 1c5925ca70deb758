"""``replicator tail``: print the events of a topic, of a file, or of a table as they arrive, one per line."""

from __future__ import annotations

import json
import re
import time
from collections import deque
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from rich.text import Text

from replicator.cli import console, diff, options, topics
from replicator.debezium.event_reader import ChangeEvent, EventReader, KafkaRecord, StartingOffset
from replicator.debezium.jsontext import dumps, has_lone_surrogate
from replicator.errors import ConfigError, VersionMissing
from replicator.spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from replicator.settings import Settings
    from replicator.spec import Table

_LAST = StartingOffset(last=10)
_PAUSE_SECONDS = 0.5
_STYLES = {"c": "green", "r": "green", "d": "red", "t": "red", "u": "yellow"}
"""Styles by the first letter of an operation."""


def tail(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="A topic; a file of recorded events; a table as sql knows it.")],
    start: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option(
            "--from",
            help="beginning; end; an offset of every partition, or a version of a table; -N: the last N. "
            "Default: -10; with --follow: end.",
            metavar="WHERE",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new events until Ctrl-C.")] = False,
    limit: Annotated[
        Optional[int],  # noqa: UP045 - as above
        typer.Option("--limit", min=1, help="Exit after this many events.", metavar="N"),
    ] = None,
    brokers: options.Brokers = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    lake: options.LakeRoot = None,
) -> None:
    """Show events: the position of each, the row and the operation, and the columns before and after."""
    begin = _start(start, follow=follow)
    lines = _lines(context, what, begin, follow, brokers, env, conf, lake)
    for text, to_json in islice(lines, limit):
        if as_json:
            console.print_text(to_json())
        else:
            console.out().print(text, soft_wrap=True)


_Line = tuple[Text, "Callable[[], str]"]
"""An event formatted for people, and a function that formats it as a JSON object."""


def _start(text: str | None, *, follow: bool) -> StartingOffset:
    """Parse ``--from``. Raises ConfigError."""
    if text is None:
        return StartingOffset(last=0) if follow else _LAST
    if text in ("beginning", "end"):
        return StartingOffset() if text == "beginning" else StartingOffset(last=0)
    if not re.fullmatch(r"-?\d{1,18}", text):
        raise ConfigError(
            f"--from {text!r} is not a position.", fix="Use beginning, end, a number, or -N for the last N."
        )
    number = int(text)
    return StartingOffset(last=-number) if text.startswith("-") else StartingOffset(offset=number)


def _lines(
    context: typer.Context,
    what: str,
    start: StartingOffset,
    follow: bool,
    brokers: str | None,
    env: str,
    conf: Path | None,
    lake: str | None,
) -> Iterator[_Line]:
    """Return the events of the named file, else topic, else table."""
    if lake is not None and brokers is not None:
        raise ConfigError("--lake is for a table and --brokers for a topic", fix="Omit one of them.")
    elsewhere = {"--lake": lake, "--brokers": brokers}
    file = topics.recorded_file(what, next((option for option, given in elsewhere.items() if given is not None), None))
    if file is not None:
        if follow:
            raise ConfigError("a file cannot be followed.", fix="Omit --follow.")
        return _record_lines(EventReader(SourceSpec("", "")), _file_records(file, start))
    settings = topics.settings_of(env, conf, lake, brokers)
    source = None if lake is not None else topics.source_of(settings, what, brokers)
    if source is None:
        return _table_lines(context, settings, what, start, follow=follow)
    return _record_lines(EventReader(source), _topic_records(context, settings, source, what, start, follow=follow))


def _file_records(path: Path, start: StartingOffset) -> Iterator[KafkaRecord]:
    from replicator.sources import kcat_files

    if start.last is None:
        return (each for each in kcat_files.read_records(path) if each.offset >= (start.offset or 0))
    ends: dict[tuple[str, int], deque[KafkaRecord]] = {}
    for each in kcat_files.read_records(path):
        ends.setdefault((each.topic, each.partition), deque(maxlen=start.last)).append(each)
    return (each for last in ends.values() for each in last)


def _topic_records(
    context: typer.Context, settings: Settings, source: SourceSpec, topic: str, start: StartingOffset, *, follow: bool
) -> Iterator[KafkaRecord]:
    from replicator import session
    from replicator.sources.consumer import Topic

    jvm = session.jvm(settings, debug=options.is_debug(context))
    return Topic(topic, source.bootstrap_servers, source.options).records(jvm, start, follow=follow)


def _record_lines(reader: EventReader, records: Iterator[KafkaRecord]) -> Iterator[_Line]:
    for event in map(reader.event, records):
        yield _format_event(event), partial(_to_json, event)


def _format_event(event: ChangeEvent) -> Text:
    """Format an event on one line:
    ``0/124  u  classicmodels.customers  customerNumber=103  creditLimit: 21000.00 → 25000.00  (file 1, pos 8)``.
    """
    style = _STYLES.get(event.op[:1], "")
    line = Text(f"{event.record.partition}/{event.record.offset}  ")
    line.append(console.printable(str(event.op or event.note)), style or "dim")
    for part in (event.table, _format_key(event.key)):
        line.append(f"  {console.printable(part)}" if part else "")
    both = event.before is not None and event.after is not None
    cells = [
        _format_cell(column, *values, both=both)
        for column, values in event.changed().items()
        if both or column not in (event.key or {})
    ]
    if cells:
        line.append("  ").append_text(Text(", ").join(cells))
    if event.position:
        line.append(f"  ({console.printable(event.position)})", "dim")
    return line


def _format_cell(column: str, before: Any, after: Any, *, both: bool) -> Text:
    if both:
        name = console.printable(column)
        return Text.assemble(f"{name}: ", (_format_value(before), "red"), " \u2192 ", (_format_value(after), "green"))
    return Text(console.printable(f"{column}={_format_value(before if after is None else after)}"))


def _format_key(key: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name}={_format_value(value)}" for name, value in (key or {}).items())


def _format_value(value: Any) -> str:
    """Format a value for people; strings are not quoted."""
    if value is None:
        return "NULL"
    return console.printable(value if isinstance(value, str) else dumps(value))


def _to_json(event: ChangeEvent) -> str:
    record = event.record
    fields = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    fields |= {"timestamp": record.timestamp, "op": event.op or None, "table": event.table}
    fields |= {"position": event.position or None, "note": event.note or None}
    rows = {"key": event.key, "before": event.before, "after": event.after}
    images = ", ".join(f'"{name}": {dumps(row)}' for name, row in rows.items())
    head = json.dumps(fields, ensure_ascii=False)
    if has_lone_surrogate(head):
        head = json.dumps(fields)
    return f"{head[:-1]}, {images}}}"


def _table_lines(
    context: typer.Context, settings: Settings, name: str, start: StartingOffset, *, follow: bool
) -> Iterator[_Line]:
    """Yield the commits of a table of the lake in the order of versions. Commits that changed no row yield nothing.
    Versions whose files are partly removed are skipped with a message, unless the start is such a version.
    """
    from replicator import lake_stores
    from replicator.operate import tail as operation
    from replicator.session import session

    spark = session(settings, debug=options.is_debug(context), brief=True)
    tables_of = lake_stores.table_format(settings)
    table = diff.resolve_table(spark, tables_of, settings, name, None)
    version = start.within(0, 1 + (tables_of.version(spark, table) or 0))
    while True:
        newest = tables_of.version(spark, table) or 0
        while version <= newest:
            try:
                yield from _commit_lines(operation.read_commit(spark, tables_of, table, version), table)
            except VersionMissing as error:
                if error.oldest is None or start.offset is not None:
                    raise
                console.narrate(_describe_missing(table, version, error.oldest), style="yellow")
                version = error.oldest
            version += 1
        if not follow:
            return
        time.sleep(_PAUSE_SECONDS)


def _describe_missing(table: Table, first: int, last: int) -> str:
    if first == last:
        return f"The changes of version {first} of {table.name} cannot be shown: it is no longer complete."
    return f"The changes of versions {first} to {last} of {table.name} cannot be shown: they are no longer complete."


def _commit_lines(commit: Any, table: Table) -> Iterator[_Line]:
    with commit as (moment, rows):
        when = moment.at.isoformat(" ", "milliseconds")
        for row in diff.with_ordered_columns(rows.orderBy("at")).toLocalIterator():
            change, key, cells = diff.format_row(row)
            text = Text(f"{moment.version}  {when}  ").append_text(change).append(f"  {key.plain}  ").append_text(cells)
            head = json.dumps({"table": table.name, "version": moment.version, "timestamp": when})
            yield text, partial("{}, {}}}".format, head[:-1], diff.json_members(row))
