"""Who may write a table: one at a time in this process."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from replicator.formats.delta import DeltaFormat
from replicator.formats.hudi import HudiFormat
from replicator.spec import Table

WRITING = ("apply", "put", "replace", "drop", "evolve")


@pytest.mark.parametrize(
    ("kind", "verb"),
    [*((DeltaFormat, verb) for verb in WRITING), *((HudiFormat, verb) for verb in ("append", *WRITING))],
)
def test_who_writes_a_table_waits_until_it_is_free(kind: type[Any], verb: str) -> None:
    """As while upkeep is at work on it; Delta itself tells writers apart that only append."""
    format_, table = kind(), Table("t", "nowhere")

    def write() -> None:
        with suppress(Exception):  # there are no rows: it is to wait before it looks at them
            getattr(format_, verb)(None, table)

    writer = Thread(target=write, daemon=True)
    with format_._turns.of(table):
        writer.start()
        writer.join(0.1)
        assert writer.is_alive()
    writer.join(10)
    assert not writer.is_alive()
