"""What ``dead-letters show`` prints is the record, unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replicator.cli import letter_details
from replicator.operate.dead_letters import LetterDetails


def shown(**record: Any) -> dict[str, Any]:
    """As shown, of a record that is no dead letter."""
    place = {"topic": "t", "partition": 0, "offset": 1, "timestamp": None, "undecodable": None, "headers": None}
    row: Any = {**place, "key": None, "value": None, **record}
    return letter_details.describe(LetterDetails("s", row, None, None))


def test_json_is_shown_as_json_and_everything_else_as_it_is() -> None:
    """Keys, values and headers, which may repeat."""
    told = shown(key='{"id":1}', value="{oops", headers=[{"key": "a", "value": b"1"}, {"key": "a", "value": None}])
    assert (told["key"], told["value"]) == ({"id": 1}, "{oops")
    assert told["headers"] == [{"key": "a", "value": 1}, {"key": "a", "value": None}]
    assert "value: {oops" in list(letter_details.format_lines(told))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.50}',
        '{"a":12345678901234567890.123}',
        "[" * 5000 + "]" * 5000,
        '{"a":1e400}',
        '{"a":1,"a":2}',
        '{"a":{"b":"\\ud800"}}',
    ],
)
def test_what_json_would_change_or_cannot_print_stays_text(text: str) -> None:
    """A record is evidence: 1.50 is not 1.5, of two members of a name both are shown, and half of a surrogate pair has
    no bytes that a terminal could be sent.
    """
    assert shown(value=text)["value"] == text


def test_numbers_that_keep_their_spelling_are_shown_as_numbers() -> None:
    """Whole numbers of any size, and fractions that a double holds."""
    assert shown(value='{"a":1.5,"b":123456789012345678901234567890}')["value"] == {
        "a": 1.5,
        "b": 123456789012345678901234567890,
    }


def test_bytes_that_are_no_text_are_shown_in_hex() -> None:
    """All that bronze has."""
    told = shown(undecodable={"key": None, "value": bytearray(b"\xff\x00")})
    assert (told["key_hex"], told["value_hex"]) == (None, "ff00")
    json.dumps(told)
