"""The schema's history as a control row: no Spark needed."""

from __future__ import annotations

import json

from replicator.formats.control import MemoryControl
from replicator.stages.tick import schema_ledger
from replicator.stages.tick.schema_ledger import Ledger
from replicator.transforms.columns.policy import ColumnChange

ADDED, VERSIONED = ColumnChange("added", "w", "", "int"), ColumnChange("versioned", "v", "int", "string")
FULL = (
    Ledger("b1")
    .recorded([(ADDED, "20"), (VERSIONED, "30")])
    .with_sightings({("v", "number"): "10", ("v", "STRING"): "30"})
    .with_approved([VERSIONED])
    .with_encodings({("v", "number"): "time", ("v", "STRING"): "string"})
)


def test_a_ledger_comes_back_as_it_was_written() -> None:
    """Through JSON, whose objects have no tuples for keys."""
    control = MemoryControl()
    control.put("p", FULL.value())
    assert schema_ledger.load(control, "p", "b1") == FULL
    assert json.loads(json.dumps(FULL.value()))["changes"][0] == {
        "at": "20",
        "change": "added",
        "column": "w",
        "from": "",
        "to": "int",
    }


def test_a_ledger_about_another_bronze_says_nothing() -> None:
    """Positions and approvals of records that are gone."""
    control = MemoryControl()
    assert schema_ledger.load(control, "p", "b1") == Ledger("b1")
    control.put("p", FULL.value())
    assert schema_ledger.load(control, "p", "b2") == Ledger("b2")


def test_telling_a_ledger_the_same_again_changes_nothing() -> None:
    """A batch is repeated after a crash; a late record only makes things older."""
    again = FULL.recorded([(VERSIONED, "30")]).with_sightings({("v", "STRING"): "40"}).with_approved([VERSIONED])
    assert again == FULL
    assert FULL.recorded([(ADDED, "15")]).changes[ADDED] == "15"
    assert FULL.with_sightings({("v", "STRING"): "05"}).since["v", "STRING"] == "05"
