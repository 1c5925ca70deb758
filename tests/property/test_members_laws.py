"""What is told of the members of an object is what Spark's parser reads, or nothing (types.md Y1, Y2)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from replicator.debezium.logical_types import Field, LogicalType
from replicator.transforms.structs import MemberStruct, Struct
from tests.builders import exact_session

pytestmark = pytest.mark.spark

SEED = 20261129
TEXTS = 6_000
FIELDS = tuple(
    Field(f"{kind} é", LogicalType(kind))
    for kind in ("string", "boolean", "smallint", "int", "bigint", "float", "double")
)
VALUES = (
    *("null", "true", "false", "0", "-0", "1", "-1", "9999", "32768", "999999999", "2147483648", "01", "+1", "--1"),
    *("123456789012345678", "9223372036854775807", "9223372036854775808", "1234567890123456789012345", "1.", ".5", "-"),
    *("0.0", "-0.0", "1.5", "-0.5", "0.1", "16777217", "16777217.0", "3.4028236", "1234567.8", "0.30000000000000004"),
    *("1e5", "1E400", "1e-400", "2.5e0", "NaN", "Infinity", "tru", "nul", "TRUE", "{}", "[]", '{"a":[1,{}]}', "[1,]"),
    *('""', '"text"', '" "', '"é😀"', '"\\""', '"\\\\"', '"\\/\\b\\f\\n\\r\\t"', '"\\u00e9\\u0000\\u20AC"', '"\\x"'),
    *('"\\ud83d\\ude00"', '"\\ud83d"', '"\t"', '"1"', '"true"', '"NaN"', '"Infinity"', "'a'", '"open', '"a"b', "1 "),
)
OTHERS = ("other", "", "string", "STRING é", 'quo\\"ted', "\\u0073tring é")


def object_of(rng: random.Random) -> str:
    """The JSON of an object that has the fields, mostly, in their order, mostly, and of their kinds, mostly."""
    names = [field.name for field in FIELDS if rng.random() < 0.95]
    if rng.random() < 0.2:
        rng.shuffle(names)
    if rng.random() < 0.2:
        names.insert(rng.randrange(len(names) + 1), rng.choice(OTHERS + tuple(names)))
    members = ",".join(f'"{name}":{value_of(name, rng)}' for name in names)
    return f"{{{members}}}"


def value_of(name: str, rng: random.Random) -> str:
    """A value of the field's kind; one time in ten any of all."""
    usual: dict[str, Callable[[], str]] = {
        "string é": lambda: json.dumps(rng.choice(("", "a", "Łódź", 'quo"ted', "a\\b\n", "1", "\x7f"))),
        "boolean é": lambda: rng.choice(("true", "false")),
        "smallint é": lambda: str(rng.randint(-9999, 9999)),
        "int é": lambda: str(rng.randint(-(10**9) + 1, 10**9 - 1)),
        "bigint é": lambda: str(rng.randint(-(10**18) + 1, 10**18 - 1)),
        "float é": lambda: str(round(rng.uniform(-1000, 1000), rng.randint(0, 9))),
        "double é": lambda: repr(rng.uniform(-1000, 1000))[:17],
    }
    plain = usual.get(name)
    return rng.choice(VALUES) if plain is None or rng.random() < 0.1 else plain()


def text_of(rng: random.Random) -> str:
    """What has such an object at its path, with more or less around it, and sometimes damage."""
    own = object_of(rng)
    around = ('{"after":%s}', '{"before":null,"after":%s,"op":"c"}', '{"after":%s}', '{"before":{"a":[{}]},"after":%s}')
    odd = ("%s", '{"after":null,"x":%s}', '{"after":%s,"after":{}}', '{"after":%s}}', '{"after": %s}', '{"After":%s}')
    text = (rng.choice(around) if rng.random() < 0.95 else rng.choice(odd)) % own
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        return text[:at] + rng.choice(("", '"', "\\", ",", "{", "}", "]", " ", "\x01", "0")) + text[at + 1 :]
    return text


def differing(texts: Sequence[str], told: MemberStruct, spark: SparkSession) -> tuple[int, list[str]]:
    """How many were told, and those of which the parser reads something else."""
    parser = Struct(told.name, told.json, told.path, told.fields)
    rows = spark.createDataFrame([(text,) for text in texts], "value STRING").repartition(2)
    read = rows.select("value", told.extract(rows), parser.parsed().alias("read")).where(
        F.col(told.members).isNotNull()
    )
    both = read.select("value", "read", told.parsed().alias("told"), F.lit(True).alias(told.is_extracted))
    other = ~both["told"].eqNullSafe(both["read"]) | ~shown("told").eqNullSafe(shown("read"))
    return both.count(), [row["value"] for row in both.where(other).limit(5).collect()]


def shown(name: str) -> Column:
    """A struct as text, in which zeros have their sign."""
    return F.col(name).cast("string")


def test_what_is_told_is_what_the_parser_reads(spark: SparkSession) -> None:
    """Whatever the text: a wide choice of values, names, orders, surroundings and damage; most usual ones are told."""
    rng = random.Random(SEED)
    texts = [text_of(rng) for _ in range(TEXTS)]

    told, wrong = differing(texts, told_of(("after",), FIELDS), exact_session(spark))

    assert wrong == []
    assert told > TEXTS // 4


def test_each_value_of_each_kind_is_told_as_it_is_read_or_not_at_all(spark: SparkSession) -> None:
    """Each value under each kind, and twice under one name."""
    values = [*VALUES, '"' + "a" * 70_000 + '"']
    alone = [f'{{"{field.name}":{value}}}' for field in FIELDS for value in values]
    twice = [f'{{"{FIELDS[0].name}":"once","{FIELDS[0].name}":{value}}}' for value in values]

    told, wrong = differing([*alone, *twice], told_of((), FIELDS), exact_session(spark))

    assert wrong == []
    assert told > len(FIELDS)  # null is told of each


def told_of(path: tuple[str, ...], fields: Sequence[Field]) -> MemberStruct:
    """What tells them, which these can be."""
    found = MemberStruct.if_supported(Struct("_row", "value", path, fields))
    assert isinstance(found, MemberStruct)
    return found
