"""The life of one row: every bronze record of its key, what the merge did with it, and the current row."""

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
_WAITS = Verdict(WAITING, "silver has not read it yet: the next run will")
_REMOVED_BY_SNAPSHOT = "the row was removed: a repeated snapshot did not contain it"
_READ_AGAIN = "the row was read again by a snapshot: it is stored under that record's key"
_MISMATCH = "silver's row does not match these records: it was also built from others"
_MOVED = Verdict(OTHER_KEY, "another key: its row became this row, or was this row before")


@dataclass(frozen=True)
class Entry:
    """One bronze record of the key: its Kafka coordinates; ``seq`` (None: it has none) and ``position``, the same in
    the source's terms; ``source_ts_ms``, the source's clock in ms since 1970, UTC; and its ``verdict``: ``applied``,
    ``fills``, ``superseded``, ``truncated``, ``ignored``, ``dead letter``, ``waiting`` (silver has not read it yet, or
    not all of its transaction) or ``other key``. ``line`` locates a record that was read from an object: the object's
    path and the line number from 1.
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
    """A column of the current row: its value as text, and its position if that differs from the row's."""

    column: str
    value: str | None
    position: str | None


@dataclass(frozen=True)
class Explanation:
    """A row's records in ``_seq`` order, and the row in silver: ``position`` is None if there is none."""

    table: str
    key: Mapping[str, str]
    entries: tuple[Entry, ...]
    seq: str | None
    position: str | None
    deleted: bool | None
    row: tuple[Cell, ...]
    warnings: tuple[str, ...] = ()


def explain(spark: SparkSession, at: Refinement, table: str, key_text: str) -> Explanation:
    """Return the life of one row. Raises ConfigError where the key does not fit the table's."""
    history = trace.read(spark, at, table, key_text)
    excluded, events = _classify(history, at.source.declaration(table))
    replayed = replay.run(events, history.registers)
    removed_why = _READ_AGAIN if at.source.declaration(table).append_only else _REMOVED_BY_SNAPSHOT
    return _explanation(
        f"{at.source.name}/{table}", history, _entries(history, excluded, replayed), replayed, removed_why
    )


def _classify(history: RowTrace, declared: Declaration) -> tuple[dict[Place, Verdict], list[Event]]:
    """Return the verdicts of records that the merge never sees, and the others as events in their order of arrival."""
    spellings = {key.parse_json(history.records[place]["key"], history.spoken) for place in history.changes}
    spellings = spellings - {()} | {tuple(history.spoken.values())}
    excluded: dict[Place, Verdict] = {}
    events: list[tuple[tuple[str, int, int], Event]] = []
    for place, record in history.records.items():
        truncates = record["op"] == "t" and place in history.seqs
        if not truncates and place not in history.changes and not key.matches(record, history.spoken, spellings):
            continue
        verdict = _exclusion(history, place, spellings, truncates=truncates, empties=declared.truncate == "apply")
        if verdict is not None:
            excluded[place] = verdict
            continue
        event = (
            Event(_record_name(place), history.seqs[place], truncates=True)
            if truncates
            else _event(history, place, declared)
        )
        events.append(((str(record["ingested_at"] or ""), place[1], place[2]), event))
    return excluded, [event for _, event in sorted(events, key=lambda each: each[0])]


def _event(history: RowTrace, place: Place, declared: Declaration) -> Event:
    change, transform = history.changes[place], declared.transform
    is_delete = history.records[place]["op"] == "d"
    keys = {} if transform is None else {"apply_as_deletes": transform.as_deletes, "where": transform.where}
    declared_by = "" if is_delete or not change["_deleted"] else "` or `".join(key for key, sql in keys.items() if sql)
    return Event(
        _record_name(place),
        history.seqs[place],
        change["_deleted"],
        frozenset(change["_unavailable"] or ()),
        by=declared_by,
    )


def _exclusion(
    history: RowTrace, place: Place, spellings: Collection[tuple[str, ...]], *, truncates: bool, empties: bool
) -> Verdict | None:
    """Return why the merge does not see a record; None if it does. For a record that silver has read, an existing dead
    letter decides, not what would be rejected now.
    """
    record, letter, change = history.records[place], history.letters.get(place), history.changes.get(place)
    if place in history.held:
        return Verdict(WAITING, f"its transaction, or an earlier one, is incomplete: it waits {history.held_back}")
    if place in history.unread_places:
        return _WAITS
    if letter is not None:
        return _dead_letter(letter, can_be_applied=change is not None and change["_reject"] is None)
    reason = record["reason"] if change is None or place in history.seqs else change["_reject"]["reason"]
    if record["rule"] is None and reason is not None:
        return Verdict(DEAD, f"{reason}: {reasons.describe(reason).meaning}")
    rule = "truncate_by_policy" if truncates and not empties else record["rule"]
    if change is None and place in history.seqs and key.parse_json(record["key"], history.spoken) in spellings:
        rule = "key_swap"
    if rule is not None:
        return Verdict(IGNORED, f"{rule}: {reasons.RULES.get(rule, rule)}")
    return _MOVED if change is None and not truncates else None


def _dead_letter(letter: Row, *, can_be_applied: bool) -> Verdict:
    detail = f" ({letter['detail']})" if letter["detail"] else ""
    meaning = f"{letter['reason']}{detail}: {reasons.describe(letter['reason']).meaning}"
    if letter["dropped"]:
        return Verdict(DEAD, f"{meaning} It was dropped.")
    return Verdict(
        DEAD, f"{meaning} `replicator dead-letters retry` could apply it now." if can_be_applied else meaning
    )


def _entries(history: RowTrace, excluded: Mapping[Place, Verdict], replayed: ReplayResult) -> tuple[Entry, ...]:
    """Return the entries in ``_seq`` order; a record without ``_seq`` comes after the preceding record of its
    partition.
    """
    found: list[tuple[str, Entry]] = []
    last: dict[tuple[str, int], str] = {}
    for place, record in sorted(history.records.items()):
        verdict = excluded.get(place) or replayed.verdicts.get(_record_name(place))
        if verdict is None:
            continue
        seq = history.seqs.get(place)
        rank = last[place[:2]] = seq or last.get(place[:2], "")
        position = None if seq is None else seq_format.describe(seq, history.connector, history.order)
        line = landing_objects.locate_line(record["headers"])
        op, clock = record["op"], record["source_ts_ms"]
        entry = Entry(*place, seq, position, op, clock, verdict.verdict, verdict.why, line)
        found.append((rank, entry))
    return tuple(entry for _, entry in sorted(found, key=lambda each: (each[0], each[1].partition, each[1].offset)))


def _explanation(
    name: str, history: RowTrace, entries: tuple[Entry, ...], replayed: ReplayResult, removed_why: str
) -> Explanation:
    row, state = history.stored, replayed.state
    if row is None:
        missing = state is not None and not state.deleted
        warning = (
            removed_why if removed_why == _READ_AGAIN else "silver has no such row, although these records produce one"
        )
        warnings = (warning,) if missing else ()
        return Explanation(name, history.key, entries, None, None, None, (), warnings)
    column_seqs = row["_column_seq"] or {}
    cells = tuple(
        Cell(
            column,
            row[stored],
            seq_format.describe(column_seqs[stored], history.connector, history.order)
            if stored in column_seqs
            else None,
        )
        for stored, column in history.columns.items()
    )
    agrees = state is not None and (state.seq, state.deleted) == (row["_seq"], row["_deleted"])
    warnings = () if agrees else (removed_why if _is_removed_by_snapshot(row, state) else _MISMATCH,)
    position = seq_format.describe(row["_seq"], history.connector, history.order)
    return Explanation(name, history.key, entries, row["_seq"], position, row["_deleted"], cells, warnings)


def _is_removed_by_snapshot(row: Row, state: State | None) -> bool:
    """Whether the row was deleted right after its newest change, as ``stages/table/missing_rows.py`` does."""
    return bool(row["_deleted"]) and state is not None and row["_seq"] == seq_format.next_seq(state.seq)


def _record_name(place: Place) -> str:
    return "/".join(map(str, place))
