"""``_seq`` in the source's own terms: the worked examples of debezium.md L4, read back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replicator.debezium import seq_format
from replicator.errors import ReplicatorError
from tests.builders import envelope

CASES = [
    ("mysql", "0000 00000003 00000000071b 0000000000000000 0000000000000029", "file 3, pos 1819, offset 41"),
    ("mariadb", "0000 000f4240 000000000004 0000000000000000 0000000000000039", "file 1000000, pos 4, offset 57"),
    ("mysql", "0000 00000003 00000000071b 0000000000000002 0000000000000029", "file 3, pos 1819, row 2, offset 41"),
    (
        "postgresql",
        "0000 00000000000001d41038 0000000001d41420 0000000000000007",
        "commit_lsn 0/1D41038, lsn 0/1D41420, offset 7",
    ),
    (
        "postgresql",
        "0000 00000000000100000002 0000000100000003 0000000000000007",
        "commit_lsn 1/2, lsn 1/3, offset 7",
    ),
    (
        "sqlserver",
        "0000 0000002700000ac00002 0000000000000000 0000000000000058",
        "commit_lsn 00000027:00000ac0:0002, offset 88",
    ),
    ("oracle", "0000 000000000000002bc542 0000000000000000 0000000000000009", "commit_scn 2868546, offset 9"),
    (None, "0000 00000000000000000000 0000000000000000 0000000000000009", "offset 9"),
    (None, "0001 00000000000000000000 0000000000000000 0000000000000000", "epoch 1, offset 0"),
    (
        None,
        "0000 00000000000000000001 0000000000000002 0000000000000003",
        "major 00000000000000000001, minor 0000000000000002, offset 3",
    ),
    ("oracle", "0000 00000000000000000005 0000000000000000 0000000000000009-", "deleted at commit_scn 5, offset 9"),
    ("oracle", "", "never"),
]


@pytest.mark.parametrize(("connector", "seq", "told"), CASES)
def test_a_position_is_told_in_the_words_of_its_connector(connector: str | None, seq: str, told: str) -> None:
    """L2: what `position.py` packed into a text comes out as people know it."""
    assert seq_format.describe(seq.replace(" ", ""), connector) == told


@pytest.mark.parametrize("text", ["0000", "g" * 56, "0" * 55, "0" * 57, "0" * 56 + "++"])
def test_what_is_no_seq_is_refused(text: str) -> None:
    """Q1: 56 hex digits, and nothing else."""
    with pytest.raises(ReplicatorError, match="is not a _seq"):
        seq_format.parse(text)


@pytest.mark.parametrize(
    ("value", "connector"),
    [
        (envelope("c", {"id": 1}), "mariadb"),
        ({"schema": None, "payload": envelope("c", {"id": 1})}, "mariadb"),
        ({"id": 1, "__lsn": 5}, "postgresql"),
        ({"id": 1, "__source_file": "b.1", "__source_connector": "MySQL"}, "mysql"),
        ({"id": 1}, None),
        ([1], None),
        ({"source": {"ts_ms": 1}, "op": "c"}, None),
    ],
)
def test_a_record_tells_its_connector(value: dict[str, Any] | list[int], connector: str | None) -> None:
    """From ``source``, or from the metadata of a flattened row."""
    assert seq_format.connector_of(json.dumps(value)) == connector


@pytest.mark.parametrize("value", [None, "", "{oops", "[" * 100_000])
def test_what_is_no_json_tells_no_connector(value: str | None) -> None:
    """Poison is a normal case."""
    assert seq_format.connector_of(value) is None
