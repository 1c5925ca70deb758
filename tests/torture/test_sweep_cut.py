"""The short sweep over ``consistency: transaction``, in memory: who dies there shows no part of a transaction."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.failpoints import POINTS, Killed
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.tick.source_state import SourceState
from tests.golden.run import Run
from tests.torture.compare import half_shown
from tests.torture.origin import CUSTOMERS, ORDERS, Origin, Sent
from tests.torture.reaper import Reaper, Toll, once_each
from tests.torture.test_sweep import SEED

pytestmark = pytest.mark.spark

OF_CUTS = [name for name in POINTS if name.startswith("cut.")]
COLUMNS = {CUSTOMERS: {"id": "int", "name": "string"}, ORDERS: {"id": "int", "customer": "int", "total": "int"}}


def taken(run: Run, sent: list[Sent]) -> None:
    """Records of ``shop`` into bronze."""
    kafka = {"partition": 0, "tstype": "create", "ts": 1, "headers": []}
    mine = [asdict(each) | kafka for each in sent if each.topic.startswith("shop.")]
    run.ingest([{**told, "payload": told.pop("value")} for told in mine])


def ticked(run: Run, reaper: Reaper) -> str | None:
    """A new process makes a tick; where it died."""
    at = replace(run.at, state=SourceState())
    try:
        with failpoints.watched(reaper):
            accounts = silver.refine(run.spark, at)
        assert [str(each.error) for each in accounts if each.error is not None] == []
    except Killed:
        pass
    return reaper.died_at


def shown(run: Run, table: str) -> dict[int, dict[str, Any]]:
    """What readers see, by key."""
    return {row["id"]: row for row in run.shown(table).values()}


def test_transactions_stay_whole_wherever_a_tick_died(exact: SparkSession, tmp_path: Path) -> None:
    """H3, P3: whenever silver says that it shows whole transactions it does, and in the end all of them."""
    tables = tuple(
        Declaration(name, tuple(Column(*told) for told in columns.items()), keys=("id",))
        for name, columns in COLUMNS.items()
    )
    run = Run(exact, tmp_path, SourceSpec("shop", "", tables=tables, whole_transactions=True))
    origin, toll = Origin(SEED, whole=True), Toll()
    for _ in range(2):
        taken(run, origin.batch())
    assert ticked(run, Reaper(toll, lambda _: False, recovering=False)) is None
    taken(run, origin.batch())
    due, deaths = once_each(set(POINTS).difference(OF_CUTS)), 0
    while ticked(run, Reaper(toll, due, recovering=deaths > 0)):
        deaths += 1
        assert half_shown(exact, run.at, origin.states) == []
    assert set(toll.kills) == set(OF_CUTS)
    assert {table: shown(run, table) for table in COLUMNS} == {table: origin.shown[table] for table in COLUMNS}
    assert origin.shown != origin.rows
    taken(run, origin.rest())
    assert ticked(run, Reaper(toll, lambda _: False, recovering=False)) is None
    assert {table: shown(run, table) for table in COLUMNS} == {table: origin.rows[table] for table in COLUMNS}
