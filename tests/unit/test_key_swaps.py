"""Which deletes take away the row that holds a key, and which another one (debezium.md C5)."""

from __future__ import annotations

from typing import Any

from replicator.transforms.keys.key_swaps import AMBIGUOUS, DELETE, INSERT, SWAP, WRITE, Event, verdicts


def told(text: str, held: tuple[str | None, ...] = ()) -> list[str | None]:
    """Verdict per delete of a history like ``c:A d:B | u:C``: a bar ends a transaction, ``'`` repeats a place."""
    kinds = {"c": INSERT, "u": WRITE, "d": DELETE, "t": DELETE}
    events: list[Any] = []
    transaction, place = 0, 0
    for word in text.split():
        if word == "|":
            transaction += 1
            continue
        place += not word.endswith("'")
        kind, image = word.rstrip("'").split(":")
        seq = f"{place:03}{len(events):03}"
        events.append(Event(seq, str(place), str(transaction), kinds[kind], image or None, kind == "d" and image != ""))
    found = verdicts(reversed(events), held)
    return [found.get(event.seq) for event in events if event.kind == DELETE]


def test_a_delete_after_an_arrival_takes_the_former_owner() -> None:
    """A swap: the key's row came before the one that held it left."""
    assert told("c:B | c:A d:B") == [SWAP]
    assert told("c:A d:B", held=("B",)) == [SWAP]


def test_two_rows_with_the_same_content_are_two_rows() -> None:
    """How many rows hold the key decides, not only what is in them."""
    assert told("c:A | c:A d:A") == [SWAP]
    assert told("c:A d:A") == [None]


def test_a_row_that_was_written_on_its_way_moves_on() -> None:
    """It held the key alone: the delete is one, whatever it looked like when it came."""
    assert told("c:A u:B d:B") == [None]
    assert told("c:X | d:X c:A u:B d:B") == [None, None]


def test_what_was_judged_in_one_transaction_counts_in_the_next() -> None:
    """After a swap the key has an owner, although the newest record of it is a delete."""
    assert told("c:B | c:A d:B | c:B d:A | d:B") == [SWAP, SWAP, None]


def test_an_event_that_was_sent_again_is_the_same_event() -> None:
    """J1: a redelivery has the same place; what was ignored is ignored again."""
    assert told("c:B | c:A c:A' d:B d:B'") == [SWAP, SWAP]
    assert told("c:A c:A' d:A d:A'") == [None, None]
    assert told("c:A | c:A d: d:A'") == [SWAP, SWAP]


def test_rows_that_leave_at_one_place_are_told_apart_by_what_they_were() -> None:
    """A transaction of Oracle has one place: a row that goes on behind the key's owner leaves it, too (`id = id + 1`,
    twice).
    """
    assert told("c:A d:B' d:A'", held=("B",)) == [SWAP, None]
    assert told("c:B | c:A d:B' d:A' c:A' d:B' d:A'") == [SWAP, None, SWAP, None]
    assert told("c:A d:A' c:B' c:A' d:A' c:B'") == [None, None]
    assert told("c:A d:B' d:B' d:A'", held=("B",)) == [SWAP, SWAP, None]


def test_a_transaction_with_one_place_may_write_a_key_many_times() -> None:
    """What was sent before is looked for by what it says, not by going through all of it for each."""
    events = [Event(f"{at:06}", "p", "t", WRITE, f"v{at}", False) for at in range(20_000)]
    assert verdicts([*events, Event("1", "p", "t", DELETE, "v19999", True)]) == {}


def test_a_guest_that_leaves_a_key_to_its_owner_is_said_aloud() -> None:
    """Silver shows the guest by then, and a delete does not say what the owner looks like."""
    assert told("c:B | c:A d:A") == [AMBIGUOUS]


def test_without_the_whole_former_row_only_a_free_key_is_judged() -> None:
    """E9: filler does not tell two rows apart; where only one can be meant, it need not."""
    assert told("c:A | c:B t:") == [AMBIGUOUS]
    assert told("c:B t:") == [None]


def test_rows_whose_values_are_not_all_known_may_be_any() -> None:
    """E5: what was not sent is no difference."""
    assert told("c:A d:B", held=(None,)) == [SWAP]
    assert told("c: d:B", held=("B",)) == [SWAP]


def test_a_key_has_one_row_when_a_transaction_ends() -> None:
    """An owner of whose end nothing was told does not haunt the key."""
    assert told("c:A | c:B | d:B") == [None]
