"""``replicator plan`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.errors import ConfigError
from replicator.lake import Lake
from tests.cli import said

pytestmark = pytest.mark.spark


def test_models_are_told_in_their_order_with_what_they_wait_for(spark: SparkSession, tmp_path: Path) -> None:
    """In a lake without tables each model waits for its input, and nothing is written; a wrong name is refused. A model
    stops whose input cannot be read, as in a run.
    """
    for folder, name, text in (
        ("", "dev.yaml", f"lake: {{root: {tmp_path}/lake}}\n"),
        ("sources", "s.yaml", "name: s\ninclude: [db.orders]\n"),
        ("models", "orders.sql", "SELECT id FROM {orders}"),
        ("models", "orders.yaml", "key: [id]\ninputs: {orders: s/db.orders}\ncolumns: {id: integer}\n"),
        ("models", "again.sql", "SELECT id FROM {orders}"),
        ("models", "again.yaml", "key: [id]\ninputs: {orders: orders}\ncolumns: {id: integer}\n"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text, encoding="utf-8")
    where = ("--conf", str(tmp_path), "--env", "dev")
    told = json.loads(said("plan", *where, "--json"))
    assert [(each["model"], each["action"], each["reason"]) for each in told] == [
        ("orders", "waits", "input missing"),
        ("again", "waits", "input missing"),
    ]
    assert "input s/db.orders does not exist yet" in told[0]["why"]
    assert "again" in said("plan", "again", *where)
    assert not (tmp_path / "lake").exists()
    silver = Lake(f"{tmp_path}/lake").silver("s", "db.order")
    spark.range(1).write.format("delta").save(silver.location)
    assert "did you mean 's/db.order'?" in json.loads(said("plan", *where, "--json"))[0]["why"]
    torn = Path(Lake(f"{tmp_path}/lake").silver("s", "db.orders").location, "_delta_log", f"{0:020d}.json")
    torn.parent.mkdir(parents=True)
    torn.write_text('{"commitInfo":{"timest', encoding="utf-8")
    stops, waits = json.loads(said("plan", *where, "--json"))
    assert (stops["action"], stops["reason"], waits["action"]) == ("stops", "error", "waits")
    assert "the engine failed: " in stops["why"]
    with pytest.raises(ConfigError, match="model 'agein' does not exist; did you mean 'again'"):
        said("plan", "agein", *where)
