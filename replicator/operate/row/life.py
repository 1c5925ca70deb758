"""What the merge does with each record of one key, and why: verdicts by ``transforms/registers.py``, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from replicator.transforms import registers
from replicator.transforms.registers import State

APPLIED, FILLS, SUPERSEDED, TRUNCATED = "applied", "fills", "superseded", "truncated"


@dataclass(frozen=True)
class Event:
    """One change or TRUNCATE of a key, in its order of arrival. ``name`` is what others call it (``topic/0/17``),
    ``by`` the declaration that makes a delete of what the source did not call one.
    """

    name: str
    seq: str
    deleted: bool = False
    unsent: frozenset[str] = frozenset()
    truncates: bool = False
    by: str = ""


@dataclass(frozen=True)
class Verdict:
    """``verdict`` is one of the words above; ``why`` one sentence."""

    verdict: str
    why: str


@dataclass(frozen=True)
class Lived:
    """The verdicts by ``Event.name`` and the state in the end; None if nothing was ever applied."""

    verdicts: Mapping[str, Verdict]
    state: State | None


@dataclass
class _Row:
    """The row while events arrive. ``holder`` names the event that decided its life last."""

    columns: Sequence[str]
    state: State | None = None
    holder: str = ""
    truncate: tuple[str, str] = ("", "")
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)


def live(events: Sequence[Event], columns: Sequence[str]) -> Lived:
    """The life of a row. ``columns`` are all but the key; events have different names."""
    row = _Row(columns)
    for event in events:
        row.verdicts[event.name] = _truncated(row, event) if event.truncates else _met(row, event)
    for event in events:
        if event.name in row.verdicts:
            row.verdicts[event.name] = _in_the_end(row, event)
    return Lived(row.verdicts, row.state)


def _truncated(row: _Row, event: Event) -> Verdict:
    row.truncate = max(row.truncate, (event.seq, event.name))
    if row.state is None or row.state.deleted or row.state.seq >= event.seq:
        return Verdict(APPLIED, "empties the table; the row was not there" if row.state is None or row.state.deleted
                       else f"empties the table, but {row.holder} is newer")  # fmt: skip
    _take(row, event.name, registers.join(row.state, registers.state(event.seq, row.columns, deleted=True)))
    return Verdict(APPLIED, "empties the table, and this row with it")


def _met(row: _Row, event: Event) -> Verdict:
    mark, by = row.truncate
    if event.seq <= mark:
        return Verdict(TRUNCATED, f"older than the TRUNCATE {by}, which came before it")
    change = registers.state(event.seq, row.columns, deleted=event.deleted, unsent=event.unsent)
    before = row.state
    after = change if before is None else registers.join(before, change)
    if before is None or event.seq > before.seq:
        _take(row, event.name, after)
        return Verdict(APPLIED, "")
    row.state = after
    gained = [column for column in row.columns if after.places[column] != before.places[column]]
    if gained and not event.deleted:
        return Verdict(FILLS, f"older than {row.holder}, but tells {_listed(gained)}, which was not known")
    return Verdict(SUPERSEDED, f"older than {row.holder}, which came before it")


def _take(row: _Row, name: str, after: State) -> None:
    row.replaced[row.holder] = name
    row.state, row.holder = after, name


def _in_the_end(row: _Row, event: Event) -> Verdict:
    """The verdict with what later events made of it."""
    verdict = row.verdicts[event.name]
    if verdict.verdict != APPLIED or event.truncates or row.state is None:
        return verdict
    what = "deletes the row" if event.deleted else "sets the row"
    what += f" by `{event.by}`" if event.by else ""
    by = row.replaced.get(event.name)
    why = f"{what}; it stands so" if by is None else f"{what}, until {by}"
    kept = [c for c in row.columns if by is not None and row.state.places[c] == event.seq]
    lacking = sorted(event.unsent)
    why += f"; its {_listed(kept)} still stands" if kept else ""
    why += f"; does not tell {_listed(lacking)}" if lacking else ""
    return replace(verdict, why=why)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns)
