"""Which tables a run looks after, and for how long versions are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator.cli import maintain as told
from replicator.cli import purge
from replicator.errors import LeaseLost, ReplicatorError, StoreRefused, TableStopped, Unreachable
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.maintain import LakeTables, maintain
from replicator.spec import Maintained, Table

NOTHING: Any = None
"""The session, which tables in memory do not ask for."""


class Kept(MemoryFormat):
    """Knows for how many hours it was told to keep versions."""

    hours = -1

    def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:  # noqa: ARG002
        self.hours = keep_hours
        return Maintained(0, 0, 0, 0)


@pytest.mark.parametrize(("seconds", "hours"), [(1800, 1), (3600, 1), (3601, 2), (0, 0)])
def test_part_of_an_hour_is_kept_as_one(seconds: int, hours: int) -> None:
    """Formats count whole hours: less would take versions away that somebody reads."""
    kept = Kept()
    [done] = maintain(NOTHING, kept, [("gold", Lake("/lake").gold("m"))], seconds)
    assert (done.error, kept.hours) == (None, hours)


@pytest.mark.parametrize("kind", [Unreachable, StoreRefused, LeaseLost])
def test_upkeep_ends_where_the_lake_is_away_or_not_ours_any_more(kind: type[ReplicatorError]) -> None:
    """No table is to blame, and the next one would wait as long for the same; what broke at one table is told with it,
    and the others are kept.
    """

    class Away(Kept):
        def maintain(self, spark: SparkSession, table: Table, keep_hours: int) -> Maintained:
            if table.name == "broken":
                raise TableStopped("it broke", where=table.name)
            if table.name == "away":
                raise kind("it is away", where=table.name)
            return super().maintain(spark, table, keep_hours)

    every = [("gold", replace(Lake("/lake").gold("m"), name=name)) for name in ("broken", "kept", "away", "next")]
    looked = maintain(NOTHING, Away(), every, 0)
    done = [next(looked), next(looked)]
    with pytest.raises(kind, match="it is away"):
        next(looked)
    assert [(each.table, type(each.error)) for each in done] == [("broken", TableStopped), ("kept", type(None))]


class Asked(MemoryFormat):
    """A lake with a table of each layer, which notes what it is asked for."""

    def __init__(self, lake: Lake) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._children = {
            lake.bronze_root(): ("s",), lake.silver_root("s"): ("a.b",), f"{lake.history_root()}/s": ("a.b",),
            lake.gold_root(): ("m",),
        }  # fmt: skip

    def tables(self, spark: SparkSession, folder: str) -> tuple[str, ...]:  # noqa: ARG002
        self.asked.append(folder)
        return self._children.get(folder, ())

    def version(self, spark: SparkSession, table: Table) -> int | None:  # noqa: ARG002
        self.asked.append(table.location)
        return 1


def test_a_run_keeps_the_tables_of_its_own_stages_only() -> None:
    """Those of others are written under a lease that it does not hold (reliability.md F-W3), and a stage's role may
    have no right to read them.
    """
    lake = Lake("/lake")
    bronze, gold = ("bronze", lake.bronze("s")), ("gold", lake.gold("m"))
    silver = [
        ("silver", lake.silver("s", "a.b")),
        ("history", lake.history("s", "a.b")),
        ("dead letters", lake.dead_letters("s")),
        ("dead letters", lake.dropped_letters("s")),
    ]
    kept = LakeTables(lake, Asked(lake))
    assert kept.tables(NOTHING) == [bronze, *silver, gold]
    assert kept.tables(NOTHING, ("silver", "publish")) == silver
    alone = Asked(lake)
    assert LakeTables(lake, alone).tables(NOTHING, ("gold", "bronze")) == [bronze, gold]
    assert alone.asked == [lake.bronze_root(), lake.gold_root()]
    assert LakeTables(lake, alone).tables(NOTHING, ("publish",)) == []


def test_a_lake_in_which_there_is_nothing_is_said_to_be_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelled root looks as if all was looked after, or as if no file asked for it."""
    told._show([], "s3a://lake", as_json=False)
    purge._show([], as_json=False)
    assert capsys.readouterr().err.splitlines() == [
        "There are no tables in s3a://lake yet.",
        "No table of silver declares purge_after: deleted rows stay.",
    ]
