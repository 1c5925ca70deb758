"""A system in a process of its own: takes a command as a line of JSON, does it, answers with one.

``python -m benchmarks.cdc_ch.worker SYSTEM TRACK WORK HEAP`` is started by the runner. What libraries and the JVM print
goes to stderr.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from benchmarks.cdc_ch import reads
from benchmarks.cdc_ch.contender import CORES, Case, Contender
from benchmarks.cdc_ch.systems import contender


def main() -> None:
    """Until the runner says ``close`` or goes away."""
    system, track, work, heap = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # of what it starts, too
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        made = contender(system, track, Path(work), heap)
    except Exception as error:  # noqa: BLE001 - why it does not start is what the runner tells
        sys.stdin.readline()
        _tell(answers, _failed(error))
        return
    try:
        for line in sys.stdin:
            _answer(made, json.loads(line), answers)
    finally:
        made.close()


def _answer(made: Contender, command: Mapping[str, Any], answers: TextIO) -> None:
    try:
        told = _done(made, command)
    except Exception as error:  # noqa: BLE001 - whatever a system raises is its result
        told = _failed(error)
    _tell(answers, told)


def _failed(error: Exception) -> dict[str, Any]:
    traceback.print_exception(error)
    return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"}


def _tell(answers: TextIO, told: Mapping[str, Any]) -> None:
    answers.write(json.dumps(told) + "\n")
    answers.flush()


def _done(made: Contender, command: Mapping[str, Any]) -> dict[str, Any]:
    if command["do"] == "about":
        return {"about": dict(made.about())}
    if command["do"] == "servers":
        return {"pids": list(made.servers())}
    case, home = Case(**command["case"]), Path(command["home"])
    if command["do"] == "run":
        return _timed(made, case, home, command["batch"])
    if command["do"] == "export":
        shutil.rmtree(command["out"], ignore_errors=True)
        Path(command["out"]).mkdir(parents=True)
    started = time.perf_counter()
    answer = _prepared_or_read(made, command, case, home)
    return {"seconds": time.perf_counter() - started, **answer}


def _prepared_or_read(made: Contender, command: Mapping[str, Any], case: Case, home: Path) -> dict[str, Any]:
    if command["do"] == "start":
        made.start(case, home)
    elif command["do"] == "ready":
        made.ready(case)
    elif command["do"] == "arrive":
        made.arrive(case, home, command["batch"])
    elif command["do"] == "upkeep":
        made.upkeep(case, home)
    elif command["do"] == "ask":
        return {"answer": reads.answer(made.ask(case, home, reads.QUERIES[command["query"]]))}
    else:
        made.export(case, home, Path(command["out"]))
    return {}


def _timed(made: Contender, case: Case, home: Path, batch: int) -> dict[str, Any]:
    before = made.counted()
    started = time.perf_counter()
    phases = made.run(case, home, batch)
    seconds = time.perf_counter() - started
    after = made.counted()
    return {"seconds": seconds, "phases": dict(phases), "counts": {name: after[name] - before[name] for name in after}}


if __name__ == "__main__":
    main()
