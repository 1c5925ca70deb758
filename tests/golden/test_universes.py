"""Every recorded case in every way in which its records may come: silver ends the same, and as the source did.

``python -m tests.golden.record`` writes the cases; each folder's ``why.md`` says what it is for. How a stream is sent
in many ways at once is told in ``universes.py``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pytest
from pyspark.sql import SparkSession

from replicator.formats.delta import DeltaFormat
from replicator.spec import Declaration, SourceSpec
from replicator.stages.account import Account
from tests.builders import exact_session
from tests.golden.cases import Case, cases
from tests.golden.held import Held, Key, Rows, by_universe, content, differing, live, unknown
from tests.golden.run import Run
from tests.golden.universes import (
    EVERY,
    FEW,
    WHOLE,
    Record,
    Universe,
    batches,
    declared,
    key_names,
    keyed,
    parted,
    parted_name,
    truncates,
    universes,
)

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]  # one set-up sends everything

SEED = 7


@dataclass(frozen=True)
class Stream:
    """The records of one table of a case, and its copies."""

    case: Case
    table: str

    @cached_property
    def records(self) -> list[Record]:
        """As they were recorded."""
        return [event for event in self.case.events if event["topic"] == f"{self.case.name}.{self.table}"]

    @cached_property
    def parts(self) -> bool:
        """Whether each copy is a table of its own."""
        return bool(truncates(self.records))

    @cached_property
    def copies(self) -> list[Universe]:
        """The universes; their places in the list are their numbers."""
        return universes(self.records, SEED, FEW if self.parts else EVERY)

    @property
    def whole(self) -> tuple[int, int]:
        """A universe, and the batch behind which it has taken every record once, all in one batch."""
        return (next(iter(self.of_kind("replayed"))), 0) if self.parts else (next(iter(self.of_kind(WHOLE))), -1)

    def of_kind(self, *kinds: str) -> dict[int, str]:
        """Universes by kind, with their names."""
        return {at: copy.name for at, copy in enumerate(self.copies) if copy.kind in kinds}

    @cached_property
    def expected(self) -> Rows:
        """What the table held in the end, by key."""
        keys = key_names(self.records[0])
        return {tuple(str(row[key]) for key in keys): row for row in self.case.expected[self.table]}

    def declarations(self) -> list[Declaration]:
        """Of the table, or of its copies."""
        own = [each for each in self.case.declarations if each.table == self.table]
        if not self.parts:
            return [declared(each) for each in own]
        return [replace(each, table=parted_name(self.table, at)) for each in own for at in range(len(self.copies))]

    def batches(self) -> list[list[Record]]:
        """What is sent of it."""
        return batches(self.copies, parted if self.parts else keyed)

    def state(self, run: Run) -> Held:
        """What silver has of it now."""
        if not self.parts:
            return by_universe(run.read(self.table)) if run.exists(self.table) else {}
        tables = {at: parted_name(self.table, at) for at in range(len(self.copies))}
        return {at: by_universe(run.read(table)).get(0, {}) for at, table in tables.items() if run.exists(table)}


STREAMS = [Stream(case, table) for case in cases() for table in case.expected]
EACH = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: f"{stream.case.name} {stream.table}")


@dataclass(frozen=True)
class Proof:
    """All cases in one lake: what each table held behind each batch, and what it holds ``rebuilt`` from bronze."""

    states: tuple[Mapping[str, Held], ...]
    rebuilt: Mapping[str, Held]
    accounts: tuple[Account, ...]
    rebuilding: tuple[Account, ...]
    sent: int

    def rows(self, stream: Stream, universe: int, batch: int = -1) -> Rows:
        """What a universe holds behind a batch, the last one if not told."""
        return self.states[batch][stream.table].get(universe, {})


@pytest.fixture(scope="module")
def proof(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Proof:
    """Bronze and the rebuilt silver are in Delta, the silver of the batches is in memory."""
    spec = SourceSpec("golden", ".*", tables=tuple(each for stream in STREAMS for each in stream.declarations()))
    run = Run(exact_session(spark), tmp_path_factory.mktemp("golden"), spec, bronze=DeltaFormat())
    states, sent = [], 0
    for records in zip(*[stream.batches() for stream in STREAMS], strict=True):
        sent += run.feed([record for part in records for record in part])
        states.append({stream.table: stream.state(run) for stream in STREAMS})
    again = run.rebuilt(memory=False)
    rebuilt = {stream.table: stream.state(again) for stream in STREAMS}
    return Proof(tuple(states), rebuilt, tuple(run.accounts), tuple(again.accounts), sent)


@EACH
def test_every_universe_ends_as_the_source_did(proof: Proof, stream: Stream) -> None:
    """P1 to P6, P8, P12: the live rows are the source's, in the columns that it has in the end (silver never drops
    one).

    Only a value that came after the row that left it out, under another key, or that compaction took away, may be
    unknown, and is flagged then.
    """
    wrong = {}
    ends = [(copy.kind, copy.name, proof.rows(stream, at)) for at, copy in enumerate(stream.copies)]
    for kind, name, rows in [*ends, (WHOLE, WHOLE, proof.rows(stream, *stream.whole))]:
        if kind == "alone":
            continue  # it ends in the midst of the stream, see below
        found, expected = live(rows), stream.expected
        lacking = {key: unknown(row) for key, row in found.items()}
        assert kind in ("shuffled", "last") or not any(lacking.values()), name
        columns = next(iter(expected.values()), {})
        told = {
            key: {c: v for c, v in row.items() if c in columns and c not in lacking[key]} for key, row in found.items()
        }
        wanted = {key: {c: v for c, v in row.items() if c not in lacking.get(key, ())} for key, row in expected.items()}
        wrong[name] = differing(told, wanted)
    assert {name: found for name, found in wrong.items() if found} == {}


@EACH
def test_one_record_per_batch_ends_as_one_batch(proof: Proof, stream: Stream) -> None:
    """P2, by induction over the records: each of them alone, upon all before it, is all of them in one batch."""
    alone = stream.of_kind("alone")
    if len(alone) < len(stream.records):
        pytest.skip("not every record of it has a universe")
    wrong = {}
    for at, following in zip(alone, [*list(alone)[1:], stream.whole[0]], strict=True):
        wrong[alone[at]] = differing(proof.rows(stream, at, 1), proof.rows(stream, following, 0))
    assert {name: found for name, found in wrong.items() if found} == {}


@EACH
def test_silver_is_the_same_byte_for_byte(proof: Proof, stream: Stream) -> None:
    """P1, P2, P4: deleted rows and positions too, wherever records keep their offsets, unless a value is not known.

    A truncate leaves no mark in rows that it found in its own batch: of such streams the live rows are compared.
    """
    seen = live if stream.parts else dict
    whole = seen(proof.rows(stream, *stream.whole))
    wrong = {}
    for at, name in stream.of_kind("shuffled", "compacted").items():
        rows = seen(proof.rows(stream, at))
        flagged = {key for key, row in rows.items() if unknown(row)}
        wrong[name] = differing(without(rows, flagged), without(whole, flagged))
    assert {name: found for name, found in wrong.items() if found} == {}


@EACH
def test_a_replay_moves_positions_only(proof: Proof, stream: Stream) -> None:
    """P3: 1 2 3 2 3 2 3 with new offsets; deleted rows too."""
    seen = live if stream.parts else dict
    whole = content(seen(proof.rows(stream, *stream.whole)))
    wrong = {
        name: differing(content(seen(proof.rows(stream, at))), whole) for at, name in stream.of_kind("replayed").items()
    }
    assert {name: found for name, found in wrong.items() if found} == {}


@EACH
def test_silver_built_again_from_bronze_is_the_same(proof: Proof, stream: Stream) -> None:
    """P10: all of bronze at once, in Delta, byte for byte; what was not known for the order of coming is known now."""
    seen = live if stream.parts else dict
    wrong = {}
    for at, copy in enumerate(stream.copies):
        wanted = proof.rows(stream, *(stream.whole if copy.kind in ("shuffled", "compacted") else (at, -1)))
        wrong[copy.name] = differing(seen(proof.rebuilt[stream.table].get(at, {})), seen(wanted))
    assert {name: found for name, found in wrong.items() if found} == {}


def test_every_record_is_accounted_for(proof: Proof, capsys: pytest.CaptureFixture[str]) -> None:
    """P11: none is a dead letter, none is left over, in any batch, and no table stops."""
    for accounts in (proof.accounts, proof.rebuilding):
        assert [str(account.error) for account in accounts if account.error] == []
        assert sum(account.read for account in accounts) == proof.sent
        assert sum(account.dead_lettered + account.residue for account in accounts) == 0
    kinds = Counter(copy.kind for stream in STREAMS for copy in stream.copies)
    with capsys.disabled():
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        sys.stdout.write(
            f"\n{len(STREAMS)} streams of {len(cases())} cases in {sum(kinds.values())} universes ({told}), "
            f"{proof.sent:,} records\n"
        )


def without(rows: Rows, keys: set[Key]) -> Rows:
    """Rows without some."""
    return {key: row for key, row in rows.items() if key not in keys}
