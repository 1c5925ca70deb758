"""What long work shows of itself: a bar where somebody looks, plain lines in a log."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from replicator.cli import console


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_shows_rows_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, and it is gone when the work is done."""
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stderr", Screen())
    with console.row_progress("comparing", lambda: [3000, 1000]) as work:
        for _ in range(3):
            work.advance(1000)
            time.sleep(0.15)
        work.finish()
        time.sleep(0.15)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stderr.getvalue())
    assert "comparing" in shown
    assert "3,000 of 4,000 rows" in shown
    assert re.search(r"3,000 of 4,000 rows 0:00:0\d", shown)
    assert sys.stderr.getvalue().rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal; short work says nothing, and nobody counts for it."""
    asked: list[int] = []

    def sizes() -> list[int]:
        asked.append(1)
        return [4000]

    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with console.row_progress("comparing", sizes) as work:
        work.advance(1000)
        assert (sys.stderr.getvalue(), asked) == ("", [])
        monkeypatch.setattr(console, "LINE_SECONDS", 0)
        work.advance(1000)
        work.finish()
        work.advance(2500)
    told = sys.stderr.getvalue().splitlines()
    assert [re.sub(r"\d:\d\d:\d\d", "T", line) for line in told] == [
        "comparing: 2,000 of 4,000 rows",
        "comparing: 2,000 of 4,000 rows, T left",
        "comparing: 4,500 of 4,500 rows, T left",
    ]
    assert asked == [1]


def test_small_tables_before_a_large_one_do_not_foretell_hours() -> None:
    """Each table takes its time, however few its rows: ten of a hundred rows take 40 s, then a million take 20. Nothing
    is told before there is something to tell it by; the time that counting takes is none of the work's.
    """
    now = 0.0

    def counting() -> list[int]:
        nonlocal now
        now += 30
        return [100] * 10 + [1_000_000]

    work = console.WorkProgress(counting, clock=lambda: now)
    told = [work.remaining]
    for _ in range(10):
        work.advance(100)
        now += 4
        work.finish()
        told.append(work.remaining)
    assert told[0] is None
    assert all(left is None or 20 <= left.total_seconds() <= 120 for left in told)
    assert told[-1] is not None
    now, left = now + 20, told[-1]
    work.advance(1_000_000)
    assert left.total_seconds() <= 60
    assert (work.remaining or left).total_seconds() <= 10
