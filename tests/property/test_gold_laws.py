"""Gold that is kept incrementally equals gold that is computed anew, after every batch of random worlds (gold.md).

``--gold-batches 1000`` plays a thousand batches, ``--gold-seed N`` other ones.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator import failpoints, key_spans
from replicator.failpoints import Killed
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import HISTORY, Lake
from replicator.sinks.memory import MemorySink
from replicator.spec import Model
from replicator.stages import gold, publish, tuning
from replicator.stages.models import refresh_work
from replicator.stages.models.refresh_work import Work
from replicator.stages.models.warehouse import Warehouse
from replicator.transforms.incremental import affected
from replicator.transforms.spans import Spans
from tests.property.gold_worlds import World, live_rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

BATCHES_PER_WORLD = 4


@dataclass
class Played:
    """What became of the batches: how often each action was taken, and the rows that incremental ones affected and
    computed.
    """

    batches: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    affected: int = 0
    computed: int = 0


def play(spark: SparkSession, seed: int, batches: int, *, calm: bool = False) -> Played:
    """Worlds one after the other until so many batches were compared; fails at the first that differs. ``calm`` as of
    worlds: nearly all refreshes are incremental then.
    """
    played = Played()
    while played.batches < batches:
        world = World(seed + played.batches, calm=calm)
        lake, at = Lake("memory"), MemoryFormat()
        warehouse, sink = Warehouse(at, at, MemoryControl(), lake, full_share=2.0, full_bytes=0), MemorySink()
        for _ in range(min(BATCHES_PER_WORLD, batches - played.batches)):
            world.take(spark, at, lake)
            die_somewhere(spark, world, warehouse)
            for built in gold.refresh(spark, world.models, warehouse):
                assert built.error is None, (world.seed, world.batches, built)
                played.actions[built.action] += 1
                if built.action == "incremental":
                    played.affected += built.affected or 0
                    played.computed += built.rows
            publish.publish(spark, world.models, at, lake, sink)
            compare(spark, world, warehouse, sink)
            played.batches += 1
    return played


def die_somewhere(spark: SparkSession, world: World, at: Warehouse) -> None:
    """In some batches a first refresh dies, if it comes to where it should."""
    if not world.calm and world.fate.random() < 0.2:
        point = world.fate.choice(["gold.inputs_noted", "gold.merged", "gold.model_done"])
        with suppress(Killed), failpoints.watched(failpoints.parse(f"{point}:raise:1")):
            gold.refresh(spark, world.models, at)


def compare(spark: SparkSession, world: World, at: Warehouse, sink: MemorySink) -> None:
    """Every model's table, and what was published of it, with the model over the world's own rows."""
    anew: dict[str, DataFrame] = {}
    for model in world.models:
        tables = {name: given.rpartition(".")[2].removesuffix(HISTORY) for name, given in model.inputs.items()}
        inputs: dict[str, Any] = {name: anew[given] if given in anew else live_rows(spark, world, tables[name])
                  for name, given in model.inputs.items()}  # fmt: skip
        anew[model.name] = spark.sql(model.sql, **inputs)
        wanted = rows_of(anew[model.name], model)
        place = (world.seed, world.batches, model.name, model.sql)
        assert rows_of(at.gold.read(spark, at.lake.gold(model.name)), model) == wanted, place
        shown = [column.name for column in model.columns]
        published = {key: {name: row[name] for name in shown} for key, row in wanted.items()}
        assert sink.tables.get(model.name, {}) == published, place


def rows_of(rows: DataFrame, model: Model) -> dict[tuple[Any, ...], dict[str, Any]]:
    collected = [row.asDict() for row in rows.collect()]
    by_key = {tuple(row[column] for column in model.key): row for row in collected}
    assert len(by_key) == len(collected)
    return by_key


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> SparkSession:
    """A session for little data."""
    return tuning.session_for(spark, 0)


def test_incremental_gold_equals_gold_computed_anew(
    small: SparkSession,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Gold.md: trees of up to five tables, inner and left joins, lineage from either side, filters, expressions, an
    explode, one input twice, histories, a model over a model; rows that come, change, refer elsewhere, go, and come
    again; tables that are altered, emptied, built anew or replaced; refreshes that die.
    """
    monkeypatch.setattr(refresh_work, "find_spans", partial(in_turn, turns=cycle([True, False, True])))
    seed, batches = request.config.getoption("--gold-seed"), request.config.getoption("--gold-batches")
    played = play(small, seed, batches)
    with capsys.disabled():
        told = ", ".join(f"{count} {action}" for action, count in sorted(played.actions.items()))
        sys.stdout.write(
            f"\n{played.batches} batches equal ({told}); {played.affected} rows affected, {played.computed} computed\n"
        )
    assert played.batches == batches
    assert played.actions["incremental"] >= batches // 3


def in_turn(work: Work, keys: Sequence[tuple[DataFrame, Sequence[str]]], turns: Iterator[bool]) -> Sequence[Spans]:
    """Every second time as for large work, which looks for keys only where they are."""
    return key_spans.find(keys) if next(turns) else [{} for _ in keys]


@pytest.mark.parametrize("side", ["old", "new"])
def test_without_one_of_the_two_sides_a_difference_is_found(
    small: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """The worlds tell: with the rows of the table alone, or with the rows to come alone, gold goes wrong."""
    touched = affected.affected_rows

    def of_the_table(query: affected.Query, *more: Any) -> DataFrame:
        return touched(lambda inputs: query(inputs).limit(0), *more)

    if side == "old":
        monkeypatch.setattr(affected, "_old_side", lambda stored, _uses: stored.limit(0))
    else:
        monkeypatch.setattr(affected, "affected_rows", of_the_table)
    with pytest.raises(AssertionError):
        play(small, request.config.getoption("--gold-seed"), request.config.getoption("--gold-batches"), calm=True)


def test_where_a_span_of_keys_is_forgotten_a_difference_is_found(
    small: SparkSession, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worlds tell: keys that are looked for elsewhere are not found."""
    monkeypatch.setattr(
        refresh_work, "find_spans", lambda _work, keys: list(map(without_the_first, key_spans.find(keys)))
    )
    with pytest.raises(AssertionError):
        play(small, request.config.getoption("--gold-seed"), request.config.getoption("--gold-batches"), calm=True)


def without_the_first(lie: Spans) -> Spans:
    return {column: each[1:] for column, each in lie.items()}
