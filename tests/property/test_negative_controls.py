"""Rules that others use, each shown to end wrong where ours ends right (debezium.md P13).

A scenario is a recorded case delivered in some way, or a history of one key; both run without Spark, by the plain twin
of the merge.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from replicator.transforms.row_state import State, merge_states
from tests.builders import UNSENT
from tests.golden.cases import cases
from tests.property.plain import RIGHT, Change, Record, Row, Rule, applied, body, changes, in_commit_order
from tests.property.test_laws import COLUMNS, EVERY, Join, at_source, delivered, shown, told
from tests.property.test_laws import Change as HistoryChange


@dataclass(frozen=True)
class Scenario:
    """Records of one table, the batches of offsets that they come in, and the rows in the end, by key."""

    name: str
    records: Sequence[Record]
    batches: Sequence[Sequence[int]]
    expected: dict[str, Row]

    def ends(self, rule: Rule) -> dict[str, Row]:
        """The rows that a rule ends with."""
        found = changes(self.records, rule)
        return applied([[found[at] for at in batch if at in found] for batch in self.batches], rule)


def recorded(case: str, delivery: str, *keys: int) -> Scenario:
    """A golden case in ``one batch``, ``one by one``, or one by one ``backwards``; of these keys only."""
    told = next(each for each in cases() if each.name == case)
    [(table, rows)] = told.expected.items()
    names = [f'{{"id":{key}}}' for key in keys]
    records = [event for event in told.events if event["topic"] == f"{case}.{table}" and event["key"] in names]
    offsets = [record["offset"] for record in records]
    single = [[offset] for offset in offsets]
    batches = {"one batch": [offsets], "one by one": single, "backwards": single[::-1]}[delivery]
    return Scenario(
        f"{case}, {delivery}", records, batches, {f'{{"id":{r["id"]}}}': r for r in rows if r["id"] in keys}
    )


def invented(name: str, sent: Sequence[dict[str, Any]], batches: Sequence[Sequence[int]], *rows: Row) -> Scenario:
    """Synthetic records, each told as envelope fields; ``source`` and ``id`` as far as they matter."""
    records = [
        {
            "offset": offset,
            "key": json.dumps({"id": each["id"]}),
            "payload": json.dumps(
                {
                    "op": each.get("op", "c"),
                    "after": {name: each[name] for name in ("id", "b") if name in each},
                    "source": each["source"],
                }
            ),
        }
        for offset, each in enumerate(sent)
    ]
    return Scenario(name, records, batches, {json.dumps({"id": row["id"]}): row for row in rows})


def postgres(commit: int | None, lsn: int) -> dict[str, Any]:
    """Where a change stands in PostgreSQL."""
    sequence = json.dumps([None if commit is None else str(commit), str(lsn)])
    return {"connector": "postgresql", "sequence": sequence, "lsn": lsn}


def mariadb(file: int, pos: int) -> dict[str, Any]:
    """Where a change stands in MariaDB."""
    return {"connector": "mariadb", "file": f"binlog.{file}", "pos": pos}


FLUSH = [
    {"id": 1, "b": "first", "source": postgres(None, 150)},
    {"id": 1, "b": "second", "source": postgres(160, 170)},
    {"id": 2, "b": "other", "source": postgres(890, 900)},
]
BEFORE_THE_FIRST_FLUSH = invented(
    "all is sent again, for the connector died before it saved how far it was",
    FLUSH * 2,
    [range(3), range(3, 6)],
    {"id": 1, "b": "second"},
    {"id": 2, "b": "other"},
)
"""Q4's example: the first transaction after a start has no ``sequence[0]``."""

THE_MILLIONTH_FILE = invented(
    "the millionth file",
    [
        {"id": 1, "b": "old", "source": mariadb(999999, 1073741824)},
        {"id": 1, "b": "new", "source": mariadb(1000000, 4)},
    ],
    [[0], [1]],
    {"id": 1, "b": "new"},
)
"""L4."""

A_LATE_INSERT = invented(
    "an insert that comes after the delete that ended its row, and after the next row of the key",
    [
        {"id": 1, "b": "first life", "source": mariadb(1, 10)},
        {"id": 1, "op": "d", "source": mariadb(1, 20)},
        {"id": 1, "b": UNSENT, "source": mariadb(1, 30)},
    ],
    [[1, 2], [0]],
    {"id": 1, "b": None},
)
"""M4's example."""


def by_time(record: Record, before: str) -> str:
    return f"{body(record)['source']['ts_ms']:020}"


def running_maximum(record: Record, before: str) -> str:
    """A missing last commit is taken for the greatest place so far."""
    place = in_commit_order(record, before)
    is_missing = body(record)["source"].get("sequence", "").startswith("[null")
    return max(before[:20], place[:20]) + place[20:] if is_missing else place


def newest_of_each_key(batch: Sequence[Change]) -> list[Change]:
    newest: dict[str, Change] = {}
    for change in batch:
        newest[change.key] = max(newest.get(change.key, change), change, key=lambda each: each.seq)
    return list(newest.values())


def deletes_first(record: Record, before: str) -> str:
    """The time, and at one time the kind of operation: a delete is the last word (Q10)."""
    return f"{body(record)['source']['ts_ms']:020}{'dcur'.index(body(record)['op']) == 0:d}"


def as_text(record: Record, before: str) -> str:
    """The position as it is written."""
    source = body(record)["source"]
    return f"{source['file']}:{source['pos']}"


def bare(change: Change, columns: Sequence[str]) -> State:
    """A delete that leaves its columns as if they had never been seen."""
    said = RIGHT.told(change, columns)
    return State(said.seq, said.deleted, dict.fromkeys(columns, "")) if said.deleted else said


CONTROLS = {
    "ordering by ts_ms": (Rule(by_time), recorded("maria_same_second", "one batch", 1, 2, 3)),
    "a delete wins at one time": (Rule(deletes_first), recorded("pg_delete_reinsert", "one batch", 1, 2, 3)),
    "keeping the newest per batch": (replace(RIGHT, kept=newest_of_each_key), recorded("pg_toast", "one batch", 1, 3)),
    "forgetting deletes": (replace(RIGHT, forgets_deletes=True), recorded("pg_delete_reinsert", "backwards", 1, 2, 3)),
    "bare '' under a delete": (replace(RIGHT, told=bare), A_LATE_INSERT),
    "running-maximum majors": (Rule(running_maximum), BEFORE_THE_FIRST_FLUSH),
    "positions as text": (Rule(as_text), THE_MILLIONTH_FILE),
}


@pytest.mark.parametrize("control", CONTROLS)
def test_a_rule_of_others_ends_wrong_where_ours_ends_right(control: str) -> None:
    """P13, Q4, Q10, M5: on the same records in the same batches."""
    rule, scenario = CONTROLS[control]
    assert scenario.ends(RIGHT) == scenario.expected, scenario.name
    assert scenario.ends(rule) != scenario.expected, scenario.name


@pytest.mark.parametrize("delivery", ["one batch", "one by one", "backwards"])
@pytest.mark.parametrize(
    ("case", "keys"), [("maria_same_second", (1, 2, 3)), ("pg_delete_reinsert", (1, 2, 3)), ("pg_toast", (1, 3, 4))]
)
def test_the_plain_rule_ends_as_the_source_did(case: str, keys: tuple[int, ...], delivery: str) -> None:
    """P1, P2, P6: what the controls are measured against is right itself, in every delivery."""
    scenario = recorded(case, delivery, *keys)
    assert scenario.ends(RIGHT) == scenario.expected


def wrong(joined: Join, tell: Callable[[HistoryChange], State] = told) -> int:
    """Deliveries of histories up to four changes that do not show what the source holds."""
    short = (history for history in EVERY if len(history) <= 4)
    return sum(shown(end) != at_source(history) for history in short for end in delivered(history, joined, tell))


def newest_wins_whole(one: State, other: State) -> State:
    return max(one, other, key=lambda each: each.seq)


def last_delivered_wins(one: State, other: State) -> State:
    return other


def deletes_are_forgotten(one: State, other: State) -> State:
    """The row is removed and nothing remembers when."""
    return other if one.deleted else merge_states(one, other)


def bare_of(change: HistoryChange) -> State:
    """A delete that leaves its columns as if they had never been seen."""
    held = told(change)
    return State(held.seq, held.deleted, dict.fromkeys(COLUMNS, "")) if held.deleted else held


def by_clock(change: HistoryChange) -> State:
    """A time that ties: two changes share each instant."""
    kind, seq = change
    return told((kind, f"{int(seq) // 20:02}"))


WEAKER = {
    "the newest change wins whole": (newest_wins_whole, told),
    "the last delivered wins": (last_delivered_wins, told),
    "deletes are forgotten": (deletes_are_forgotten, told),
    "bare '' under a delete": (merge_states, bare_of),
}


def test_every_weaker_join_ends_wrong_in_some_delivery(capsys: pytest.CaptureFixture[str]) -> None:
    """P13, over all histories of up to four changes of one key; ours is right in each."""
    found = {name: wrong(joined, tell) for name, (joined, tell) in WEAKER.items()}
    assert wrong(merge_states) == 0
    assert all(found.values()), found
    with capsys.disabled():
        told_of = ", ".join(f"{name}: {count}" for name, count in found.items())
        sys.stdout.write(f"\ndeliveries that end wrong: {told_of}\n")


def test_under_a_time_that_ties_the_order_of_delivery_decides() -> None:
    """P13, L1."""
    short = (history for history in EVERY if len(history) <= 4)
    ends = [[shown(end) for end in delivered(history, newest_wins_whole, by_clock)] for history in short]
    assert any(end != each[0] for each in ends for end in each)
