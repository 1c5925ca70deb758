"""What a template says of a record is what its parsers say (debezium.md sections A to D), whatever the record is."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.debezium import envelope, template_matching
from replicator.debezium.placeholder import Placeholder
from replicator.debezium.unavailable import is_unavailable
from replicator.spec import Reading
from replicator.transforms import changes
from tests.builders import Record, bronze, exact_session, said_alike
from tests.golden.cases import FOLDER, Case

pytestmark = pytest.mark.spark

VALUE = re.compile(r'(?<=":)("[^"]*"|[0-9.]+|null)')
PLACEHOLDER = Placeholder()
UNSENT = tuple(json.dumps(text) for text in PLACEHOLDER.spellings()) + PLACEHOLDER.spellings()[2:]
SEED = 20261123
MUTANTS = 6_000
PIECES = (
    *'"\\{}[],: 0-9.eE+u\n\t', "\x00", "\x1e", "\x1f", "\x02", "é", "😀", "null", "true", '\\"', "\\u00e9", "\\u12",
    "NaN", "01", "1e5", '"op":"t"', '"op":"d"', '"schema":null,', '"payload":{', '{"string":"x"}', '"a.b":1,', "__op",
)  # fmt: skip


def recorded_records(folder: Path) -> Iterator[Record]:
    """Every record that real Debezium wrote beside the project."""
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(_record, map(json.loads, lines))


def golden_records() -> list[Record]:
    """The events of the project's own cases."""
    folders = sorted(each.parent for each in FOLDER.glob("*/case.yaml"))
    return [_record(event) for folder in folders for event in Case(folder).events]


def _record(told: dict[str, Any]) -> Record:
    return Record(told["topic"], told["offset"], told["key"], told["payload"])


def apart(records: Iterable[Record]) -> list[Record]:
    """Records, each at an offset that no other has."""
    return [replace(each, offset=number) for number, each in enumerate(records)]


def templates(described: DataFrame) -> list[template_matching.KnownTemplate]:
    """What the records say of others that are written like them."""
    learned = template_matching.TemplateCache()
    groups = [group.asDict() for group in changes.survey(described).collect()]
    learned.learn(groups, PLACEHOLDER)
    return [each for topic in sorted({group["topic"] for group in groups}) for each in learned.of({topic})]


def mutated(one: Record, rng: random.Random) -> Record:
    """The record with something else in its key or its value."""
    if rng.random() < 0.25:
        return replace(one, key=_mutated(one.key or "", rng))
    return replace(one, value=_mutated(one.value or "", rng))


def _mutated(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    what = rng.random()
    if what < 0.1 and (values := list(VALUE.finditer(text))):
        left_out = rng.choice(values)
        return text[: left_out.start()] + rng.choice(UNSENT) + text[left_out.end() :]
    if what < 0.2:
        return text[:start]
    end = min(len(text), start + rng.choice((0, 0, 1, 1, 2, 5, 20)))
    if what < 0.3:
        other = rng.randrange(len(text) + 1)
        return text[:start] + text[other : other + 30] + text[end:]
    return f"{text[:start]}{rng.choice(PIECES)}{text[end:]}"


def differing(records: DataFrame, known: list[template_matching.KnownTemplate]) -> tuple[int, list[Any]]:
    """How many records match a template, and those of which it says something else than the parsers. That a value may
    be the placeholder it says of each that is, and of some that only begin like it. Of the record's ``value`` it leaves
    the image that is yet to be read as it was, and nothing else; of names nothing.
    """
    told = said_alike(records, known, Reading().binlog).where(F.col("form").isNotNull())
    parsed = envelope.describe(records, Reading())
    both = told.alias("one").join(parsed.alias("other"), ["topic", "partition", "offset"])
    same = F.lit(True)
    for name in (*envelope.DESCRIPTION_COLUMNS, "reason"):
        if name not in ("held", "told", *NAMES):
            same = same & F.col(f"one.{name}").eqNullSafe(F.col(f"other.{name}"))
    lacks = left_out(F.col("other.value"), "before") | left_out(F.col("other.value"), "after")
    same = same & (F.col("one.held") | ~lacks) & is_same_image()
    wrong = both.where(~same).select(F.struct("one.*"), F.struct("other.*")).limit(3).collect()
    return told.count(), wrong


NAMES = ("key_names", "row_names")


def is_same_image() -> Column:
    """Whether the value is the other's, cut down to the image, to the letter."""
    wrapped, other = F.col("one.wrapped"), F.col("other.value")
    body = F.when(wrapped, F.regexp_extract("one.value", r'(?s)^\{"payload":(.*)\}$', 1)).otherwise(F.col("one.value"))
    one = F.when(F.col("one.rule").isNull(), body).otherwise(F.col("one.value"))
    image = F.when(F.col("one.op") == "d", F.lit("before")).otherwise(F.lit("after"))
    cut = F.regexp_extract(one, r'(?s)^\{"(after|before)":(.*)\}$', 2)
    is_cut = one.startswith(F.concat(F.lit('{"'), image, F.lit('":'))) & F.contains(
        other, F.concat(F.lit('"'), image, F.lit('":'), cut)
    )
    whole_other = F.when(wrapped, F.get_json_object(other, "$.payload")).otherwise(other)
    before, after = (
        F.get_json_object(one, path).eqNullSafe(F.get_json_object(whole_other, path))
        for path in ("$.before", "$.after")
    )
    whole = F.when(F.col("one.op") == "d", before).otherwise(after)
    keeps = F.col("one.rule").isNotNull()  # a tombstone's value may be an empty text, too
    return F.when(keeps, one.eqNullSafe(other)).otherwise(is_cut & whole)


def left_out(value: Column, image: str) -> Column:
    """Whether some value of a row is the placeholder."""
    row = F.get_json_object(value, "$.payload").isNotNull()
    path = F.when(row, F.get_json_object(value, f"$.payload.{image}"))
    values = F.map_values(F.from_json(path.otherwise(F.get_json_object(value, f"$.{image}")), "MAP<STRING, STRING>"))
    return F.coalesce(F.exists(values, lambda text: is_unavailable(text, PLACEHOLDER)), F.lit(False))


def test_a_template_says_what_the_parsers_say_of_every_recorded_event(spark: SparkSession, recorded: Path) -> None:
    own = bronze(exact_session(spark), apart([*recorded_records(recorded), *golden_records()])).localCheckpoint()
    known = templates(envelope.describe(own, Reading()))
    matched, wrong = differing(own, known)
    assert wrong == []
    assert matched > 0.5 * own.count()


def test_records_of_one_form_have_the_same_names(spark: SparkSession, recorded: Path) -> None:
    """So that one example of each form tells them, and the schema block that they came with (A2)."""
    own = bronze(exact_session(spark), apart([*recorded_records(recorded), *golden_records()]))
    block = F.when(F.col("wrapped"), F.get_json_object("value", "$.schema"))
    shared = F.struct("flat", "wrapped", "key_wrapped", *NAMES, block.alias("block"))
    usable = F.col("rule").isNull() & F.col("reason").isNull()
    said = envelope.describe(own, Reading()).localCheckpoint()  # a filter would repeat it
    told = said.where(usable).select("topic", "form", shared.alias("shared")).distinct()
    several = told.groupBy("topic", "form").agg(F.collect_list("shared").alias("shared")).where(F.size("shared") > 1)
    assert several.limit(3).collect() == []
    assert told.count() > 100


def test_a_template_says_what_the_parsers_say_of_damaged_events_or_nothing(spark: SparkSession) -> None:
    """Of what is no JSON, or no plain envelope any more, it says nothing."""
    rng = random.Random(SEED)
    originals = golden_records()
    session = exact_session(spark)
    known = templates(envelope.describe(bronze(session, apart(originals)), Reading()))
    mutants = apart(mutated(rng.choice(originals), rng) for _ in range(MUTANTS))
    matched, wrong = differing(bronze(session, mutants).localCheckpoint(), known)
    assert wrong == []
    assert 0.05 * MUTANTS < matched < 0.95 * MUTANTS
