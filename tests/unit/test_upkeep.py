"""Which tables a run looks after."""

from __future__ import annotations

from replicator.lake import Lake
from replicator.operate.maintain import written_by


def test_a_run_keeps_the_tables_of_its_own_stages_only() -> None:
    """Those of others are written under a lease that it does not hold (reliability.md F-W3)."""
    lake = Lake("/lake")
    bronze, gold = ("bronze", lake.bronze("s")), ("gold", lake.gold("m"))
    silver = [
        ("silver", lake.silver("s", "a.b")),
        ("history", lake.history("s", "a.b")),
        ("dead letters", lake.dead_letters("s")),
    ]
    every = [bronze, *silver, gold]
    assert written_by(("silver", "publish"), every) == silver
    assert written_by(("gold", "bronze"), every) == [bronze, gold]
    assert written_by(("publish",), every) == []
