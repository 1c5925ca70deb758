"""What a table's transform makes of its changes, and what it may not be."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator import failpoints
from replicator.debezium.jsontext import Number
from replicator.debezium.record_masking import text_to_hash
from replicator.errors import TableStopped, TransformChanged
from replicator.failpoints import Killed
from replicator.formats.control import MemoryControl
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.operate.rebuild import RebuildOptions, rebuild
from replicator.operate.rebuilding.rebuild_result import EQUAL, WRITTEN
from replicator.operate.verify.source_transform import apply_transform
from replicator.spec import Column, Declaration, Mask, Progress, SourceSpec, Transform
from replicator.stages import silver
from replicator.stages.account import Account
from replicator.stages.ingest import masking
from replicator.stages.refinement import Refinement
from replicator.stages.table import transform_origins
from replicator.transforms import fold, merge
from replicator.transforms.table_transform import binding, casts, execution, hashing
from replicator.transforms.table_transform.binding import InvalidTransform
from tests import user_functions
from tests.builders import UNSENT, Record, bronze, envelope, made, record

pytestmark = pytest.mark.spark

TOPIC, NAME = "s.shop.people", "shop.people"
KEY = "the key of hashed columns"
COLUMNS = {"id": "int", "name": "string", "email": "string", "phone": "string", "ssn": "string", "total": "string"}
ROW = {"name": " Ann ", "email": "ann@example.org", "phone": "Tel 12-34", "ssn": "078-05", "total": "1.5"}
_LETTER = (
    "STRUCT<topic: STRING, topic_id: STRING, partition: INT, offset: BIGINT, table: STRING, seq: STRING, "
    "reason: STRING, detail: STRING>"
)
_CHANGES = (
    "id INT, name STRING, email STRING, total INT, _seq STRING, _deleted BOOLEAN, _source_ts_ms BIGINT, "
    f"_unavailable ARRAY<STRING>, _reject {_LETTER}, "
    "_at STRUCT<topic: STRING, topic_id: STRING, partition: INT, offset: BIGINT>"
)


def digest(text: str) -> str:
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


class World:
    """A source's silver in memory, its table transformed."""

    def __init__(self, spark: SparkSession, folder: Path, transform: Transform, **told: Any) -> None:
        self.spark, self.folder, self.offset = spark, folder, 0
        self.format, self.control = MemoryFormat(), MemoryControl()
        self.told = Declaration(NAME, tuple(Column(name, kind) for name, kind in COLUMNS.items()), **told)
        self.declare(transform)

    def declare(self, transform: Transform | None) -> None:
        """In another process."""
        told = replace(self.told, transform=transform)
        spec = SourceSpec("s", ".*", tables=(told,), hash_key=KEY)
        self.at = Refinement(spec, self.format, self.format, self.control, Lake(str(self.folder)), 1.0)

    def change(self, op: str, key: int, pos: int, **values: Any) -> Record:
        self.offset += 1
        row = None if op == "d" else {"id": key, **ROW, **values}
        return record(TOPIC, self.offset, {"id": key}, envelope(op, row, table=NAME, pos=pos))

    def truncate(self, pos: int) -> Record:
        self.offset += 1
        return record(TOPIC, self.offset, None, envelope("t", table=NAME, pos=pos))

    def take(self, *records: Record) -> Account:
        """One batch."""
        self.format.append(bronze(self.spark, records), self.at.lake.bronze("s"), None)
        [account] = silver.refine(self.spark, self.at)
        return account

    def applied(self, *records: Record) -> Account:
        """One batch that nothing is wrong with."""
        account = self.take(*records)
        assert (account.error, account.residue, account.dead_lettered) == (None, 0, 0)
        return account

    def rows(self) -> list[dict[str, Any]]:
        """Live rows."""
        found = self.format.read(self.spark, self.at.lake.silver("s", NAME)).where("NOT _deleted").collect()
        return [{c: v for c, v in row.asDict().items() if not c.startswith("_")} for row in found]

    def at_rest(self) -> str:
        """All that silver and the history hold, as text."""
        lake = self.at.lake
        tables = [self.format.read(self.spark, each) for each in (lake.silver("s", NAME), lake.history("s", NAME))]
        return str([row for each in tables for row in each.collect()])


EVERY_STEP = Transform(
    cast=(("total", "decimal(8,2)"),),
    function="tests.user_functions:tidy",
    derive=(("gross", "total * 2"),),
    where="total > 1",
    hashed=("email", "id"),
    masked=("phone",),
    except_column_list=("ssn",),
    rename=(("name", "full name"),),
)


def test_a_table_rests_as_its_transform_says_and_rows_that_stop_matching_leave(
    exact: SparkSession, tmp_path: Path
) -> None:
    """Cast, function, derived, filtered, hashed, masked, left out, renamed: in silver and in the history; a change that
    comes late does not bring a row back that left.
    """
    world = World(exact, tmp_path, EVERY_STEP, stored_as_scd_type=2)
    late = world.change("u", 2, 15, name="late")
    world.applied(
        world.change("c", 1, 10),
        world.change("c", 2, 11, total="1.0"),
        world.change("c", 3, 12),
        world.change("c", 4, 13, email=None),
    )
    ann: dict[str, Any] = {
        "id": digest("1"),
        "full_x20_name": "Ann",
        "email": digest("ann@example.org"),
        "phone": "Xxx nn-nn",
    }
    ann |= {"total": 1.5, "initial": "A", "gross": 3}
    rows = {row["id"]: row for row in world.rows()}
    assert rows.keys() == {digest(key) for key in "134"}
    assert {**rows[digest("1")], "total": 1.5, "gross": 3} == ann
    assert list(rows[digest("1")]) == ["id", "full_x20_name", "email", "phone", "total", "initial", "gross"]
    assert rows[digest("4")]["email"] is None
    world.applied(world.change("u", 1, 20, total="0.5"), world.change("u", 2, 21, total="2"), world.change("d", 3, 22))
    assert {row["id"] for row in world.rows()} == {digest("2"), digest("4")}
    world.applied(late, world.change("u", 1, 18))
    assert {(row["id"], row["full_x20_name"]) for row in world.rows()} == {(digest("2"), "Ann"), (digest("4"), "Ann")}
    held = world.at_rest()
    assert not [clear for clear in ("ann@", "078-05", "12-34", " Ann ") if clear in held]
    history = world.format.read(exact, world.at.lake.history("s", NAME)).where(F.col("id") == digest("1"))
    ended = history.where("__END_AT IS NOT NULL AND __END_AT > __START_AT").select("__START_AT", "__END_AT").collect()
    assert [(row["__START_AT"] < row["__END_AT"]) for row in ended] == [True]  # from 10 on until it left at 20


def test_what_cannot_be_transformed_is_a_dead_letter_that_holds_no_value(exact: SparkSession, tmp_path: Path) -> None:
    """A cast that loses a value, and a filter over a row that did not come whole (E4)."""
    world = World(exact, tmp_path, replace(EVERY_STEP, function="", derive=()))
    account = world.take(
        world.change("c", 1, 10),
        world.change("c", 2, 11, total="much"),
        world.change("u", 1, 12, email=UNSENT),
        world.change("u", 1, 13, ssn=UNSENT, total="7"),
    )
    assert (account.error, account.applied + account.superseded, account.dead_lettered) == (None, 2, 2)
    letters = world.format.read(exact, world.at.lake.dead_letters("s")).collect()
    assert {(row["offset"], row["reason"], row["detail"]) for row in letters} == {
        (2, "type_mismatch", "total"),
        (3, "filter_incomplete", None),
    }
    assert "much" not in str(letters)
    assert [row["total"] for row in world.rows()] == [7]


def test_a_cast_to_a_number_neither_rounds_nor_cuts(exact: SparkSession, tmp_path: Path) -> None:
    """Y2, Y10: a value that would be another one is lost, whatever Spark's own cast makes of it; keys too."""
    cases = [
        ("'1.50'", "decimal(12,2)", "1.50"), ("'1.505'", "decimal(12,2)", None), ("' 7 '", "decimal(12,2)", "7.00"),
        ("'1e2'", "decimal(12,2)", "100.00"), ("'x'", "decimal(12,2)", None), ("'99999999999'", "decimal(12,2)", None),
        ("'-0.00'", "decimal(12,2)", "0.00"), ("'1.7'", "int", None), ("' 7 '", "int", "7"),
        ("'7000000000'", "int", None),
        ("1.7D", "int", None), ("-0.9D", "int", None), ("2D", "int", "2"), ("1e20D", "bigint", None),
        ("double('NaN')", "int", None), ("0.1D", "decimal(12,2)", "0.10"), ("1.505D", "decimal(12,2)", None),
        ("float(0.1)", "decimal(12,2)", "0.10"), ("float(1.505)", "decimal(12,2)", None), ("70000", "smallint", None),
        ("7L", "smallint", "7"), ("12L", "decimal(3,1)", "12.0"), ("123L", "decimal(3,1)", None),
        ("1.50BD", "int", None), ("2.00BD", "int", "2"), ("9.99BD", "decimal(2,1)", None),
        ("9.90BD", "decimal(2,1)", "9.9"),
        ("true", "int", "1"), ("1.7D", "float", "1.7"), ("timestamp_ntz'2003-01-06 10:11:12'", "date", "2003-01-06"),
    ]  # fmt: skip
    rows = exact.sql("SELECT " + ", ".join(f"{value} AS c{at}" for at, (value, _, _) in enumerate(cases)))
    told = casts.normalize_types(rows, {f"c{at}": kind for at, (_, kind, _) in enumerate(cases)})
    held = dict(rows.dtypes)
    [row] = rows.select(
        *[casts.exact_cast(name, held[name], kind).cast("string").alias(name) for name, kind in told.items()]
    ).collect()
    found = [(*case[:2], row[at]) for at, case in enumerate(cases)]
    assert found == cases
    world = World(exact, tmp_path, Transform(cast=(("total", "dec(8, 2)"), ("id", "tinyint"))))
    world.take(world.change("c", 1, 10), world.change("c", 2, 11, total="1.505"), world.change("c", 300, 12))
    letters = world.format.read(exact, world.at.lake.dead_letters("s")).collect()
    assert {(row["offset"], row["reason"]) for row in letters} == {(2, "type_mismatch"), (3, "key_undecodable")}
    assert [(row["id"], row["total"]) for row in world.rows()] == [(1, Decimal("1.50"))]


def test_a_column_that_is_made_of_one_that_was_not_sent_keeps_its_value(exact: SparkSession, tmp_path: Path) -> None:
    """E4 through derived, hashed and renamed columns; the others are updated."""
    told = Transform(derive=(("both", "concat(name, ssn)"),), hashed=("ssn",), rename=(("ssn", "number"),))
    world = World(exact, tmp_path, told)
    world.applied(world.change("c", 1, 10))
    world.applied(world.change("u", 1, 11, ssn=UNSENT, name="Bob", phone="none"))
    [row] = world.rows()
    assert (row["name"], row["phone"], row["number"], row["both"]) == ("Bob", "none", digest("078-05"), " Ann 078-05")


@pytest.mark.parametrize(
    ("told", "policy", "scd_type"),
    [
        (Transform(as_deletes="ssn = 'gone'"), "apply", 2),
        (Transform(rename=(("id", "nr"),), except_column_list=("ssn",)), "apply", 1),
        (Transform(shard="shard"), "ignore", 1),
    ],
    ids=["apply_as_deletes", "another key", "shards"],
)
def test_a_truncate_that_comes_alone_leaves_the_table_its_transform(
    exact: SparkSession, tmp_path: Path, told: Transform, policy: str, scd_type: int
) -> None:
    """T2: in a batch without a row, before the first one and behind it, whatever it is to do to the table."""
    world = World(exact, tmp_path, told, truncate=policy, stored_as_scd_type=scd_type)
    world.applied(world.truncate(5))
    world.applied(world.change("c", 1, 10))
    columns = set(world.rows()[0])
    world.applied(world.truncate(20))
    assert len(world.rows()) == (0 if policy == "apply" else 1)
    world.applied(world.change("c", 2, 30), world.change("u", 1, 15))
    assert [set(row) for row in world.rows()] == [columns] * (1 if policy == "apply" else 2)


def test_a_table_may_begin_with_deletes_alone(exact: SparkSession, tmp_path: Path) -> None:
    """B4: they tell no columns; the transform is over those that are declared, and what is older stays deleted."""
    world = World(exact, tmp_path, replace(EVERY_STEP, hashed=("email",)))
    late = world.change("u", 1, 5, total="7")
    world.applied(world.change("d", 1, 10))
    world.applied(late, world.change("c", 2, 11, total="7"))
    assert [(row["id"], row["total"]) for row in world.rows()] == [(2, 7)]


def test_what_is_made_of_the_key_too_is_not_had_from_under_the_old_one(exact: SparkSession, tmp_path: Path) -> None:
    """M7, E5: such a value is another one under the new key, and not known."""
    world = World(exact, tmp_path, Transform(derive=(("code", "concat(id, '-', ssn)"), ("last", "right(ssn, 2)"))))
    world.applied(world.change("c", 1, 10))
    left = replace(world.change("d", 1, 20), headers=(("__debezium.newkey", b'{"id":7}'),))
    came = replace(world.change("c", 7, 20, ssn=UNSENT), headers=(("__debezium.oldkey", b'{"id":1}'),))
    world.applied(left, came)
    found = world.format.read(exact, world.at.lake.silver("s", NAME)).where("id = 7").collect()
    assert [(row["code"], row["ssn"], row["last"]) for row in found] == [(None, "078-05", "05")]
    assert [set(row["_column_seq"]) for row in found] == [{"code"}]


def test_another_transform_stops_the_table_until_it_is_rebuilt(exact: SparkSession, tmp_path: Path) -> None:
    """Half of its rows would be of one and half of the other; a rebuild makes all of them anew from bronze."""
    world = World(exact, tmp_path, Transform(hashed=("email",)))
    world.applied(world.change("c", 1, 10))
    for told in (None, Transform(hashed=("email", "ssn"))):
        world.declare(told)
        account = world.take(world.change("c", 2, 11))
        assert isinstance(account.error, TransformChanged)
        assert "`replicator rebuild s/shop.people`" in str(account.error)
    done = rebuild(exact, world.at, NAME, RebuildOptions())
    assert (done.verdict, done.rows, done.added) == (WRITTEN, 2, 1)
    world.applied(world.change("u", 1, 12, name="Bob"))
    rows = {row["id"]: (row["name"], row["ssn"], row["email"]) for row in world.rows()}
    assert rows[1] == ("Bob", digest("078-05"), digest("ann@example.org"))
    assert rows[2][1:] == (digest("078-05"), digest("ann@example.org"))


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (Transform(function="tests.user_functions:fewer"), "select rows with `where`"),
        (Transform(function="tests.user_functions:ranked"), "Window"),
        (Transform(function="tests.user_functions:moody"), "luck is not deterministic"),
        (Transform(function="tests.user_functions:dated"), "seen depends on when it is computed"),
        (Transform(function="tests.user_functions:other_key"), "must leave id unchanged"),
        (Transform(function="tests.user_functions:forgetful"), "must leave _seq unchanged"),
        (Transform(function="tests.user_functions:tidy", shard="Initial"), "must not return a column initial"),
        (Transform(derive=(("x", "emial"),)), "emial"),
        (Transform(derive=(("x", "uuid()"),)), "x is not deterministic"),
        (Transform(derive=(("x", "NULL"),)), "x has no type"),
        (Transform(derive=(("x", "sum(total)"),)), "GROUP BY"),
        (Transform(derive=(("id", "id + 1"),)), "id is a key column"),
        (Transform(where="name >"), "Syntax error"),
        (Transform(hashed=("emial",)), "column emial does not exist"),
        (Transform(except_column_list=("id",)), "id is a key column"),
        (Transform(rename=(("name", "email"),)), "two columns would be named email"),
        (Transform(cast=(("total", "no type"),)), "type"),
    ],
)
def test_what_is_not_done_row_by_row_does_not_fit(exact: SparkSession, told: Transform, sentence: str) -> None:
    """Of each change alone, or the order and the batching of changes would show in the table."""
    function = getattr(user_functions, told.function.partition(":")[2]) if told.function else None
    with pytest.raises(InvalidTransform) as caught:
        binding.bind(told, function, KEY, NAME, made(exact, [], _CHANGES), ("id",))
    assert sentence in str(caught.value)


def test_verify_compares_the_rows_of_the_source_as_they_are_transformed(exact: SparkSession, tmp_path: Path) -> None:
    """Filtered, hashed and renamed alike; what is made of a column that nobody can read is not compared, and a filter
    over it is refused.
    """
    world = World(exact, tmp_path, replace(EVERY_STEP, function=""))
    world.applied(world.change("c", 1, 10), world.change("c", 2, 11, total="1"), world.change("c", 3, 12, total="3"))
    origin = transform_origins.load_by_name(
        world.at, NAME, world.at.bronze.identity(exact, world.at.lake.bronze("s")) or ""
    )
    assert origin is not None
    assert origin.columns.fieldNames() == list(COLUMNS)
    values = [(1, " Ann ", "ann@example.org", "1.5"), (2, "", "", "1"), (3, " Ann ", "ann@example.org", "3")]
    rows = made(exact, values, "id INT, name STRING, email STRING, total STRING")
    found = apply_transform(world.at, NAME, rows, origin.columns, {"email": "json"})
    assert (found.keys, found.rows.columns) == (("id",), ["id", "full_x20_name", "total", "gross"])
    assert [word.split(":")[0] for word in found.unknown] == ["email", "phone"]
    wanted = [tuple(row[name] for name in found.rows.columns) for row in world.rows()]
    assert {tuple(row) for row in found.rows.collect()} == set(wanted)
    assert len(wanted) == 2
    with pytest.raises(TableStopped, match="needs total, which cannot be compared"):
        apply_transform(world.at, NAME, rows.drop("total"), origin.columns, {})


def test_without_the_source_a_dry_rebuild_compares_silver_with_bronze(exact: SparkSession, tmp_path: Path) -> None:
    """Through the same transform: what is filtered, hashed and derived is equal until somebody writes into the table; a
    key is named, and no value of bronze's.
    """
    told = Transform(derive=(("twice", "total * 2"),), where="total > 1", hashed=("email",), rename=(("name", "n"),))
    world = World(exact, tmp_path, told)
    world.applied(*[world.change("c", key, 10 + key, total=str(total)) for key, total in ((1, 2), (2, 1), (3, 3))])
    done = rebuild(exact, world.at, NAME, RebuildOptions(dry=True))
    assert (done.verdict, done.rows, done.letters) == (EQUAL, 3, 0)
    place = world.at.lake.silver("s", NAME, ("id",))
    rows = world.format.read(exact, place).where("id < 3")
    clear = F.when(F.col("id") == 1, "ann@example.org").otherwise(F.col("email"))
    wrong = rows.withColumns({"email": clear, "_deleted": F.lit(False), "_op": F.lit("upsert")})
    world.format.put(wrong, place, Progress("somebody", 1))
    before = world.rows()
    done = rebuild(exact, world.at, NAME, RebuildOptions(dry=True))
    assert (done.verdict, done.added, done.changed, done.gone) == (WRITTEN, 0, 2, 0)
    assert sorted(done.named) == ["id=1: email", "id=2: _deleted"]
    assert world.rows() == before


def changed(key: int, seq: str, total: Any, *, deleted: bool = False) -> tuple[Any, ...]:
    """A decoded change; its name and address tell where it is from."""
    return (key, f"n{seq}", f"{seq}@x", total, seq, deleted, int(seq), [], None, (TOPIC, None, 0, int(seq)))


def test_the_merge_laws_hold_behind_a_transform(exact: SparkSession) -> None:
    """M4: every order and batching of changes, repeated ones among them, ends as the newest change says."""
    told = Transform(derive=(("twice", "total * 2"),), where="total > 1", hashed=("email",), rename=(("name", "n"),))
    seeded = random.Random(34)
    histories = [[seeded.choice([None, 0, 1, 2, 3, "d"]) for _ in range(4)] for _ in range(8)]
    wanted: dict[int, tuple[Any, ...]] = {}
    batches: tuple[list[Any], ...] = ([], [], [])
    for number, history in enumerate(histories):
        told_of = [(f"{10 + at}", value) for at, value in enumerate(history)]
        for turn, order in enumerate(permutations(told_of)):
            key = 100 * number + turn
            seq, last = told_of[-1]
            is_there = isinstance(last, int) and last > 1
            wanted[key] = (
                (2 * last, digest(f"{seq}@x"), f"n{seq}", seq, False) if is_there else (None, None, None, seq, True)
            )
            for at, (place, value) in enumerate([*order, seeded.choice(order)]):
                row = changed(key, place, value if value != "d" else None, deleted=value == "d")
                batches[min(at // 2, 2)].append(row)
    held = None
    for batch in batches:
        rows = made(exact, batch, _CHANGES)
        making = binding.bind(told, None, KEY, NAME, rows, ("id",))
        fresh = execution.apply_filter(execution.transform_changes(rows, making)).drop("_reject", "_at")
        folded = fold.fold(fresh, making.keys_there, ())
        held = folded if held is None else merge.merge_rows(held, folded.select(held.columns), making.keys_there)
        held = held.localCheckpoint()
    assert held is not None
    found = {row["id"]: (row["twice"], row["email"], row["n"], row["_seq"], row["_deleted"]) for row in held.collect()}
    assert found == wanted
    assert len(wanted) == 8 * 24


def test_a_hash_is_hmac_sha_256_and_its_key_is_in_no_plan(exact: SparkSession) -> None:
    """Equal values have equal hashes in every table and in the text of bronze; NULL stays NULL; wider types change
    nothing; nobody reads the key in Spark's page.
    """
    values: Sequence[tuple[Any, ...]] = [("ä", 1, bytearray(b"\xff"), 10)]
    rows = made(exact, values, "t STRING, n INT, b BINARY, c INT").select(
        "*",
        F.expr("cast(12.50 AS decimal(6,2))").alias("d"),
        F.expr("cast(12.5 AS decimal(20,5))").alias("wider"),
        F.expr("cast(12 AS decimal(6,2))").alias("whole"),
        F.lit(None).cast("string").alias("nothing"),
        F.array("n").alias("nested"),
    )
    keyed = hashing.with_hmac_pads(rows, KEY)
    kinds = dict(rows.dtypes)
    result = keyed.select(*[hashing.hash_value(F.col(c), kinds[c]).alias(c) for c in rows.columns])
    [row] = result.collect()
    assert row["t"] == digest("ä") == hashing.digest(KEY, "ä")
    assert (row["n"], row["c"]) == (digest("1"), digest("10"))
    assert row["b"] == hmac.new(KEY.encode(), b"\xff", hashlib.sha256).hexdigest()
    assert row["d"] == row["wider"] == digest("12.5") == hashing.digest(KEY, text_to_hash(Number("12.500")))
    assert row["whole"] == digest("12") == hashing.digest(KEY, text_to_hash(Number("12.00")))
    assert (row["nothing"], row["nested"]) == (None, digest("[1]"))
    java: Any = result._jdf
    plan = java.queryExecution().toString()
    block = KEY.encode().ljust(64, b"\0")
    for pad in (0, 0x36, 0x5C):
        part = bytes(byte ^ pad for byte in block)
        assert part.hex()[:24].upper() not in plan.upper()
        assert part[:12].decode("latin1") not in plan
    long = "x" * 100
    [row] = hashing.with_hmac_pads(rows, long).select(hashing.hash_value(F.col("t"), "string").alias("t")).collect()
    assert row["t"] == hashing.digest(long, "ä")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("cast(1.0 AS double)", "1.0"),
        ("cast(-1.5 AS double)", "-1.5"),
        ("cast(1e10 AS double)", "1.0E10"),
        ("cast(1e10 AS double)", "10000000000"),
        ("cast(1.25e-7 AS double)", "1.25E-7"),
        ("cast('1.7976931348623157E308' AS double)", "1.7976931348623157E308"),
        ("cast('4.9E-324' AS double)", "4.9E-324"),
        ("cast('-0.0' AS double)", "0"),
        ("cast('NaN' AS double)", "NaN"),
        ("cast('-Infinity' AS double)", "-Infinity"),
        ("cast(0.1 AS float)", "0.1"),
        ("cast('3.4028235E38' AS float)", "3.4028235E38"),
        ("cast(0 AS decimal(38,18))", "0.00"),
        ("cast(0.0000001 AS decimal(38,18))", "1E-7"),
        ("cast('12345678901234567890.123456789012345600' AS decimal(38,18))", "12345678901234567890.1234567890123456"),
        ("cast(100 AS decimal(6,2))", "1E2"),
        ("100", "100.0"),
    ],
)
def test_a_number_has_one_hash_whatever_its_type_and_spelling(exact: SparkSession, value: str, written: str) -> None:
    """What ``transform`` hashes is what ``mask_before_bronze`` hashes in the record's text."""
    rows = hashing.with_hmac_pads(exact.range(1).select(F.expr(value).alias("n")), KEY)
    [row] = rows.select(hashing.hash_value(F.col("n"), dict(rows.dtypes)["n"]).alias("n")).collect()
    assert row["n"] == hashing.digest(KEY, text_to_hash(Number(written)))


def test_letters_of_every_script_are_masked(exact: SparkSession, tmp_path: Path) -> None:
    """Scripts without upper and lower case too, with the marks that are their vowels, and letters beyond 16 bits."""
    world = World(exact, tmp_path, Transform(masked=("phone",)))
    texts = {"王小明 Åsa Müller": "xxx Xxx Xxxxxx", "محمد-٣": "xxxx-n", "मुंबई 7": "xxxxx n", "ǅ𠮷ʰe\u0301": "xxxxx"}
    world.applied(*[world.change("c", at, 10 + at, phone=text) for at, text in enumerate(texts)])
    assert {row["id"]: row["phone"] for row in world.rows()} == dict(enumerate(texts.values()))


def test_rows_of_documents_whose_identity_is_hashed_before_bronze_are_found_by_their_keys(
    exact: SparkSession, tmp_path: Path
) -> None:
    """K3: a delete has nothing but its key. What ``transform`` makes of an identity is the same hash."""
    mask, told = Mask("shop.docs", ("_id",)), Transform(hashed=("_id",))
    source = {"connector": "mongodb", "name": "s", "db": "shop", "collection": "docs", "ts_ms": 1}
    identities = ['"ann@x"', '{"$oid": "a1"}', '{"$numberLong": "5"}', '"1.10"', '{"a": 1}']
    changes = [
        *[(each, json.dumps({"_id": json.loads(each), "n": 1}), "c") for each in identities],
        *[(each, json.dumps({"_id": json.loads(each), "n": 2}), "u") for each in identities[:4]],
        (identities[4], None, "d"),
    ]
    records = [
        (json.dumps({"id": key}), json.dumps({"before": None, "after": after, "source": source, "op": op}))
        for key, after, op in changes
    ]
    columns = "topic STRING, key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    raw = [("s.shop.docs", key.encode(), value.encode(), None) for key, value in records]
    spec = SourceSpec("s", ".*", masks=(mask,), hash_key=KEY)
    hidden = [(row["key"], row["value"]) for row in masking.mask_records(made(exact, raw, columns), spec).collect()]
    found = []
    for pairs, transform in ((hidden, None), (records, told)):
        declared = Declaration("shop.docs", (Column("_id", "string"), Column("n", "int")), transform=transform)
        world = World(exact, tmp_path / str(transform is None), told)
        world.at = replace(world.at, source=SourceSpec("s", ".*", tables=(declared,), hash_key=KEY))
        texts = [[each if isinstance(each, str) else bytes(each).decode() for each in pair] for pair in pairs]
        account = world.take(*[record("s.shop.docs", at, *pair) for at, pair in enumerate(texts)])
        assert (account.error, account.residue, account.dead_lettered) == (None, 0, 0)
        table = world.format.read(exact, world.at.lake.silver("s", "shop.docs")).where("NOT _deleted")
        found.append({row["_id"]: row["n"] for row in table.collect()})
    assert found == [dict.fromkeys(map(digest, ("ann@x", "a1", "5", '"1.10"')), 2)] * 2


def test_a_transformed_table_gains_columns_also_after_a_death_before_its_commit(
    exact: SparkSession, tmp_path: Path
) -> None:
    """What is known of its columns at the source is written first; who goes on finds it, and adds what is missing."""
    told = Transform(hashed=("email",), derive=(("size", "length(name)"),), except_column_list=("ssn",))
    world = World(exact, tmp_path, told)
    world.applied(world.change("c", 1, 10))
    with failpoints.watched(failpoints.parse("silver.changes_folded:raise:1")), pytest.raises(Killed):
        world.take(world.change("u", 1, 20, city="Rome"))
    world.declare(told)
    [account] = silver.refine(exact, world.at)
    assert (account.error, account.applied) == (None, 1)
    [row] = world.rows()
    assert (row["city"], row["email"], row["size"], "ssn" in row) == ("Rome", digest("ann@example.org"), 5, False)
