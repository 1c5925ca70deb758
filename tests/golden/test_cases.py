"""The recorded cases as folders: what each must have, and that rewriting a record for a universe adds a column only."""

from __future__ import annotations

import json

from tests.golden.cases import cases


def test_every_case_is_complete() -> None:
    """A folder has its script, its settings, the recorded events and rows, and says why it is there."""
    parts = {"script.sql", "case.yaml", "events.jsonl", "expected.json", "why.md"}
    missing = {case.name: parts - {file.name for file in case.folder.iterdir()} for case in cases()}
    assert {name: files for name, files in missing.items() if files} == {}


def test_no_two_cases_have_a_table_of_one_name() -> None:
    """They share a lake in `test_universes.py`."""
    tables = [table for case in cases() for table in case.expected]
    assert len(tables) == len(set(tables))


def test_records_survive_a_reading_and_writing_of_their_json() -> None:
    """`universes.py` reads records, adds a column and writes them: without the column their texts are the same."""
    texts = [text for case in cases() for event in case.events for text in (event["key"], event["payload"]) if text]
    again = [json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False) for text in texts]
    assert again == texts
