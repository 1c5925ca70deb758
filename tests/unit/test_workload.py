"""The random workload that runs against real databases: it can be played again, and its statements are legal."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workload import evolutions
from tests.workload.generate import Workload, workload
from tests.workload.tables import SHAPES, Table
from tests.workload.values import Dialect

SEEDS = range(5)
SIZE = 120


@pytest.fixture(params=["mariadb", "postgres"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    dialect: Dialect = request.param
    return dialect


def test_a_seed_gives_the_same_statements_again(dialect: Dialect) -> None:
    """One seed replays the whole workload; another one is another workload."""
    assert workload(1, dialect, SIZE) == workload(1, dialect, SIZE)
    assert workload(1, dialect, SIZE).rounds != workload(2, dialect, SIZE).rounds


def test_a_seed_gives_the_same_statements_in_every_process(dialect: Dialect) -> None:
    """What has no order of its own, as a set, decides nothing."""
    told = f"from tests.workload.generate import workload; print(workload(1, {dialect!r}, {SIZE}).rounds)"
    seen = {
        subprocess.run(
            [sys.executable, "-c", told],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_begin_and_end_and_savepoints_lie_within(dialect: Dialect, seed: int) -> None:
    """Of either session; what locks a whole table runs while the other one has nothing open."""
    inside: dict[int, set[str] | None] = {0: None, 1: None}
    for sql, session in statements(workload(seed, dialect, SIZE)):
        names, word = inside[session], sql.split()[0]
        if word == "BEGIN":
            assert names is None
            inside[session] = set()
        elif word in ("COMMIT", "ROLLBACK") and " TO " not in sql:
            assert names is not None
            inside[session] = None
        elif word in ("SAVEPOINT", "RELEASE", "ROLLBACK"):
            assert names is not None
            assert word == "SAVEPOINT" or sql.split()[-1] in names
            names.add(sql.split()[-1])
        elif word in ("TRUNCATE", "ALTER"):
            assert inside[1 - session] is None
            assert dialect == "postgres" or names is None
    assert inside == {0: None, 1: None}


def test_every_kind_of_thing_happens(dialect: Dialect) -> None:
    """What the proof speaks of is in each workload of some length."""
    kinds = {"rollbacks", "savepoints", "truncates", "changes of shape", "side by side", "large values"}
    kinds |= {"insert", "update", "delete", "reborn", "upsert", "move", "exchange", "one after the other", "shift"}
    counts = [workload(seed, dialect, 3 * SIZE).counts for seed in SEEDS]
    assert [kinds - {kind for kind, count in found.items() if count} for found in counts] == [set()] * len(SEEDS)
    assert all(found["transactions"] >= 3 * SIZE for found in counts)


def test_no_column_comes_back_under_the_name_of_one_that_went(dialect: Dialect) -> None:
    """DDL sends no rows: silver would go on with the old values (docs/limits.md)."""
    dice, table = random.Random(3), Table(SHAPES[0], dialect)
    told = [sql for _ in range(2 * evolutions.MOST) for sql in evolutions.evolve(table, dice)]
    added = [sql.split()[5] for sql in told if " ADD COLUMN " in sql]
    assert len(added) == len(set(added)) > 1
    assert not set(added) & {column.name for column in SHAPES[0].columns}
    assert table.changed == evolutions.MOST


def statements(work: Workload) -> list[tuple[str, int]]:
    """Every statement with its session."""
    return [(statement.sql, statement.session) for played in work.rounds for statement in played]
