"""What is told about a row's records follows the rule that makes the row."""

from __future__ import annotations

from itertools import permutations

from replicator.operate.row.replay import Event, Verdict, run
from tests.unit.test_merge_laws import HISTORIES, POSITIONS, change, left_behind

COLUMNS = ("a", "b")


def told(*events: Event) -> dict[str, str]:
    return {name: verdict.verdict for name, verdict in run(events, COLUMNS).verdicts.items()}


def test_every_life_ends_in_the_state_that_the_merge_leaves_behind() -> None:
    """Section M: for every history of three changes in every order of arrival."""
    for history in HISTORIES:
        sent = [change(kind, seq) for kind, seq in zip(history, POSITIONS, strict=True)]
        _, _, seq, deleted, column_seq = left_behind(history, POSITIONS)
        for order in permutations(sent):
            events = [Event(c.seq, c.seq, c.deleted, frozenset(c.unsent)) for c in order]
            state = run(events, COLUMNS).state
            default = f"{seq}-" if deleted else seq
            differing = {column: place for column, place in state.places.items() if place != default}
            assert (state.seq, state.deleted, differing or None) == (seq, deleted, column_seq), (history, order)


def test_each_record_says_which_other_one_decided_over_it() -> None:
    """R2: applied until a newer one came, or superseded by one that was there before."""
    lived = run([Event("x/0/1", "10"), Event("x/0/2", "30"), Event("x/0/3", "20"), Event("x/0/4", "40", deleted=True)],
                 COLUMNS)  # fmt: skip
    assert lived.verdicts == {
        "x/0/1": Verdict("applied", "sets the row, until x/0/2"),
        "x/0/2": Verdict("applied", "sets the row, until x/0/4"),
        "x/0/3": Verdict("superseded", "older than x/0/2, which came before it"),
        "x/0/4": Verdict("applied", "deletes the row; this is the current state"),
    }


def test_a_late_value_fills_what_the_newer_record_did_not_tell() -> None:
    """E7: and nothing if a newer delete stands between."""
    partial = Event("new", "30", unsent=frozenset({"b"}))
    assert told(partial, Event("old", "10")) == {"new": "applied", "old": "fills"}
    assert told(partial, Event("gone", "20", deleted=True), Event("old", "10"))["old"] == "superseded"
    earlier = run([Event("old", "10"), partial], COLUMNS).verdicts["old"]
    assert earlier == Verdict("applied", "sets the row, until new; its b is still current")


def test_a_truncate_empties_what_is_older_and_refuses_what_comes_late() -> None:
    """T2."""
    wipe = Event("wipe", "20", truncates=True)
    assert told(Event("one", "10"), wipe, Event("late", "15"), Event("next", "30")) == {
        "one": "applied",
        "wipe": "applied",
        "late": "truncated",
        "next": "applied",
    }
    lived = run([Event("one", "10"), wipe], COLUMNS)
    assert lived.state.deleted
    assert lived.verdicts["one"].why == "sets the row, until wipe"
    assert "newer" in run([Event("one", "30"), wipe], COLUMNS).verdicts["wipe"].why
