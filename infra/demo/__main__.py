"""From a live source to a star schema in Postgres, step by step, with proof: what ``make demo`` shows."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from infra import lab
from infra.demo import memory, warehouse
from infra.demo.driver import Driver
from infra.demo.workplace import REPOSITORY, workplace
from infra.local import Stack
from infra.local.settings import preferred_java
from infra.sample_source import CONNECTOR, connector
from infra.sources.classicmodels import load, rows
from infra.sources.classicmodels.shapes import SHAPES
from infra.truth import STAR, check_star, compare, star_of_source, tables_of_source
from replicator import jars
from replicator.connect.rest import Connect
from replicator.errors import ReplicatorError
from replicator.jvm import class_archive, sparkline
from replicator.jvm.java import java_home
from replicator.settings import cache_dir

if TYPE_CHECKING:
    from infra.local.endpoints import Endpoints

_PATIENCE_SECONDS = 300
_POLL_SECONDS = 0.1
console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def main() -> int:
    """The demo; 0 when every table equals the source at the end, else the code of the error that it tells."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _shown()
    except ReplicatorError as error:
        console.print(str(error), style="red", markup=False)
        return error.exit_code
    except OSError as error:
        console.print(f"{type(error).__name__}: {error}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; the servers are stopped.")
        return 130


def _shown() -> int:
    began = time.monotonic()
    with workplace() as folder:
        console.print(f"[bold]1. Parts[/] (cache: {cache_dir()})")
        jars.fetch(jars.load_lock(sparkline.installed().name), cache_dir())
        class_archive.ensure(java_home(preferred_java()), lambda line: console.print(f"   {line}"))
        stack = Stack(folder / "stack")
        stack.fetch()
        stack.delete()
        console.print("[bold]2. Servers[/]")
        try:
            endpoints = stack.up(owner=os.getpid(), tell=lambda line: console.print(f"   {line}"))
            code = _demo(endpoints, folder, stack)
        finally:
            console.print("[bold]6. Stopping the servers[/]")
            stack.delete()
        console.print(
            f"Done after {time.monotonic() - began:.0f} s. The lake stays in {folder / 'lake'}: query it with"
        )
        console.print(
            f'   .venv/bin/replicator sql "SELECT product_line, count(*) FROM dim_products GROUP BY 1" '
            f"--lake {os.path.relpath(folder / 'lake', REPOSITORY)}"
        )
    return code


def _demo(endpoints: Endpoints, folder: Path, stack: Stack) -> int:
    with closing(load.log_in(endpoints.mariadb)) as source, closing(warehouse.connect(endpoints.postgres)) as target:
        console.print("[bold]3. Source and connector[/]")
        count = load.load(source, rows.generate())
        source.select_db("classicmodels")
        console.print(f"   {count:,} rows in classicmodels")
        connect = Connect(endpoints.connect)
        connect.apply(CONNECTOR, connector(endpoints))
        connect.wait_running(CONNECTOR, 60)
        console.print(f"   connector {CONNECTOR} RUNNING")
        driver = Driver(endpoints, folder / "lake", REPOSITORY / "conf")
        with driver.running():
            _snapshot(driver, source, target)
            console.print("[bold]5. The lab, against the live source[/]")
            slowest = max(_step(driver, source, target, step) for step in lab.STEPS)
            total = sum(service.memory_mb for service in stack.status()) + memory.of_this_family()
        driver.check()
        equal = _verify(driver, source, target)
    _closing_table(driver)
    console.print(
        f"Slowest change: {slowest:.1f} s from commit to Postgres. Servers and driver together: {total:,} MB."
    )
    return 0 if equal else 1


def _snapshot(driver: Driver, source: Any, target: Any) -> None:
    console.print("[bold]4. Snapshot[/]")
    began = time.monotonic()
    _wait_until_equal(driver, source, target)
    built = [line for line in driver.lines if line.stage == "gold" and line.rows_in]
    counted = {line.table: line.rows_in for line in built}
    table = Table("table", "expected", "lake", "Postgres")
    for name, found in warehouse.star(target).items():
        table.add_row(name, f"{lab.SNAPSHOT[name]:,}", f"{counted[name]:,}", f"{len(found):,}")
    console.print(table)
    console.print(f"   in Postgres after {time.monotonic() - began:.0f} s")


def _step(driver: Driver, source: Any, target: Any, step: lab.Step) -> float:
    """One change: seconds from the return of COMMIT to the ledger row in Postgres, both clocks being this machine's."""
    before = warehouse.star(target)
    committed = lab.run(source, step)
    _wait_until_equal(driver, source, target)
    seconds = warehouse.last_commit(target) - committed
    console.print(f"   [bold]{step.name}[/]: {seconds:.1f} s from commit to Postgres")
    for change in warehouse.changes(before, warehouse.star(target)):
        console.print(f"      {change}", markup=False)
    return seconds


def _wait_until_equal(driver: Driver, source: Any, target: Any) -> None:
    """Look at the ledger often and at the rows when it has moved: comparing takes the processor from the driver."""
    expected = star_of_source(source)
    until = time.monotonic() + _PATIENCE_SECONDS
    seen = None
    while time.monotonic() < until:
        driver.check()
        newest = warehouse.last_commit(target)
        if newest != seen:
            seen = newest
            found = warehouse.star(target)
            if all(compare(expected[table], found[table].values(), STAR[table].key).equal for table in STAR):
                return
        time.sleep(_POLL_SECONDS)
    differences = "; ".join(f"{name}: {difference}" for name, difference in check_star(source, target).items())
    raise ReplicatorError(f"Postgres is not equal to the source after {_PATIENCE_SECONDS} s: {differences}")


def _verify(driver: Driver, source: Any, target: Any) -> bool:
    """Every table of every layer against the source, by content."""
    table = Table("layer", "table", "compared with the source", title="Proof")
    found = []
    for name, expected in tables_of_source(source).items():
        actual = driver.live_rows(CONNECTOR, f"classicmodels.{name}")
        found.append(("silver", name, compare(expected, actual, SHAPES[name].key)))
    for name, expected in star_of_source(source).items():
        found.append(("gold", name, compare(expected, driver.gold_rows(name), STAR[name].key)))
    found += [("Postgres", name, difference) for name, difference in check_star(source, target).items()]
    for layer, name, difference in found:
        table.add_row(layer, name, str(difference), style=None if difference.equal else "red")
    console.print(table)
    return all(difference.equal for _, _, difference in found)


def _closing_table(driver: Driver) -> None:
    table = Table("stage", "table", title="What the driver did")
    for column in ("passes", "rows in", "applied", "superseded", "dead-lettered", "ignored", "seconds"):
        table.add_column(column, justify="right")
    for entry in driver.totals():
        ignored = sum(entry.ignored.values())
        counts = (entry.passes, entry.read, entry.applied, entry.superseded, entry.dead_lettered, ignored)
        name = entry.table.rpartition("/")[2]
        table.add_row(entry.stage, name, *[f"{count:,}" for count in counts], f"{entry.seconds:.1f}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
