"""Report messages of a continuous run that would be repeated with each pass only once, or at intervals."""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf

from replicator.errors import SHUT, AtWork, TableMissing
from replicator.stages.run_report import Report, ReportLine

_SILENT_SECONDS = 60.0
"""The interval after which the same message about something unreachable is reported again."""


def report_waiting_once(report: Report) -> Report:
    """In a continuous run, a model whose inputs do not exist yet, or are being written, is no error: report it once, as
    a warning.
    """
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
    """Targets that are unreachable are retried with each pass: repeat the same message only after a while."""
    last_reports: dict[tuple[str, str], tuple[str, float]] = {}

    def told(line: ReportLine) -> None:
        place, message, now = (line.stage, line.table), str(line.error), time.monotonic()
        if not isinstance(line.error, SHUT):
            last_reports.pop(place, None)
        else:
            last, since = last_reports.get(place, ("", -inf))
            if message == last and now - since < _SILENT_SECONDS:
                return
            last_reports[place] = message, now
        report(line)

    return told
