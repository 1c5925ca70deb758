"""The life of one row: every bronze record of its key, what the merge did with it, and the row as it stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Row, SparkSession

from replicator import landing_objects
from replicator.debezium import reasons, seq_format
from replicator.operate.row import key, replay, trace
from replicator.operate.row.replay import Event, ReplayResult, Verdict
from replicator.operate.row.trace import Place, RowTrace
from replicator.spec import Declaration
from replicator.stages.refinement import Refinement
from replicator.transforms.row_state import State

DEAD, IGNORED, WAITING, OTHER_KEY = "dead letter", "ignored", "waiting", "other key"
_WAITS = Verdict(WAITING, "silver has not read it yet: the next run does")
_REMOVED_BY_SNAPSHOT = "the row was removed: a snapshot that was taken again did not mention it"
_READ_AGAIN = "the row was read again by a snapshot: it stands under the key of that"
_MISMATCH = "silver's row is not what these records make: it was built from others as well"
_MOVED = Verdict(OTHER_KEY, "another key, whose row became this one or was this one before")


@dataclass(frozen=True)
class Entry:
    """One bronze record: its Kafka place, ``_seq`` (None: it has none) and the same in the source's terms, the source's
    clock in ms since 1970 UTC, and what became of it: ``applied``, ``fills``, ``superseded``, ``truncated``,
    ``ignored``, ``dead letter``, ``waiting`` (silver has not read it yet, or not all of its transaction) or ``other
    key``. ``line`` is where it stood, of a record that lay in an object: its path and the line's number from 1.
    """

    topic: str
    partition: int
    offset: int
    seq: str | None
    position: str | None
    op: str | None
    source_ts_ms: int | None
    verdict: str
    why: str
    line: str | None = None


@dataclass(frozen=True)
class Cell:
    """A column of the row as it stands: its value as text, and where it comes from if not from the row's position."""

    column: str
    value: str | None
    position: str | None


@dataclass(frozen=True)
class Explanation:
    """A row's records in ``_seq`` order, and the row in silver: ``position`` None if there is none."""

    table: str
    key: Mapping[str, str]
    entries: tuple[Entry, ...]
    seq: str | None
    position: str | None
    deleted: bool | None
    row: tuple[Cell, ...]
    warnings: tuple[str, ...] = ()


def explain(spark: SparkSession, at: Refinement, table: str, key_text: str) -> Explanation:
    """The life of one row. Raises ConfigError where the key is not the table's."""
    told = trace.read(spark, at, table, key_text)
    aside, events = _classify(told, at.source.declaration(table))
    lived = replay.run(events, told.registers)
    gone = _READ_AGAIN if at.source.declaration(table).append_only else _REMOVED_BY_SNAPSHOT
    return _explanation(f"{at.source.name}/{table}", told, _entries(told, aside, lived), lived, gone)


def _classify(told: RowTrace, declared: Declaration) -> tuple[dict[Place, Verdict], list[Event]]:
    """Verdicts of records that the merge never sees, and the others in their order of arrival."""
    spelled = {key.parse_json(told.records[place]["key"], told.spoken) for place in told.changes}
    spelled = spelled - {()} | {tuple(told.spoken.values())}
    aside: dict[Place, Verdict] = {}
    events: list[tuple[tuple[str, int, int], Event]] = []
    for place, record in told.records.items():
        truncates = record["op"] == "t" and place in told.seqs
        if not truncates and place not in told.changes and not key.matches(record, told.spoken, spelled):
            continue
        verdict = _exclusion(told, place, spelled, truncates=truncates, empties=declared.truncate == "apply")
        if verdict is not None:
            aside[place] = verdict
            continue
        event = (
            Event(_record_name(place), told.seqs[place], truncates=True) if truncates else _event(told, place, declared)
        )
        events.append(((str(record["ingested_at"] or ""), place[1], place[2]), event))
    return aside, [event for _, event in sorted(events, key=lambda each: each[0])]


def _event(told: RowTrace, place: Place, declared: Declaration) -> Event:
    change, transform = told.changes[place], declared.transform
    is_told = told.records[place]["op"] == "d"
    keys = {} if transform is None else {"apply_as_deletes": transform.as_deletes, "where": transform.where}
    by = "" if is_told or not change["_deleted"] else "` or `".join(key for key, sql in keys.items() if sql)
    return Event(
        _record_name(place), told.seqs[place], change["_deleted"], frozenset(change["_unavailable"] or ()), by=by
    )


def _exclusion(
    told: RowTrace, place: Place, spelled: Collection[tuple[str, ...]], *, truncates: bool, empties: bool
) -> Verdict | None:
    """What keeps a record from the merge; None if nothing does. Of what silver has read, a letter says what was
    rejected, not what would be now.
    """
    record, letter, change = told.records[place], told.letters.get(place), told.changes.get(place)
    if place in told.held:
        return Verdict(WAITING, f"its transaction, or one before it, is not whole: it waits {told.held_back}")
    if place in told.unread:
        return _WAITS
    if letter is not None:
        return _dead_letter(letter, can_be_applied=change is not None and change["_reject"] is None)
    reason = record["reason"] if change is None or place in told.seqs else change["_reject"]["reason"]
    if record["rule"] is None and reason is not None:
        return Verdict(DEAD, f"{reason}: {reasons.describe(reason).meaning}")
    rule = "truncate_by_policy" if truncates and not empties else record["rule"]
    if change is None and place in told.seqs and key.parse_json(record["key"], told.spoken) in spelled:
        rule = "key_swap"
    if rule is not None:
        return Verdict(IGNORED, f"{rule}: {reasons.RULES.get(rule, rule)}")
    return _MOVED if change is None and not truncates else None


def _dead_letter(letter: Row, *, can_be_applied: bool) -> Verdict:
    detail = f" ({letter['detail']})" if letter["detail"] else ""
    told = f"{letter['reason']}{detail}: {reasons.describe(letter['reason']).meaning}"
    if letter["dropped"]:
        return Verdict(DEAD, f"{told} It was dropped.")
    return Verdict(DEAD, f"{told} `replicator dead-letters retry` could apply it now." if can_be_applied else told)


def _entries(told: RowTrace, aside: Mapping[Place, Verdict], lived: ReplayResult) -> tuple[Entry, ...]:
    """In ``_seq`` order; a record without one stands behind the one before it in its partition."""
    found: list[tuple[str, Entry]] = []
    last: dict[tuple[str, int], str] = {}
    for place, record in sorted(told.records.items()):
        verdict = aside.get(place) or lived.verdicts.get(_record_name(place))
        if verdict is None:
            continue
        seq = told.seqs.get(place)
        rank = last[place[:2]] = seq or last.get(place[:2], "")
        position = None if seq is None else seq_format.describe(seq, told.connector, told.order)
        line = landing_objects.locate_line(record["headers"])
        op, clock = record["op"], record["source_ts_ms"]
        entry = Entry(*place, seq, position, op, clock, verdict.verdict, verdict.why, line)
        found.append((rank, entry))
    return tuple(entry for _, entry in sorted(found, key=lambda each: (each[0], each[1].partition, each[1].offset)))


def _explanation(name: str, told: RowTrace, entries: tuple[Entry, ...], lived: ReplayResult, gone: str) -> Explanation:
    row, state = told.stored, lived.state
    if row is None:
        missing = state is not None and not state.deleted
        without = gone if gone == _READ_AGAIN else "silver has no such row, though these records make one"
        warnings = (without,) if missing else ()
        return Explanation(name, told.wanted, entries, None, None, None, (), warnings)
    own = row["_column_seq"] or {}
    cells = tuple(
        Cell(
            column, row[stored], seq_format.describe(own[stored], told.connector, told.order) if stored in own else None
        )
        for stored, column in told.columns.items()
    )
    agrees = state is not None and (state.seq, state.deleted) == (row["_seq"], row["_deleted"])
    warnings = () if agrees else (gone if _is_removed_by_snapshot(row, state) else _MISMATCH,)
    position = seq_format.describe(row["_seq"], told.connector, told.order)
    return Explanation(name, told.wanted, entries, row["_seq"], position, row["_deleted"], cells, warnings)


def _is_removed_by_snapshot(row: Row, state: State | None) -> bool:
    """Whether it was deleted right behind its newest change, as ``stages/table/missing_rows.py`` does."""
    return bool(row["_deleted"]) and state is not None and row["_seq"] == seq_format.next_seq(state.seq)


def _record_name(place: Place) -> str:
    return "/".join(map(str, place))
