"""A value that was not sent behind a change of its column's type (debezium.md E4, G3)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import SourceSpec
from replicator.stages import silver
from replicator.stages.refinement import Refinement
from tests.builders import UNSENT, Record, bronze, record

pytestmark = pytest.mark.spark

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": {"type": "string", "optional": True}}


def told(offset: int, op: str, after: dict[str, Any], kind: dict[str, Any]) -> Record:
    """A record with its schema block, in which b is of that kind."""
    fields = [{"field": name, "optional": True} | k for name, k in (("id", {"type": "int32"}), ("b", kind))]
    image = {"type": "struct", "fields": fields, "optional": True, "name": "p.public.t.Value", "field": "after"}
    schema = {"type": "struct", "name": "p.public.t.Envelope", "fields": [image, {"type": "string", "field": "op"}]}
    lsn = 100 * (offset + 1)
    source = {"connector": "postgresql", "name": "p", "db": "d", "schema": "public", "table": "t", "ts_ms": 1}
    source |= {"txId": lsn, "lsn": lsn, "sequence": f'["{lsn - 1}","{lsn}"]'}
    of_key = {"type": "struct", "fields": [{"field": "id", "type": "int32", "optional": False}]}
    value = {"schema": schema, "payload": {"after": after, "source": source, "op": op}}
    return record("p.public.t", offset, {"schema": of_key, "payload": {"id": after["id"]}}, value)


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)], ids=str)
def test_no_version_of_a_column_loses_what_was_not_sent(exact: Any, tmp_path: Path, cuts: tuple[int, ...]) -> None:
    """The old column keeps its value and its place; the new one has none that anybody could have taken for known."""
    memory = MemoryFormat()
    at = Refinement(SourceSpec("p", ".*"), memory, memory, MemoryControl(), Lake(str(tmp_path)))
    events = [
        told(0, "c", {"id": 1, "b": "large"}, TEXT),
        told(1, "u", {"id": 1, "b": [UNSENT]}, TEXTS),
        told(2, "c", {"id": 2, "b": ["y"]}, TEXTS),
    ]
    for start, end in pairwise([0, *cuts, len(events)]):
        at.bronze.append(bronze(exact, events[start:end]), at.lake.bronze("p"), None)
        assert [each.error for each in silver.refine(exact, at)] == [None]
    rows = at.silver.read(exact, at.lake.silver("p", "public.t")).orderBy("id").collect()
    assert [(row["b"], row["b__v2"]) for row in rows] == [("large", None), (None, ["y"])]
    assert rows[0]["_column_seq"].keys() == {"b", "b__v2"}
    assert rows[0]["_column_seq"]["b"] < rows[0]["_seq"]
