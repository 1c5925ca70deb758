"""What a run tells of its work."""

from __future__ import annotations

import json

import pytest

from replicator.cli.run_summary import RunSummary, describe
from replicator.errors import TableStopped
from replicator.stages.run_report import ReportLine

STOPPED = TableStopped("it stopped")
LINES = [
    ReportLine("silver", "a", 3, 2, 1, 0, {"tombstone": 1}, 0.5, error=STOPPED),
    ReportLine("silver", "b", 1, 1, error=STOPPED),
    ReportLine("silver", "a", 4, 4, 0, 0, {"tombstone": 2, "heartbeat": 1}, 0.25),
]


def told(*, once: bool, as_json: bool) -> RunSummary:
    """All of the lines."""
    made = RunSummary(once=once, as_json=as_json)
    for line in LINES:
        made.add(line)
    return made


def test_a_run_that_ends_shows_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A JSON list at its end; what stopped a table once is an error of it."""
    made = told(once=True, as_json=True)
    assert capsys.readouterr().out == ""
    assert len(made.errors()) == 2
    made.show()
    shown = json.loads(capsys.readouterr().out)
    assert [(each["table"], each["rows_in"], each["ignored"], each["error"]) for each in shown] == [
        ("a", 3, 1, str(STOPPED)), ("b", 1, 0, str(STOPPED)), ("a", 4, 3, None),
    ]  # fmt: skip


def test_a_run_that_goes_on_prints_an_object_per_line_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs that follow it; nothing more at its end."""
    made = told(once=False, as_json=True)
    printed = capsys.readouterr().out
    assert [json.loads(line)["table"] for line in printed.splitlines()] == ["a", "b", "a"]
    made.show()
    assert capsys.readouterr().out == ""


def test_a_run_that_goes_on_keeps_sums_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """However long it goes on, one line for each stage and table; an error only where nothing was told since."""
    made = told(once=False, as_json=False)
    assert [(line.table, line.rows_in, line.applied, line.seconds) for line in made._kept()] == [
        ("a", 7, 6, 0.75), ("b", 1, 1, 0.0),
    ]  # fmt: skip
    assert dict(made._kept()[0].ignored) == {"tombstone": 3, "heartbeat": 1}
    assert made.errors() == [STOPPED]
    made.show()
    assert capsys.readouterr().out.count("silver") == 2


@pytest.mark.parametrize(("line", "said"), [
    (ReportLine("silver", "a", 7, 5, 1, 1), "5 of 7 applied, dead letters: 1"),
    (ReportLine("gold", "m", 50, 50, how="full: first"), "50 of 50 applied (full: first)"),
    (ReportLine("gold", "m", 50, 528, how="incremental"), "50 rows in, 528 written or deleted (incremental)"),
    (ReportLine("publish", "m", 0, 3), "0 rows in, 3 written or deleted"),
    (ReportLine("silver", "a"), "nothing new"),
    (ReportLine("publish", "m", how="reachable again"), "nothing new (reachable again)"),
    (ReportLine("silver", "a", warnings=("9 rows were removed",)), None),
])  # fmt: skip
def test_a_line_counts_what_was_done(line: ReportLine, said: str | None) -> None:
    """A model may lose rows beyond those computed. Where a warning says all that was done, nothing follows."""
    assert describe(line) == said


@pytest.mark.parametrize("once", [True, False])
def test_what_became_dead_letters_is_told_with_how_to_see_it(capsys: pytest.CaptureFixture[str], once: bool) -> None:
    """On stderr, behind the table or the JSON, in one line that can be given as it is; without any, nothing is said."""
    for as_json in (True, False):
        made = told(once=once, as_json=as_json)
        made.show()
        assert "dead letters" not in capsys.readouterr().err
        made.add(ReportLine("silver", "b", 1200, 0, 0, 1200))
        made.add(ReportLine("silver", "c", 3, 0, 0, 3))
        made.show()
        said = capsys.readouterr().err
        assert said == "1,203 records are dead letters: `replicator dead-letters list`\n"
    made = RunSummary(once=once, as_json=False)
    made.add(ReportLine("silver", "b", 1, 0, 0, 1))
    made.show()
    assert capsys.readouterr().err == "1 record is a dead letter: `replicator dead-letters list`\n"
