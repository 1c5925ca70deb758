"""Measures: systems in turn, in an order that rotates, each run on a fresh copy of its tables and through the gate.

Every system has a process of its own, which stays, so that a JVM is warm; one works at a time. What they are given is
in the page cache, for each has read it while it warmed up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Timer
from typing import Any

from benchmarks.cdc_ch import gate, process, reads, systems
from benchmarks.cdc_ch.contender import SOAK, Case
from benchmarks.cdc_ch.plans import Plan

UPKEEP_EVERY = 50
"""After so many batches of a case with several its tables are maintained."""

PATIENCE = 1800
"""Seconds that a system may take for one command."""


class Failed(Exception):
    """A system could not do what it was told."""


@dataclass(frozen=True)
class Run:
    """One run: ``round`` is negative for a warm-up. ``seconds`` is the sum over the case's batches; without a
    ``problem`` the result was the oracle's.

    ``series`` has the seconds of each batch where there are several, ``upkeep`` what maintenance between them took, and
    ``kept`` how many files each left; ``files`` were there in the end. ``new_bytes`` are in files that were not there
    before or have grown; ``io_bytes`` went to the disk, the engine's own temporary files included. ``others`` is the
    share of the machine that other processes used meanwhile. ``read`` is how long it took to read all live rows back,
    ``queries`` what each of ``reads.QUERIES`` took before. ``phases`` are seconds by table.
    """

    case: str
    system: str
    round: int
    seconds: float = 0.0
    cpu: float = 0.0
    rss: int = 0
    new_bytes: int = 0
    io_bytes: int = 0
    others: float = 0.0
    read: float = 0.0
    queries: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    series: Sequence[float] = ()
    upkeep: float = 0.0
    kept: Sequence[int] = ()
    files: int = 0
    problem: str = ""

    def value(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Begun:
    """A track begins: ``about`` has what each of its systems says of itself, or why it ``failed`` to start."""

    track: str
    about: Mapping[str, Any]


class Worker:
    """A system's process. Its log is ``<work>/<system>.log``."""

    def __init__(self, system: str, track: str, work: Path, heap: str) -> None:
        self.system, self.folder = system, work / system
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = (work / f"{system}.log").open("ab")
        command = [systems.python(system), "-m", "benchmarks.cdc_ch.worker", system, track, str(self.folder), heap]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
        self._runs = 0
        self._started: set[str] = set()
        self._ready: set[str] = set()

    def told(self, **command: Any) -> dict[str, Any]:
        """What it answers. Raises Failed with its error, or when it is gone."""
        patience = Timer(PATIENCE, self._process.kill)
        patience.start()
        try:
            line = self._asked(json.dumps(command))
        except OSError as error:
            raise Failed("its process has ended") from error
        finally:
            patience.cancel()
        if not line:
            raise Failed(f"its process ended, after {PATIENCE} s at the latest, see {self._log.name}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def _asked(self, command: str) -> str:
        if self._process.stdin is None or self._process.stdout is None:
            raise Failed("it has no pipes")
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def introduced(self) -> dict[str, Any]:
        """Its versions and settings, or why it ``failed`` to start."""
        try:
            about: dict[str, Any] = self.told(do="about")["about"]
        except Failed as failed:
            return {"failed": str(failed)}
        return about

    def fresh(self, case: Case) -> Path:
        """A copy of the tables that a run starts from, made when they are first asked for."""
        template = self.folder / f"start-{case.start}"
        if case.start not in self._started:
            shutil.rmtree(template, ignore_errors=True)
            template.mkdir()
            self.told(do="start", case=case.value(), home=str(template))
            self._started.add(case.start)
        if case.name not in self._ready:
            self.told(do="ready", case=case.value(), home=str(template))
            self._ready.add(case.name)
        self._runs += 1
        home = self.folder / f"run-{self._runs}"  # engines remember tables by their place
        shutil.copytree(template, home, copy_function=linked)
        return home

    def run(self, case: Case, number: int) -> Run:
        """One run and what it left, compared. Raises Failed."""
        home, out = self.fresh(case), self.folder / "exported"
        pids = process.tree(self._process.pid, *self.told(do="servers")["pids"])
        made = Run(case.name, self.system, number)
        for batch in range(case.batches):
            self.told(do="arrive", case=case.value(), home=str(home), batch=batch)
            made = self._batch(made, case, home, batch, pids)
            if case.batches > 1 and (batch + 1) % UPKEEP_EVERY == 0:
                done = self.told(do="upkeep", case=case.value(), home=str(home))["seconds"]
                made = replace(made, upkeep=made.upkeep + done, kept=(*made.kept, len(_sizes(home))))
        files = len(_sizes(home))
        asked = {name: self.told(do="ask", case=case.value(), home=str(home), query=name) for name in reads.of(case)}
        queries = {name: told["seconds"] for name, told in asked.items()}
        read = self.told(do="export", case=case.value(), home=str(home), out=str(out))["seconds"]
        answers = {name: told["answer"] for name, told in asked.items()}
        problem = "; ".join([*gate.problems(case, out), *gate.wrong_answers(case, answers)])
        shutil.rmtree(out)
        shutil.rmtree(home)
        return replace(made, read=read, queries=queries, files=files, problem=problem)

    def close(self) -> None:
        """Its end, JVM included; a minute is waited for it."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _batch(self, made: Run, case: Case, home: Path, batch: int, pids: list[int]) -> Run:
        files = _sizes(home)
        process.reset(pids)
        before, machine = process.used(pids), process.busy()
        answer = self.told(do="run", case=case.value(), home=str(home), batch=batch)
        after, now = process.used(pids), process.busy()
        cpu, seconds = after.cpu - before.cpu, answer["seconds"]
        others = max(0.0, now - machine - cpu) / (seconds * (os.cpu_count() or 1))
        new = sum(max(0, size - files.get(file, 0)) for file, size in _sizes(home).items())
        return replace(
            made,
            seconds=made.seconds + seconds,
            cpu=made.cpu + cpu,
            rss=max(made.rss, after.rss),
            new_bytes=made.new_bytes + new,
            io_bytes=made.io_bytes + after.io_bytes - before.io_bytes,
            others=max(made.others, others),
            counts=_added(made.counts, answer["counts"]),
            phases=_added(made.phases, answer["phases"]),
            series=(*made.series, seconds) if case.batches > 1 else (),
        )


def measured(
    cases: Sequence[Case], names: Sequence[str], plan: Plan, work: Path, heap: str, tell: Callable[[str], None]
) -> Iterator[Begun | Run]:
    """Track by track: what the systems of these names say about themselves, then their runs as they end. Warm-ups are
    runs, too.

    A system that fails in a case, or leaves a wrong result, has no further run of it.
    """
    for track in dict.fromkeys(case.track for case in cases):
        with ExitStack() as stack:
            entered = [name for name in names if track in systems.TRACKS[name]]
            absent = {name: {"failed": told} for name in entered if (told := systems.absence(name)) is not None}
            workers = [Worker(name, track, work / track, heap) for name in entered if name not in absent]
            for worker in workers:
                stack.callback(worker.close)
            about = absent | {worker.system: worker.introduced() for worker in workers}
            living = [worker for worker in workers if "failed" not in about[worker.system]]
            for name in (name for name, told in about.items() if "failed" in told):
                tell(f"{name} does not start: {about[name]['failed']}")
            yield Begun(track, about)
            for case in (case for case in cases if case.track == track):
                yield from _of_case(case, living, plan, tell)
        for worker in workers:
            shutil.rmtree(worker.folder, ignore_errors=True)


def _of_case(case: Case, workers: list[Worker], plan: Plan, tell: Callable[[str], None]) -> Iterator[Run]:
    out: set[str] = set()
    for number in range(1) if case.track == SOAK else range(-plan.warmups, plan.repeats):
        turn = number % len(workers) if workers else 0
        for worker in [*workers[turn:], *workers[:turn]]:
            if worker.system in out:
                continue
            run = _one(worker, case, number)
            if run.problem:
                out.add(worker.system)
            tell(f"{case.name}: {worker.system} {_said(run)}")
            yield run


def _one(worker: Worker, case: Case, number: int) -> Run:
    try:
        return worker.run(case, number)
    except Failed as failed:
        return Run(case.name, worker.system, number, problem=f"failed: {failed}")


def _said(run: Run) -> str:
    kind = "warm-up" if run.round < 0 else f"round {run.round + 1}"
    return f"{kind}: {run.problem}" if run.problem else f"{kind}: {run.seconds:.2f} s"


def _added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _sizes(home: Path) -> dict[str, int]:
    return {str(file): file.stat().st_size for file in home.rglob("*") if file.is_file()}


def linked(source: str, target: str) -> None:
    """Data files of a lake are never changed in place, logs and databases are."""
    if source.endswith(".parquet") and "_delta_log" not in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)
