"""The product as its users run it, in a process of its own, and what it says of its work."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

LATER = ("silver", "gold", "publish")
"""The stages of a pass, which begins with the first; bronze streams beside them."""

_PATIENCE = 120


class Stopped(Exception):
    """The product did not get there."""


class Told(NamedTuple):
    """A line of what a stage did, and when it was said."""

    at: float
    stage: str


@dataclass(frozen=True)
class Work:
    """What a stage did with one table: sums over ``passes``."""

    stage: str
    table: str
    passes: int = 0
    rows: int = 0
    seconds: float = 0.0

    def value(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


class Driver:
    """``replicator run --continuous``, from now until :meth:`stop`. Its narration is in ``<home>/driver.log``."""

    def __init__(self, conf: Path, env: str, home: Path) -> None:
        self.said: list[Told] = []
        self._out, self._log = (home / "driver.json").open("w"), (home / "driver.log").open("w")
        command = [str(Path(sys.executable).parent / "replicator"), "run", "--continuous", "--json"]
        self._process = subprocess.Popen(
            [*command, "--env", env, "--conf", str(conf)], stdout=self._out, stderr=subprocess.PIPE, text=True
        )
        self._reader = Thread(target=self._listen, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the process; its JVM is a child."""
        return self._process.pid

    @property
    def is_over(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Its end, as Ctrl-C has it; by force where it takes too long."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._log.close()
        self._out.close()

    def lines(self) -> list[dict[str, Any]]:
        """What it told, a line for each table, stage and pass. Raises Stopped where it was killed before its end."""
        if self._process.returncode == -signal.SIGKILL:
            raise Stopped(f"the driver was killed: it did not end within {_PATIENCE} s, or somebody else did it")
        return [json.loads(line) for line in Path(self._out.name).read_text().splitlines()]

    def _listen(self) -> None:
        for line in self._process.stderr or ():
            stage = line.partition(" ")[0]
            if stage in LATER:
                self.said.append(Told(time.time(), stage))
            self._log.write(f"{time.time():.2f} {line}")
            self._log.flush()


def phases(said: Iterable[Told], since: float) -> list[dict[str, float]]:
    """Seconds of each stage, pass by pass, of what was said after ``since``: from the last line before a stage's own to
    its last. A pass that had to wait for something to do has the wait in its first stage.
    """
    found: list[dict[str, float]] = []
    before: Told | None = None
    for told in said:
        if told.at >= since and before is not None:
            if not found or told.stage == LATER[0] != before.stage:
                found.append(defaultdict(float))
            found[-1][told.stage] += told.at - before.at
        before = told
    return [dict(each) for each in found]


def work(lines: Sequence[Mapping[str, Any]], skipped: int) -> list[Work]:
    """By stage and table, of lines behind those with which bronze took the first ``skipped`` records."""
    taken, sums = 0, dict[tuple[str, str], Work]()
    for line in lines:
        if taken >= skipped:
            place = (line["stage"], line["table"])
            known = sums.get(place, Work(*place))
            rows, seconds = known.rows + line["rows_in"], round(known.seconds + line["seconds"], 1)
            sums[place] = Work(*place, known.passes + 1, rows, seconds)
        if line["stage"] == "bronze":
            taken += line["rows_in"]
    return [sums[place] for place in sorted(sums)]
