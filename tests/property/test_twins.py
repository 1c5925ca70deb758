"""The plain rule and Spark's expressions are one rule, on the same vectors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from replicator.transforms import fold, merge
from replicator.transforms.row_state import State, merge_states
from tests.builders import UNSENT, changes, delete, upsert
from tests.property.test_laws import EVERY, History, told

pytestmark = pytest.mark.spark


def plain(history: History) -> State:
    return reduce(merge_states, map(told, history))


def rows_of(spark: SparkSession, histories: Iterable[tuple[int, History]]) -> DataFrame:
    """One folded silver row per history; its key is the history's number."""
    sent = [
        (
            at,
            delete(seq)
            if kind == "delete"
            else upsert(seq, int(seq), UNSENT if kind in ("arrive", "partial") else seq),
        )
        for at, history in histories
        for kind, seq in history
    ]
    return fold.fold(changes(spark, sent), ["k"], ["b"])


def as_state(row: Row) -> State:
    default = row["_seq"] + ("-" if row["_deleted"] else "")
    places = {column: (row["_column_seq"] or {}).get(column, default) for column in ("a", "b")}
    return State(row["_seq"], row["_deleted"], places)


def check(rows: list[Row]) -> None:
    for row in rows:
        expected = plain(EVERY[row["k"]])
        assert as_state(row) == expected, EVERY[row["k"]]
        known = expected.places["b"] and not expected.places["b"].endswith("-")
        assert row["b"] == (expected.places["b"] if known else None)
    assert len(rows) == len(EVERY)


def test_folding_a_whole_history_is_joining_its_changes(exact: SparkSession) -> None:
    """M5, for all 516 histories in one job: positions and values."""
    check(rows_of(exact, enumerate(EVERY)).collect())


def test_merging_the_halves_of_a_history_is_joining_its_changes(exact: SparkSession) -> None:
    """M2: older half stored, newer half incoming, and the other way round."""
    halves = [(history[: len(history) // 2], history[len(history) // 2 :]) for history in EVERY]
    old, new = (rows_of(exact, ((at, half[which]) for at, half in enumerate(halves))) for which in (0, 1))
    for stored, incoming in ((old, new), (new, old)):
        columns = [*stored.columns]
        check(merge.merge_rows(stored.localCheckpoint(), incoming.select(columns).localCheckpoint(), ["k"]).collect())
