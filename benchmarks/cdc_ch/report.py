"""``report.json``, which two commands write: ``run`` measures its part anew, ``flow`` rate by rate. Neither takes away
what the other has measured.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.cdc_ch import flow, machine

_OWN = ("size", "heap", "at", "commit")


def stored(folder: Path) -> dict[str, Any] | None:
    """The report of a folder, if there is one."""
    file = folder / "report.json"
    found: dict[str, Any] | None = json.loads(file.read_text()) if file.exists() else None
    return found


def write(report: Mapping[str, Any], folder: Path) -> None:
    """Into a folder, whole or not at all, without the places of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "report.json.new"
    written.write_text(machine.nowhere(json.dumps(report, indent=1)) + "\n")
    written.rename(folder / "report.json")


def with_flows(report: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """A report that begins, with the rates of the one before."""
    return {**report, "flows": (before or {}).get("flows", [])}


def with_flow(report: Mapping[str, Any], told: Mapping[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
    """The report with a rate, in the place of what it had of that one; ``told`` is a report's head, of which the rate
    keeps size, heap, time and commit: the others may be of another day.
    """
    others = [each for each in report["flows"] if each["rate"] != measured["rate"]]
    own = {**measured, **{name: told[name] for name in _OWN}}
    return {**report, "flows": sorted([*others, own], key=lambda each: int(each["rate"]))}


def keep_logs(work: Path, folder: Path) -> None:
    """What systems logged in a run, by track and system, in the place of those of the run before."""
    folder.mkdir(exist_ok=True)
    for log in folder.glob("*.log"):
        if not log.name.startswith(flow.TRACK):
            log.unlink()
    for log in work.glob("*/*.log"):
        shutil.copy(log, folder / f"{log.parent.name} {log.name}")
