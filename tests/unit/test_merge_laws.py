"""The join is a semilattice (debezium.md M2), shown exhaustively on small histories against a model in plain Python.

A history has one change at each of three positions, of four kinds. A state is what any part of a history leaves behind.
One job joins every state of a history with every other; the laws are then read off the table of results.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.transforms import fold, merge
from tests.builders import SILVER, UNSENT, Change, changes, delete, gone, made, states, upsert

pytestmark = pytest.mark.spark

POSITIONS = ("10", "20", "30")
KINDS = ("full", "null", "partial", "delete")
PARTS = [part for size in (1, 2, 3) for part in combinations(POSITIONS, size)]
HISTORIES = list(product(KINDS, repeat=len(POSITIONS)))
Part = tuple[str, ...]


def change(kind: str, seq: str) -> Change:
    value = {"full": f"b{seq}", "null": None, "partial": UNSENT}
    return delete(seq) if kind == "delete" else upsert(seq, int(seq), value[kind])


def left_behind(history: tuple[str, ...], part: Part) -> tuple[Any, ...]:
    """The model: per register the value at the greatest position (section M, `state`, `join` and `store`)."""
    sent = {seq: change(kind, seq) for kind, seq in zip(history, POSITIONS, strict=True) if seq in part}
    newest = sent[max(sent)]
    registers: dict[str, tuple[str, Any]] = {"a": ("", None), "b": ("", None)}
    for seq, each in sent.items():
        for column, held in registers.items():
            place = f"{seq}-" if each.deleted else "" if column in each.unsent else seq
            value = None if each.deleted or not place else getattr(each, column)
            registers[column] = (place, value) if place > held[0] else held
    differing = {c: place for c, (place, _) in registers.items() if place != newest.seq and not newest.deleted}
    return (registers["a"][1], registers["b"][1], newest.seq, newest.deleted, differing or None)


def silver(key: int, left: tuple[Any, ...]) -> tuple[Any, ...]:
    a, b, seq, deleted, column_seq = left
    return (key, a, b, seq, deleted, column_seq, int(seq))


@pytest.fixture(scope="module")
def joined(exact: SparkSession) -> dict[tuple[Any, Part, Part], tuple[Any, ...]]:
    """(history, stored part, changed part) -> the joined state, with `changes_something` behind it."""
    pairs = [(history, one, other) for history in HISTORIES for one in PARTS for other in PARTS]
    sides = merge.Sides()
    stored, incoming = (
        made(exact, [silver(at, left_behind(pair[0], pair[which])) for at, pair in enumerate(pairs)], SILVER)
        for which in (1, 2)
    )
    rows = merge.merge_rows(stored, incoming, ["k"])
    met = stored.alias(sides.stored).join(incoming.alias(sides.change), merge.same_key(["k"], sides))
    touched = met.select(sides.of_stored("k").alias("k"), merge.has_effect(sides).alias("touched"))
    result = rows.join(touched, "k").collect()
    found, flags = states(result), {row["k"]: row["touched"] for row in result}
    return {pair: (*found[at], flags[at]) for at, pair in enumerate(pairs)}


def test_joining_two_states_gives_the_state_of_all_their_changes(
    joined: dict[tuple[Any, Part, Part], tuple[Any, ...]],
) -> None:
    """The rule of section M, for every pair of parts of every history."""
    wrong = {
        case: result[:5]
        for case, result in joined.items()
        if result[:5] != left_behind(case[0], tuple(sorted({*case[1], *case[2]})))
    }
    assert wrong == {}


def test_the_join_is_idempotent(joined: dict[tuple[Any, Part, Part], tuple[Any, ...]]) -> None:
    """The same batch twice is as once."""
    assert all(result[:5] == left_behind(h, one) for (h, one, other), result in joined.items() if one == other)


def test_the_join_is_commutative(joined: dict[tuple[Any, Part, Part], tuple[Any, ...]]) -> None:
    """The order of arrival does not matter."""
    assert all(result[:5] == joined[h, other, one][:5] for (h, one, other), result in joined.items())


def test_the_join_is_associative(joined: dict[tuple[Any, Part, Part], tuple[Any, ...]]) -> None:
    """Neither do the cuts between batches: every intermediate result is itself a state of the table."""
    parts = {history: {str(left_behind(history, part)): part for part in PARTS} for history in HISTORIES}

    def named(history: Any, result: tuple[Any, ...]) -> Part:
        return parts[history][str(result[:5])]

    for history in HISTORIES:
        for one, two, three in product(PARTS, repeat=3):
            left = joined[history, named(history, joined[history, one, two]), three][:5]
            right = joined[history, one, named(history, joined[history, two, three])][:5]
            assert left == right, (history, one, two, three)


def test_a_row_is_written_exactly_when_the_join_changes_it(
    joined: dict[tuple[Any, Part, Part], tuple[Any, ...]],
) -> None:
    """A MERGE may skip what `changes_something` denies, and writes nothing that is equal already."""
    wrong = {
        case: result for case, result in joined.items() if result[5] != (result[:5] != left_behind(case[0], case[1]))
    }
    assert wrong == {}


def test_folding_changes_gives_the_same_as_joining_them(exact: SparkSession) -> None:
    """M5: for every part of every history, in one aggregation, whether every change knows the other column or not."""
    cases = list(product(HISTORIES, PARTS))
    sent = [
        (at, change(kind, seq))
        for at, (history, part) in enumerate(cases)
        for kind, seq in zip(history, POSITIONS, strict=True)
        if seq in part
    ]
    assert changes(exact, sent).agg(fold.unknown_columns()).collect() == [(["b"],)]
    for unknown in (["b"], ["a", "b"], ["k", "b"]):
        found = states(fold.fold(changes(exact, sent), ["k"], unknown).collect())
        assert {cases[at]: state for at, state in found.items()} == {case: left_behind(*case) for case in cases}


@pytest.mark.parametrize("unknown", [[], ["b"]])
def test_a_deleted_row_keeps_its_key_and_nothing_else(exact: SparkSession, unknown: list[str]) -> None:
    """M1, F3, E9: the last image of a deleted row may be filler."""
    sent = [(1, upsert("10", 1, "b")), (1, Change("20", a=0, b="", deleted=True))]
    assert states(fold.fold(changes(exact, sent), ["k"], unknown).collect()) == {1: gone("20")}


def test_the_fast_fold_gives_the_same_rows_where_every_change_is_whole(exact: SparkSession) -> None:
    """P9: without unavailable values the newest change wins whole, byte for byte."""
    whole = [history for history in HISTORIES if "partial" not in history]
    sent = changes(exact, [(at, change(kind, seq)) for at, history in enumerate(whole)
                           for kind, seq in zip(history, POSITIONS, strict=True)])  # fmt: skip
    fast, slow = (fold.fold(sent, ["k"], unknown) for unknown in ([], ["a"]))
    assert fast.columns == slow.columns
    assert sorted(fast.collect()) == sorted(slow.collect())


def test_a_column_that_was_added_later_has_the_rows_own_position(exact: SparkSession) -> None:
    """Without an entry of its own it is NULL at the row's position: an older value does not fill it (M2)."""
    stored = made(exact, [silver(1, (5, None, "20", False, None))], SILVER)
    older = made(exact, [silver(1, (4, "x", "10", False, None))], SILVER)
    assert states(merge.merge_rows(stored, older, ["k"]).collect()) == {1: (5, None, "20", False, None)}


def test_time_decides_nothing_in_the_join(exact: SparkSession) -> None:
    """L1: the fold and the join have one order, ``_seq``; a newer change may say that it is older."""
    older = made(exact, [(1, 1, "x", "10", False, None, 99)], SILVER)
    newer = made(exact, [(1, 2, "y", "20", False, None, 7)], SILVER)
    for stored, incoming in ((older, newer), (newer, older)):
        assert states(merge.merge_rows(stored, incoming, ["k"]).collect()) == {1: (2, "y", "20", False, None)}


def test_rows_that_meet_nobody_stay_as_they_are(exact: SparkSession) -> None:
    """Both sides of the join keep their own keys."""
    one, other = (made(exact, [silver(k, (k, "x", "10", False, None))], SILVER) for k in (1, 2))
    assert states(merge.merge_rows(one, other, ["k"]).collect()) == {k: (k, "x", "10", False, None) for k in (1, 2)}


def test_keys_of_several_columns_and_odd_names_meet(exact: SparkSession) -> None:
    """Columns are quoted, and every part of the key counts."""
    ddl = f"`a.b` INT, `c d` STRING, `v``w` INT, {merge.SYSTEM_DDL}"
    stored = made(exact, [(1, "x", 1, "10", False, None, 1), (1, "y", 1, "10", False, None, 1)], ddl)
    incoming = made(exact, [(1, "x", 2, "20", False, None, 2)], ddl)
    rows = merge.merge_rows(stored, incoming, ["a.b", "c d"]).select("`c d`", "`v``w`").collect()
    assert sorted(map(tuple, rows)) == [("x", 2), ("y", 1)]
