"""Names of any legal spelling reach a real server as they are: schemas, models, tables, columns, keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle

import pytest
from psycopg2 import sql
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from replicator.errors import TargetRefused
from replicator.protocols import Difference, Unfenced
from replicator.spec import Applied, Model, ModelColumn, Progress, Token
from tests.builders import made
from tests.contract.serving import Served, difference, model

pytestmark = [pytest.mark.spark, pytest.mark.stack]

HOSTILE = [
    '"', '""', 'a"b', '"quoted"', "'", "it's", "''", "\\", "\\\\", 'C:\\"x', "`", "``", "a`b", "%", "%%", "%s",
    "%(x)s", "%1$s", "{}", "{0}", "{name}", "{{", "}", "$", "$$", "$1", "$body$", ":", ":name", "::text", "?", "??",
    "?|", ";", "; DROP TABLE x --", "--", "/*", "*/", "/* x */", "#", ".", "..", "a.b.c", '"."', ",", "(", ")", "()",
    "[0]", "*", "@", "&", "|", "=", "<>", "!", "~", "^", "+", "-", " ", "  two  ", "\t", "\n", "\r\n", "a\nb",
    "\x01", "\x7f", "\u00a0", "\u200b", "\u202eabc", "\ufeff", "é", "e\u0301", "Straße", "名前", "😀", "👩\u200d👧",
    "İ", "UPPER", "CamelCase", "1st", "1", "-1", "NaN", "null", "true", "select", "user", "table", "order", "default",
    "all", "end", "row", "excluded", "inserted", "written", "t", "s", "c0", "_op_", "_operation", "_batch", "__", "_",
    "pg_x", "public", "information_schema", 'U&"\\0061"', "E'x'", "x" * 63, "ü" * 31, "名" * 21,
]  # fmt: skip
POOL = "abcXYZ019_ \"'`\\%$:?;.,(){}[]*@&|=<>!~^+-#/\t\n\r\x01\x1f\x7fäßİé\u0301\u200b\u202e\u00a0名前םش😀"
FUZZED = 400


def fuzzed(seed: int) -> Iterator[str]:
    """Names of 1 to 63 bytes out of what hurts, without end."""
    dice = random.Random(seed)
    while True:
        name = "".join(dice.choices(POOL, k=dice.randint(1, 40)))
        yield name.encode()[: dice.randint(1, 63)].decode(errors="ignore")


def several(number: int, seed: int) -> list[str]:
    """The hostile names and fuzzed ones, *number* in all, none the other's twin in another case."""
    found = {name.casefold(): name for name in HOSTILE}
    for name in fuzzed(seed):
        if len(found) == number:
            return list(found.values())
        if name and name.casefold() != "_op":
            found.setdefault(name.casefold(), name)
    raise AssertionError


def whole(spark: SparkSession, of: Model, rows: list[tuple[str, ...]], version: int = 1) -> Difference:
    fields = [T.StructField(column.name, T.StringType()) for column in of.columns]
    frame = made(spark, rows, T.StructType([*fields, T.StructField("_op", T.StringType())]))
    return Difference(of, frame, Progress("g", version), complete=version == 1)


def test_columns_of_any_name_are_served(spark: SparkSession, postgres: Served) -> None:
    """Each column holds its own name; keys of three odd columns; inserted, updated, deleted, and made wider."""
    names = several(len(HOSTILE) + FUZZED, 20261122)
    assert len(names) >= FUZZED + 60
    key = (names[0], names[17], names[-1])
    of = model(postgres.schema, "wide", dict.fromkeys(names, "varchar(90)"), key=key)
    first, second = tuple(names), tuple(f"{name} 2" for name in names)
    batch = whole(spark, of, [(*first, "upsert"), (*second, "upsert")])
    assert postgres.sink.publish([batch]) == {of.name: Applied(2, 0, 0, 1)}
    assert postgres.rows(of) == sorted([first, second])
    changed = tuple(name if name in key else f"{name}!" for name in names)
    assert postgres.sink.publish([whole(spark, of, [(*changed, "upsert"), (*second, "delete")], 2)]) == {
        of.name: Applied(0, 1, 1, 2)
    }
    assert postgres.rows(of) == [changed]
    described = tuple(ModelColumn(name, "text", name not in key, f"This is {name}") for name in names)
    wider = Model("wide", "", {}, key, described, f"Of {names[5]}", target=of.target)
    assert postgres.sink.publish([whole(spark, wider, [(*first, "upsert")], 3)]) == {of.name: Applied(0, 1, 0, 3)}
    assert postgres.rows(wider) == [first]
    comments = (
        "SELECT col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = {}::regclass AND attnum > 0 "
        "ORDER BY attnum"
    )
    found = postgres.run(sql.SQL(comments).format(sql.Literal(f"{postgres.schema}.wide")))
    assert found == [(f"This is {name}",) for name in names]


def test_schemas_tables_and_models_of_any_name_are_served(spark: SparkSession, postgres: Served) -> None:
    """Two hostile schemas, tables in both, models of those names, all in one batch, and their ledger rows; the writer
    is one with a token.
    """
    sink = postgres.fenced(Unfenced(Token("lake", 1)))
    odd = ['%s "ü" $1; --', "a.b\\", "😀'", "%(x)s {0} ?", "select", "x" * 63, "\n\t", "/* _replicator_ledger */"]
    schemas = [f"{postgres.schema} {name}"[:63] for name in ("%s; \"DROP\" 'it'", "{x}.?$1\\ ü")]
    models = [
        model(schema, f"{name} of {schema}" * 3, {name: "integer"}, key=(name,), table=name)
        for name, schema in zip(odd, cycle(schemas), strict=False)
    ]
    fields = [
        T.StructType([T.StructField(name, T.IntegerType()), T.StructField("_op", T.StringType())]) for name in odd
    ]
    try:
        batch = [
            difference(spark, of, [(7, "upsert")], row, 3, complete=True)
            for of, row in zip(models, fields, strict=True)
        ]
        assert sink.publish(batch) == {of.name: Applied(1, 0, 0, 3) for of in models}
        assert sink.publish(batch) == {of.name: Applied(0, 0, 0, 3) for of in models}
        assert {sink.progress(of) for of in models} == {Progress("gold-1", 3)}
        for of in models:
            table = sql.Identifier(of.target.schema, of.target.table)
            assert postgres.run(sql.SQL("SELECT * FROM {}").format(table)) == [(7,)]
    finally:
        for schema in schemas:
            postgres.run(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def test_a_name_that_postgres_keeps_for_itself_is_told(spark: SparkSession, postgres: Served) -> None:
    """A system column's name cannot be had: the model is refused in Postgres' own words."""
    of = model(postgres.schema, "system", {"id": "integer", "xmin": "integer"})
    with pytest.raises(TargetRefused, match=r"xmin.*conflicts with a system column"):
        postgres.sink.publish(
            [difference(spark, of, [(1, 1, "upsert")], "id INT, xmin INT, _op STRING", 1, complete=True)]
        )
