"""Declarations drafted from records, for a person to review (types.md Y14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from replicator.debezium.guesses import Guess, Values, guess
from replicator.debezium.spoken import UNSENT, Event, Reader, Record

_CHANGES = ("c", "r", "u", "d")


@dataclass(frozen=True)
class Draft:
    """What some records tell of one table: of columns whose types they do not carry, by the source's names and in the
    order in which they came, the guesses; ``keyless`` where one of them has no key.
    """

    table: str
    records: int
    columns: Mapping[str, Guess]
    keyless: bool


@dataclass
class _Sample:
    records: int = 0
    keyless: bool = False
    columns: dict[str, Values] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        self.records += 1
        self.keyless |= event.key is None
        for row in (event.key or {}, event.before or {}, event.after or {}):
            for name, value in row.items():
                if name not in event.types and value != UNSENT:
                    self.columns.setdefault(name, Values()).see(value)


def drafts(records: Iterable[Record]) -> list[Draft]:
    """One for each table that some record changes a row of, by name."""
    reader, samples = Reader(), dict[str, _Sample]()
    for event in map(reader.event, records):
        if event.op in _CHANGES and event.table is not None:
            samples.setdefault(event.table, _Sample()).take(event)
    return [
        Draft(table, each.records, {name: guess(values) for name, values in each.columns.items()}, each.keyless)
        for table, each in sorted(samples.items())
    ]


def as_yaml(found: Iterable[Draft], read: str) -> str:
    """A file for ``--declare``, or for ``tables:`` of a source's file, whose comments say what is to be looked at.
    ``read`` says what the records were.
    """
    lines = [
        f"# From {read}. Each type holds all values that came and claims no more than they show: compare it",
        '# with the table at the source, above all where "or" names what else they may be.',
        "tables:",
        *(line for draft in found for line in _table(draft)),
    ]
    return "\n".join(lines if len(lines) > 3 else [*lines[:-1], "tables: {}"])


def _table(draft: Draft) -> Iterator[str]:
    told = f"{draft.records} records"
    if not draft.columns and not draft.keyless:
        yield f"  {_entry(draft.table, {})} # {told}, which carry their types"
        return
    yield f"  {_entry(draft.table)} # {told}"
    if draft.keyless:
        yield "    # keys: [] # some of them have no key: name the columns that identify a row"
    known = {name: each for name, each in draft.columns.items() if each.type is not None}
    yield "    columns:" if known else "    columns: {}"
    for name, each in draft.columns.items():
        line = f"      {'' if name in known else '# '}{_entry(name, each.type)}"
        yield f"{line} # {each.remark}" if each.remark else line


def _entry(name: str, value: object = None) -> str:
    """A line of YAML, quoted where it has to be."""
    text = yaml.safe_dump({name: value}, allow_unicode=True, width=10_000).strip()
    return text.removesuffix(" null")
