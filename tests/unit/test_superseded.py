"""Which records of a key are parsed: the newest alone where it replaces the others, all where they have a say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from replicator.formats.control import MemoryControl
from replicator.lake import Lake
from replicator.spec import BY_TIME, Column, Declaration, SourceSpec, Transform
from replicator.stages import silver, tuning
from replicator.stages.refinement import Refinement
from replicator.stages.table import decoding, ordering, schema_change
from replicator.stages.tick import forms as forms_of
from replicator.stages.tick import tick_split, ticks
from replicator.transforms.decode import DecodeOptions, decode
from tests.builders import UNSENT, Record, Sized, bronze, envelope, folded, record

pytestmark = pytest.mark.spark

COLUMNS = (Column("id", "int"), Column("n", "int"), Column("v", "string"))
NEW_KEY = ("__debezium.newkey", b'{"id":9}')


@dataclass(frozen=True)
class Case:
    """Records of a table that is declared so; how many of them are not parsed, and what is said of rows: ``v`` by
    ``id``, None of a deleted one.
    """

    records: Sequence[tuple[int, dict[str, Any]]]
    replaced: int
    rows: dict[int, str | None]
    declared: dict[str, Any] = field(default_factory=dict)


def said(key: int, v: str, /, **more: Any) -> tuple[int, dict[str, Any]]:
    """A change of a row; ``more`` is what sets it apart."""
    return key, {"v": v, **more}


def times(key: int, *values: str) -> list[tuple[int, dict[str, Any]]]:
    return [said(key, v) for v in values]


OTHER = times(2, "p", "q", "r", "s")
CASES = {
    "newest": Case([*times(1, "a", "b", "c", "d"), *OTHER], 6, {1: "d", 2: "s"}),
    "fallen": Case([said(1, v, pos=pos) for v, pos in (("a", 9), ("b", 8), ("c", 7))], 2, {1: "a"}),
    "deleted": Case([*times(1, "a", "b"), said(1, "", op="d"), (1, {"value": None}), *OTHER], 4, {1: None, 2: "s"}),
    "by_time": Case(
        [said(1, v, ts_ms=ts) for v, ts in (("a", 30), ("b", 20), ("c", 10))], 2, {1: "a"}, {"sequence_by": BY_TIME}
    ),
    "unsent": Case([*times(1, "a", "b"), said(1, UNSENT, n=7), *OTHER], 3, {1: "b", 2: "s"}),
    "scattered": Case([*times(1, "a", "b"), said(1, "c", partition=1), *OTHER], 5, {1: "c", 2: "s"}),
    "tied": Case([*times(1, "a", "b"), said(1, "c", partition=1, pos=5), *OTHER], 3, {1: "c", 2: "s"}),
    "once_each": Case([said(key, "a") for key in range(5)], 0, dict.fromkeys(range(5), "a")),
    "moved": Case([*times(1, "a", "b"), said(1, "", op="d", headers=(NEW_KEY,)), *OTHER], 0, {1: None, 2: "s"}),
    "emptied": Case([*times(1, "a", "b"), (1, {"op": "t", "key": None}), *OTHER], 0, {2: "s"}),
    "keyless": Case([*times(1, "a", "b"), said(1, "c", key=None), *OTHER], 0, {1: "b", 2: "s"}),
    "misfit": Case([*times(1, "a", "b"), said(1, "c", n="x"), *OTHER], 0, {1: "b", 2: "s"}),
    "nowhere": Case([*times(1, "a", "b"), said(1, "c", file=None), *OTHER], 0, {1: "b", 2: "s"}),
    "own_key": Case([said(1, v, key={"x": 1}) for v in "abcd"], 0, {1: "d"}, {"keys": ("id",)}),
    "as_deletes": Case(
        [*times(1, "a", "gone", "b"), *times(2, "p", "q", "gone")],
        0,
        {1: "b", 2: None},
        {"transform": Transform(as_deletes="v = 'gone'")},
    ),
    "history": Case([*times(1, "a", "b", "c"), *OTHER], 0, {1: "c", 2: "s"}, {"stored_as_scd_type": 2}),
}


def sent(name: str) -> list[Record]:
    """The records of a case, offsets in their order."""
    return [_sent(name, offset, key, dict(told)) for offset, (key, told) in enumerate(CASES[name].records)]


def _sent(name: str, offset: int, key: int, told: dict[str, Any]) -> Record:
    topic, given = f"s.shop.{name}", told.pop("key", {"id": key})
    place: dict[str, Any] = {name: told.pop(name) for name in ("partition", "headers") if name in told}
    if "value" in told:
        return record(topic, offset, given, told["value"], **place)
    op, row = told.pop("op", "u"), {"id": key, "n": told.pop("n", 1), "v": told.pop("v", None)}
    before = row if op == "d" else None
    after = None if op in ("d", "t") else row
    where: dict[str, Any] = {"pos": 4 + offset, "table": f"shop.{name}"} | told
    return record(topic, offset, given, envelope(op, after, before, **where), **place)


def lake(folder: Path, size: int = 0) -> Refinement:
    declared = tuple(Declaration(f"shop.{name}", COLUMNS, **case.declared) for name, case in CASES.items())
    format_ = Sized(size)
    return Refinement(SourceSpec("s", ".*", tables=declared), format_, format_, MemoryControl(), Lake(str(folder)), 1.0)


def append(spark: SparkSession, at: Refinement, *names: str) -> None:
    at.bronze.append(bronze(spark, [each for name in names for each in sent(name)]), at.lake.bronze("s"), None)


def test_the_newest_alone_is_parsed_where_it_replaces_the_others(exact: SparkSession, tmp_path: Path) -> None:
    """Not where an older record has a say: a column that was not sent, one place in two partitions, a key change, a
    truncate, no key in Kafka, a history, or a newest one that cannot be applied. What becomes of the rows is the same.
    Changes of several forms are in one task, so that what merges them sends none anywhere.
    """
    at = lake(tmp_path)
    append(exact, at, *CASES)
    found: dict[str, int] = {}
    with ticks.read_next(exact, at) as tick:
        assert tick is not None
        shared = tick_split.split_by_table(tick)
        for share in shared.shares:
            rows = []
            for every in (False, True):
                with decoding.decode_share(share, shared.records, places=share.has_place_ties, every=every) as read:
                    changes = read.changes.where("_reject IS NULL").drop("_reject", "_at")
                    once = folded(changes, read.schema.plan.layout.keys)
                    rows.append(sorted(map(str, once.collect())))
                    assert every <= (read.replaced == 0)
                    if share.name == "shop.deleted":
                        assert len(share.rows) > 1
                        assert read.changes._jdf.queryExecution().toRdd().getNumPartitions() == 1
                    found.setdefault(share.name.removeprefix("shop."), read.replaced)
            assert rows[0] == rows[1], share.name
    assert found == {name: case.replaced for name, case in CASES.items()}


def test_changes_in_no_doubt_need_no_reasons(exact: SparkSession, tmp_path: Path) -> None:
    """Decoded without reasons a change is what it is with them, and in doubt where it has one; what plans ask no value
    why it does not fit. Where a function of our own tells the members of many records both are the same (0099).
    """
    at, some = lake(tmp_path), ("newest", "deleted", "unsent", "keyless", "misfit", "nowhere", "own_key")
    append(exact, at, *some)
    doubtful = {}
    with ticks.read_next(exact, at) as tick:
        assert tick is not None
        shared = tick_split.split_by_table(tick)
        for share in shared.shares:
            rows = share.changes_in(shared.records)
            forms, _ = forms_of.from_groups(share.rows, rows, share.declaration, None)
            ordered = ordering.order_records(share, rows)
            layout = schema_change.plan_change(share, ordered, forms, None).plan.layout
            needs = DecodeOptions(at.placeholder if share.any("has_placeholder") else None, places=True)
            told, quick = (decode(ordered, forms, layout, share.name, needs, reasons=asked) for asked in (True, False))
            assert sound(told) == sound(quick), share.name
            doubtful[share.name.removeprefix("shop.")] = refused(quick)
            assert refused(told) == refused(quick), share.name
            assert ["type_mismatch" in plan(each) for each in (told, quick)] == [True, False], share.name
            by_members = replace(needs, many=True)
            for few, asked in ((told, True), (quick, False)):
                many = decode(ordered, forms, layout, share.name, by_members, reasons=asked)
                assert (sound(many), refused(many)) == (sound(few), refused(few)), share.name
                assert ["_row_members" in plan(each) for each in (few, many)] == [False, True], share.name
    assert {name for name, places in doubtful.items() if places} == {"keyless", "misfit", "nowhere"}


def plan(changes: DataFrame) -> str:
    return str(changes._jdf.queryExecution().optimizedPlan().toString())


def sound(changes: DataFrame) -> list[str]:
    return sorted(map(str, changes.where("_reject IS NULL").collect()))


def refused(changes: DataFrame) -> list[int]:
    found = changes.where("_reject IS NOT NULL").select("_reject.offset", "_at.offset").collect()
    assert all(of_letter == of_change for of_letter, of_change in found)
    return sorted(of_letter for of_letter, _ in found)


def test_every_record_is_accounted_for_and_every_row_is_right(spark: SparkSession, tmp_path: Path) -> None:
    """In a batch that is not small, too: what was not parsed is superseded, and no record is missing (R1)."""
    some = ("newest", "unsent", "scattered", "tied", "misfit", "emptied")
    at = lake(tmp_path, tuning.SMALL_RECORD_BYTES)
    append(spark, at, *some)
    accounts = {each.table.removeprefix("s/shop."): each for each in silver.refine(spark, at)}
    told = {name: (each.error, each.residue, each.read, each.dead_lettered) for name, each in accounts.items()}
    assert told == {name: (None, 0, len(CASES[name].records), int(name == "misfit")) for name in some}
    assert accounts["newest"].superseded == CASES["newest"].replaced
    for name in some:
        stored = at.silver.read(spark, at.lake.silver("s", f"shop.{name}")).collect()
        rows = {row["id"]: None if row["_deleted"] else row["v"] for row in stored}
        assert rows == CASES[name].rows, name
