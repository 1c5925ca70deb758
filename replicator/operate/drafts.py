"""Draft table declarations from records, for a person to review (types.md Y14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from replicator.database_snapshots import DatabaseSnapshot
from replicator.databases.column_definitions import candidate_types, narrow_to_mode
from replicator.debezium.event_reader import UNSENT, ChangeEvent, EventReader, KafkaRecord
from replicator.debezium.handling_modes import HandlingModes
from replicator.debezium.record_payload import has_key_columns
from replicator.debezium.type_confirmation import confirm_type
from replicator.debezium.type_guesses import ColumnProfile, Guess, guess_type
from replicator.errors import TableMissing

_CHANGES = ("c", "r", "u", "d")
_QUOTES, _VALUE = '"', "\n:"

Definitions = Callable[[str], Mapping[str, str]]
"""The columns of a table with their types in the source's own words; empty where they are not known."""


@dataclass(frozen=True)
class Draft:
    """What a sample of records shows about one table: ``columns`` are the guessed types of the columns whose types the
    records do not carry, by source name and in the order of appearance; ``keyless``: some record has no key that names
    a column.
    """

    table: str
    records: int
    columns: Mapping[str, Guess]
    keyless: bool


@dataclass
class _Sample:
    records: int = 0
    keyless: bool = False
    columns: dict[str, ColumnProfile] = field(default_factory=dict)

    def take(self, event: ChangeEvent) -> None:
        self.records += 1
        key = event.key if has_key_columns(event.record.key) else None
        self.keyless |= key is None
        for row in (key or {}, event.before or {}, event.after or {}):
            for name, value in row.items():
                if name not in event.types and value != UNSENT:
                    self.columns.setdefault(name, ColumnProfile()).see(value)


def draft_tables(
    records: Iterable[KafkaRecord],
    kind: str = "",
    defined: Definitions = lambda _: {},
    modes: HandlingModes | None = None,
) -> list[Draft]:
    """Return a draft for each table of which some record changes a row, sorted by name. Where the source, a database of
    that ``kind``, defines a column's type, the values only choose between the types that the definition allows; for
    dates and times, the ``modes`` of the source's connector decide where they are known.
    """
    reader, samples = EventReader(), dict[str, _Sample]()
    for event in map(reader.event, records):
        if event.op in _CHANGES and event.table is not None:
            samples.setdefault(event.table, _Sample()).take(event)
    return [_draft(table, each, kind, defined(table), modes) for table, each in sorted(samples.items())]


def definitions(snapshot: DatabaseSnapshot) -> Definitions:
    """Return the column definitions of a database as of a snapshot."""

    def of(table: str) -> Mapping[str, str]:
        try:
            return {column.name: column.type for column in snapshot.columns(table)}
        except TableMissing:
            return {}

    return of


def _draft(table: str, sample: _Sample, kind: str, defined: Mapping[str, str], modes: HandlingModes | None) -> Draft:
    def confirmed(values: ColumnProfile, definition: str) -> Guess:
        forms = candidate_types(kind, definition)
        return confirm_type(values, forms if modes is None else narrow_to_mode(forms, modes), definition)

    columns = {
        name: confirmed(values, defined[name]) if name in defined else guess_type(values)
        for name, values in sample.columns.items()
    }
    return Draft(table, sample.records, columns, sample.keyless)


def to_yaml(found: Iterable[Draft], read: str) -> str:
    """Return a YAML file for ``--declare``, or for ``tables:`` of a source's file; its comments say what to check.
    ``read`` names the records that were read.
    """
    lines = [
        f"# From {read}. Each type fits all values that were read and is inferred from them alone: compare it",
        '# with the table at the source, especially where "or" names alternatives.',
        "tables:",
        *(line for draft in found for line in _table(draft)),
    ]
    return "\n".join(lines if len(lines) > 3 else [*lines[:-1], "tables: {}"])


def _table(draft: Draft) -> Iterator[str]:
    counted = f"{draft.records} records"
    if not draft.columns and not draft.keyless:
        yield f"  {_entry(draft.table, {})} # {counted}, which carry their types"
        return
    yield f"  {_entry(draft.table)} # {counted}"
    if draft.keyless:
        yield "    # keys: [] # some have no key that names columns: list what identifies a row, or: append_only: true"
    known = {name: each for name, each in draft.columns.items() if each.type is not None}
    yield "    columns:" if known else "    columns: {}"
    for name, each in draft.columns.items():
        line = f"      {'' if name in known else '# '}{_entry(name, each.type)}"
        yield f"{line} # {each.remark}" if each.remark else line


def _entry(name: str, value: object = None) -> str:
    """Return a line of YAML, quoted where necessary, for example a name that has several lines or is too long for a
    plain key.
    """
    text = _dump({name: value}).removesuffix(" null")
    if not text.startswith("? "):
        return text
    return f"{_dump(name, style=_QUOTES)}:{text.rpartition(_VALUE)[2]}"


def _dump(value: object, style: str | None = None) -> str:
    return yaml.safe_dump(value, allow_unicode=True, width=10_000, default_style=style).strip()
