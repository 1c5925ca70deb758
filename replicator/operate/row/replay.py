"""What the merge does with each record of one key, and why: verdicts by ``transforms/row_state.py``, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from replicator.transforms import row_state
from replicator.transforms.row_state import State

APPLIED, FILLS, SUPERSEDED, TRUNCATED = "applied", "fills", "superseded", "truncated"


@dataclass(frozen=True)
class Event:
    """One change or TRUNCATE of a key, in its order of arrival. ``name`` identifies it in texts (``topic/0/17``),
    ``by`` is the declaration that makes it a delete although the source did not send one.
    """

    name: str
    seq: str
    deleted: bool = False
    unsent: frozenset[str] = frozenset()
    truncates: bool = False
    by: str = ""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one record: ``verdict`` is one of the constants above, or of those of ``operate/explain.py``;
    ``why`` is one sentence.
    """

    verdict: str
    why: str


@dataclass(frozen=True)
class ReplayResult:
    """The verdicts by ``Event.name``, and the final state; None if nothing was ever applied."""

    verdicts: Mapping[str, Verdict]
    state: State | None


@dataclass
class _Row:
    """The row while events are replayed. ``holder`` names the event that set its current state, ``replaced`` maps each
    earlier holder to its successor; ``truncate`` is the newest TRUNCATE's ``_seq`` and name.
    """

    columns: Sequence[str]
    state: State | None = None
    holder: str = ""
    truncate: tuple[str, str] = ("", "")
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)


def run(events: Sequence[Event], columns: Sequence[str]) -> ReplayResult:
    """Replay the events of a row. ``columns`` are all but the key; event names are unique."""
    row = _Row(columns)
    for event in events:
        row.verdicts[event.name] = _apply_truncate(row, event) if event.truncates else _apply(row, event)
    for event in events:
        if event.name in row.verdicts:
            row.verdicts[event.name] = _final_verdict(row, event)
    return ReplayResult(row.verdicts, row.state)


def _apply_truncate(row: _Row, event: Event) -> Verdict:
    row.truncate = max(row.truncate, (event.seq, event.name))
    if row.state is None or row.state.deleted or row.state.seq >= event.seq:
        return Verdict(APPLIED, "empties the table; the row did not exist" if row.state is None or row.state.deleted
                       else f"empties the table, but {row.holder} is newer")  # fmt: skip
    _set_state(
        row, event.name, row_state.merge_states(row.state, row_state.from_change(event.seq, row.columns, deleted=True))
    )
    return Verdict(APPLIED, "empties the table, and this row with it")


def _apply(row: _Row, event: Event) -> Verdict:
    truncate_seq, truncate_name = row.truncate
    if event.seq <= truncate_seq:
        return Verdict(TRUNCATED, f"older than the TRUNCATE {truncate_name}, which came before it")
    change = row_state.from_change(event.seq, row.columns, deleted=event.deleted, unsent=event.unsent)
    before = row.state
    after = change if before is None else row_state.merge_states(before, change)
    if before is None or event.seq > before.seq:
        _set_state(row, event.name, after)
        return Verdict(APPLIED, "")
    row.state = after
    gained = [column for column in row.columns if after.places[column] != before.places[column]]
    if gained and not event.deleted:
        return Verdict(FILLS, f"older than {row.holder}, but supplies {_join(gained)}, which was unknown")
    return Verdict(SUPERSEDED, f"older than {row.holder}, which came before it")


def _set_state(row: _Row, name: str, after: State) -> None:
    row.replaced[row.holder] = name
    row.state, row.holder = after, name


def _final_verdict(row: _Row, event: Event) -> Verdict:
    """Return the verdict, extended by what later events did to it."""
    verdict = row.verdicts[event.name]
    if verdict.verdict != APPLIED or event.truncates or row.state is None:
        return verdict
    what = "deletes the row" if event.deleted else "sets the row"
    what += f" by `{event.by}`" if event.by else ""
    successor = row.replaced.get(event.name)
    why = f"{what}; this is the current state" if successor is None else f"{what}, until {successor}"
    surviving = [column for column in row.columns if successor is not None and row.state.places[column] == event.seq]
    lacking = sorted(event.unsent)
    why += f"; its {_join(surviving)} is still current" if surviving else ""
    why += f"; does not supply {_join(lacking)}" if lacking else ""
    return replace(verdict, why=why)


def _join(columns: Sequence[str]) -> str:
    return ", ".join(columns)
