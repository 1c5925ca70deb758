"""What a run that goes on would say again with each look, and says once, or once in a while."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf

from replicator.errors import SHUT, AtWork, TableMissing
from replicator.stages.run_report import Report, ReportLine

_SILENT_SECONDS = 60.0
"""After so long the same words of what is out of reach are said again."""


def report_waiting_once(report: Report) -> Report:
    """Of a run that goes on, a model whose inputs are not there yet, or not at rest, is no error: say so, once."""
    waiting: set[str] = set()

    def told(line: ReportLine) -> None:
        if not isinstance(line.error, (TableMissing, AtWork)):
            waiting.discard(line.table)
            report(line)
        elif line.table not in waiting:
            waiting.add(line.table)
            report(replace(line, error=None, warnings=(f"waits: {line.error}",)))

    return told


def throttle_unreachable(report: Report) -> Report:
    """What is out of reach is looked for with each pass: the same words of it again are said after a while only."""
    said: dict[tuple[str, str], tuple[str, float]] = {}

    def told(line: ReportLine) -> None:
        place, words, now = (line.stage, line.table), str(line.error), time.monotonic()
        if not isinstance(line.error, SHUT):
            said.pop(place, None)
        else:
            last, since = said.get(place, ("", -inf))
            if words == last and now - since < _SILENT_SECONDS:
                return
            said[place] = words, now
        report(line)

    return told
