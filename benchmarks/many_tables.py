"""What many tables cost a tick of silver: idle ones beside one that is busy, and busy ones beside each other.

``python -m benchmarks.many_tables [--tables 5 50 200] [--busy 1 3 8] [--at-once 3] [--ticks N]`` makes lakes in a
temporary folder. Idle tables, a line per number of them: the first tick of a process, which asks every table how far it
is; the median of the ticks after it; and the median where each of them asks all tables again, as it was before decision
0034. Busy tables, each with one change per tick: the median of ticks that take them one by one, and of those between
them that take so many at once (decision 0043). Without gold and publish.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from replicator import names, session, settings
from replicator.config.settingkeys import LakeKeys
from replicator.formats.control import JsonControl
from replicator.formats.delta import DeltaFormat
from replicator.lake import Lake
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from replicator.stages.tick import pauses
from replicator.stages.tick.source_state import SourceState
from tests.builders import Record, bronze, envelope, record

SOURCE, BUSY = "s", "shop.t0"
COLUMNS = (Column("id", "int"), Column("v", "string"))


def main() -> None:
    """The measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="*", default=[5, 50, 200], help="how many tables there are")
    parser.add_argument("--busy", type=int, nargs="*", default=[1, 3, 8], help="how many busy tables there are")
    parser.add_argument("--at-once", type=int, default=3, help="how many of those are worked on at once")
    parser.add_argument("--ticks", type=int, default=7, help="how many ticks are measured of each kind")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="replicator-bench-") as folder:
        bare = settings.bare(None).model_copy(update={"lake": LakeKeys(root=folder)})
        spark = session.session(bare)
        sys.stdout.write(f"{'tables':>6} {'first':>7} {'tick':>7} {'asking all':>10}   seconds\n")
        for count in told.tables:
            first, tick, asking = measured(spark, Path(folder) / str(count), count, told.ticks)
            sys.stdout.write(f"{count:6} {first:7.2f} {tick:7.2f} {asking:10.2f}\n")
        sys.stdout.write(f"{'busy':>6} {'one by one':>10} {'at once':>10}   seconds, each tick a change per table\n")
        for count in told.busy:
            alone, beside = compared(spark, Path(folder) / f"busy{count}", count, told.at_once, told.ticks)
            sys.stdout.write(f"{count:6} {alone:10.2f} {beside:10.2f}\n")
        spark.stop()


def measured(spark: SparkSession, folder: Path, count: int, ticks: int) -> tuple[float, float, float]:
    """Seconds of the first tick, of the median one, and of the median one that asks all tables."""
    at = lake(spark, folder, count)
    offset, took = 1, []
    for turn in range(2 * ticks + 2):
        append(spark, at, [change(BUSY, offset)])
        offset += 1
        if turn > ticks:
            at.state.caught_up = None
        started = time.monotonic()
        [account] = silver.refine(spark, at)
        took.append(time.monotonic() - started)
        if account.error is not None or account.applied != 1:
            raise SystemExit(f"{account.table}: {account.error or 'the change was not applied'}")
    return took[0], statistics.median(took[1 : ticks + 1]), statistics.median(took[ticks + 1 :])


def compared(spark: SparkSession, folder: Path, count: int, at_once: int, ticks: int) -> tuple[float, float]:
    """Seconds of the median tick that takes busy tables one by one, and of the one that takes some at once."""
    at = lake(spark, folder, count)
    took: dict[int, list[float]] = {1: [], at_once: []}
    for turn in range(2 * ticks + 2):
        now = at_once if turn % 2 else 1
        append(spark, at, [change(table(number), turn + 1) for number in range(count)])
        started = time.monotonic()
        accounts = silver.refine(spark, replace(at, tables_at_once=now))
        took[now].append(time.monotonic() - started)
        if [account.applied for account in accounts if account.error is None] != [1] * count:
            raise SystemExit("some change was not applied")
    return statistics.median(took[1][1:]), statistics.median(took[at_once][1:])


def lake(spark: SparkSession, folder: Path, count: int) -> Refinement:
    """A source of that many tables with a row each, all of them up to date: one is made, the others are its copies."""
    declared = tuple(Declaration(table(number), COLUMNS) for number in range(count))
    delta, control, place = DeltaFormat(), JsonControl(spark), Lake(str(folder))
    at = Refinement(SourceSpec(SOURCE, ".*", tables=declared), delta, delta, control, place)
    append(spark, at, [change(table(number), 0) for number in range(count)])
    others = {table(number): "paused" for number in range(1, count)}
    pauses.save(control, place, SOURCE, others)
    silver.refine(spark, at)
    pauses.save(control, place, SOURCE, {})
    root = Path(place.silver_root(SOURCE))
    for other in others:
        shutil.copytree(root / names.encode_table(BUSY), root / names.encode_table(other))
    return replace(at, state=SourceState())


def append(spark: SparkSession, at: Refinement, records: list[Record]) -> None:
    """Records into bronze, in one commit."""
    at.bronze.append(bronze(spark, records), at.lake.bronze(SOURCE), None)


def change(name: str, offset: int) -> Record:
    """A row of a table."""
    row = {"id": offset % 5, "v": f"value {offset}"}
    told = envelope("u" if offset else "c", row, table=name, pos=4 + offset)
    return record(f"{SOURCE}.{name}", offset, {"id": row["id"]}, told)


def table(number: int) -> str:
    """Its name."""
    return f"shop.t{number}"


if __name__ == "__main__":
    main()
