"""The plain twin and Spark's ``transforms/history.py`` are one rule: every history in every order, a key for each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.transforms import history
from replicator.transforms.merge import SYSTEM_COLUMNS
from tests.builders import made
from tests.property.intervals import Event, Interval, histories, of_all, replayed

pytestmark = pytest.mark.spark

CHANGES = "k INT, a STRING, b STRING, _seq STRING, _deleted BOOLEAN, _source_ts_ms BIGINT, _unavailable ARRAY<STRING>"
COLUMNS = ("k", "a", "b", *history.COLUMNS, *SYSTEM_COLUMNS)

# A truncate reaches every key, so keys of one table share theirs: after the second change and after the fourth.
KINDS = (("insert", "arrive"), ("update", "partial", "hollow", "delete"))
TRUNCATES = {Event("truncate", 2, 50).seq: 2_500, Event("truncate", 4, 50).seq: None}


def batch(spark: SparkSession, keyed: Sequence[tuple[int, Event]]) -> DataFrame:
    """Decoded changes, each of a key."""
    rows = [
        (key, None if e.ends else e.a, e.b, e.seq, e.ends, 1000 * e.place, [] if e.ends or e.b is not None else ["b"])
        for key, e in keyed
    ]
    return history.states(made(spark, rows, CHANGES), ["k"])


class Kept:
    """A history table, written by differences as a format does it."""

    def __init__(self, spark: SparkSession, *, partial: bool = True) -> None:
        self.spark, self.partial = spark, partial
        self.rows: dict[tuple[int, str], tuple[object, ...]] = {}
        self.schema = ""
        self.written = 0

    def take(self, keyed: Sequence[tuple[int, Event]], truncates: history.Truncates | None = None) -> None:
        changed = batch(self.spark, keyed)
        stored = made(self.spark, self.rows.values(), self.schema) if self.rows else None
        found = history.difference(stored, changed, ["k"], truncates or {}, partial=self.partial)
        rows = found.select(*COLUMNS, "_op")
        self.schema = ", ".join(f"{name} {kind}" for name, kind in rows.drop("_op").dtypes)
        difference = rows.collect()
        self.written = len(difference)
        assert len({(row["k"], row["__START_AT"]) for row in difference}) == len(difference)
        for row in difference:
            place = (row["k"], row["__START_AT"])
            if row["_op"] == "delete":
                del self.rows[place]
            else:
                self.rows[place] = tuple(row)[:-1]

    def intervals(self) -> dict[int, list[Interval]]:
        """By key, in their order."""
        found: dict[int, list[Interval]] = {}
        rows = made(self.spark, self.rows.values(), self.schema).where(history.is_interval())
        for row in rows.orderBy("__START_AT").collect():
            found.setdefault(row["k"], []).append((row["__START_AT"], row["__END_AT"], row["a"], row["b"]))
        return found


def with_truncates(records: Sequence[Event]) -> list[Interval]:
    return of_all([*records, Event("truncate", 2, 50), Event("truncate", 4, 50)])


def test_every_order_one_change_a_batch_ends_in_the_intervals_of_the_twin(exact: SparkSession) -> None:
    """P1, P2: all orders of all histories of three changes; the truncates come with the second."""
    universes = [order for each in histories(3, KINDS) for order in permutations(each)]
    kept = Kept(exact)
    for at in range(3):
        kept.take([(key, order[at]) for key, order in enumerate(universes)], TRUNCATES if at else {})
    expected = {key: with_truncates(order) for key, order in enumerate(universes)}
    assert kept.intervals() == {key: rows for key, rows in expected.items() if rows}
    kept.take([(key, order[1]) for key, order in enumerate(universes)], TRUNCATES)
    assert kept.written == 0


def test_replayed_tails_in_random_cuts_end_the_same(exact: SparkSession) -> None:
    """P3: all at once, in order, and shuffled over three batches: the same table, copies or not."""
    dice = random.Random(11)
    universes = [replayed(each, start) for each in histories(4, KINDS) for start in (0, 2)]
    whole, cut = Kept(exact), Kept(exact)
    whole.take([(key, e) for key, records in enumerate(universes) for e in records], TRUNCATES)
    batches: list[list[tuple[int, Event]]] = [[], [], []]
    for key, records in enumerate(universes):
        for event in records:
            dice.choice(batches).append((key, event))
    for each, truncates in zip(batches, ({}, TRUNCATES, TRUNCATES), strict=True):
        kept_keys = {place[0] for place in cut.rows}
        assert truncates == {} or kept_keys
        cut.take(dice.sample(each, len(each)), truncates)
    assert cut.rows == whole.rows
    assert whole.intervals() == {k: rows for k, r in enumerate(universes) if (rows := with_truncates(r))}


def test_where_every_change_is_whole_the_short_way_gives_the_same_rows(exact: SparkSession) -> None:
    """P9: without values that were not sent, byte for byte."""
    kinds = (("insert",), ("update", "same", "delete"))
    universes = [replayed(each, 2) for each in histories(4, kinds)]
    short, long = Kept(exact, partial=False), Kept(exact)
    for kept in (short, long):
        kept.take([(key, e) for key, records in enumerate(universes) for e in records], TRUNCATES)
    assert short.rows == long.rows


def test_times_are_those_of_the_changes_at_both_ends(exact: SparkSession) -> None:
    """The source's clock; a truncate without a time ends an interval all the same."""
    kept = Kept(exact)
    kept.take([(1, Event("insert", 1, 1, "x", "x")), (1, Event("insert", 3, 3, "y", "y"))], TRUNCATES)
    rows = made(exact, kept.rows.values(), kept.schema).orderBy("__START_AT")
    times = rows.select(F.unix_millis("__START_TIME").alias("s"), F.unix_millis("__END_TIME").alias("e"), "__END_AT")
    first, second = list(TRUNCATES)
    assert [tuple(row) for row in times.collect()] == [(1000, 2500, first), (3000, None, second)]


WITH_MAP = (
    "k INT, m MAP<STRING, STRING>, _seq STRING, _deleted BOOLEAN, _source_ts_ms BIGINT, _unavailable ARRAY<STRING>"
)


def test_the_order_in_which_a_map_is_written_is_no_state(exact: SparkSession) -> None:
    """A change that changes no value begins no interval."""
    seqs = [Event("insert", at, at).seq for at in (1, 2)]
    rows = [(1, None, seq, False, 1, None) for seq in seqs]
    one, other = (F.expr(f"map({held})") for held in ("'x', 'a', 'y', 'b'", "'y', 'b', 'x', 'a'"))
    sent = made(exact, rows, WITH_MAP).withColumn("m", F.when(F.col("_seq") == seqs[0], one).otherwise(other))
    changed = history.states(sent, ["k"])
    found = history.difference(None, changed, ["k"], {}, partial=False).where(history.is_interval())
    assert [(row["__START_AT"], row["__END_AT"]) for row in found.collect()] == [(seqs[0], None)]


def test_columns_that_are_maps_or_added_later_are_compared_too(exact: SparkSession) -> None:
    """A map cannot be compared by Spark itself; a column that an older row does not have is NULL there."""
    ddl = WITH_MAP
    seqs = [Event("insert", at, at).seq for at in (1, 2, 3)]
    rows = [(1, {"x": value}, seq, False, 1, None) for value, seq in zip("112", seqs, strict=True)]
    changed = history.states(made(exact, rows, ddl), ["k"])
    first = history.difference(None, changed, ["k"], {}, partial=False).localCheckpoint()
    shown = first.where(history.is_interval()).orderBy("__START_AT")
    assert [(row["__START_AT"], row["m"]) for row in shown.collect()] == [(seqs[0], {"x": "1"}), (seqs[2], {"x": "2"})]
    wider = made(
        exact, [(1, {"x": "2"}, 5, Event("insert", 4, 4).seq, False, 1, None)], ddl.replace("_seq", "n INT, _seq", 1)
    )
    after = history.difference(first.drop("_op"), history.states(wider, ["k"]), ["k"], {}, partial=False)
    assert sorted((row["__START_AT"], row["__END_AT"], row["n"]) for row in after.collect()) == [
        (seqs[2], Event("insert", 4, 4).seq, None),
        (Event("insert", 4, 4).seq, None, 5),
    ]
