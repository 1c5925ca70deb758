"""``replicator status``: how far a model is behind what it is made of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.status import Surroundings, standings
from replicator.spec import Model, ModelColumn
from replicator.stages import gold
from replicator.stages.warehouse import Warehouse
from tests.builders import made

pytestmark = pytest.mark.spark


def test_gold_is_behind_by_the_commits_of_its_inputs_that_it_has_not_read(spark) -> None:
    """Silver that went on is told, and gold tables that no configuration names are there all the same."""
    tables, control, lake = MemoryFormat(), MemoryControl(), Lake("memory")
    customers = lake.silver("s", "db.customers", ("id",))
    model = Model("m", "SELECT id FROM {c}", {"c": "s/db.customers"}, ("id",), (ModelColumn("id", "integer"),))
    tables.append(made(spark, [(1,)], "id int"), customers, None)
    [built] = gold.refresh(spark, [model], Warehouse(tables, tables, control, lake))
    assert built.error is None
    at = Surroundings(lake, tables, control, readers={}, intakes={}, models=(model,), sinks={})
    assert [(each.layer, each.rows, each.lag_events) for each in standings(spark, at)] == [("gold", 1, 0)]
    tables.append(made(spark, [(2,), (3,)], "id int"), customers, None)
    assert [(each.layer, each.rows, each.lag_events) for each in standings(spark, at)] == [("gold", 1, 1)]
    unknown = replace(at, models=())
    assert [(each.table, each.rows, each.lag_events) for each in standings(spark, unknown)] == [("m", 1, None)]
