"""Values that need a form of their own in Postgres: lists, documents, times of day (types.md section 2)."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
from psycopg2 import sql
from pyspark.sql import SparkSession

from replicator.errors import TargetRefused
from replicator.protocols import Difference
from replicator.spec import Applied, Progress
from tests.builders import made
from tests.contract.serving import Served, difference, execute, model

pytestmark = [pytest.mark.spark, pytest.mark.stack]

LISTS = {
    "texts": ("text[]", "array('a,b', '{\"x\"}', NULL, '', 'NULL', ' é')", r'{"a,b","{\"x\"}",NULL,"","NULL"," é"}'),
    "slash": ("text[]", r"array('\\')", r'{"\\"}'),
    "short": ("varchar(3)[]", "array('abc')", "{abc}"),
    "whole": ("bigint[]", "array(9223372036854775807, NULL, -1)", "{9223372036854775807,NULL,-1}"),
    "vector": ("real[]", "array(float('1.5'), float('NaN'), float('-Infinity'))", "{1.5,NaN,-Infinity}"),
    "doubles": ("double precision[]", "array(0.1D, 1e300D)", "{0.1,1e+300}"),
    "exact": ("numeric(10,2)[]", "array(1.50BD, CAST(NULL AS DECIMAL(3,2)))", "{1.50,NULL}"),
    "days": ("date[]", "array(DATE'0001-01-01', DATE'9999-12-31')", "{0001-01-01,9999-12-31}"),
    "moments": ("timestamp[]", "array(TIMESTAMP_NTZ'2024-03-31 02:30:00.000001')", '{"2024-03-31 02:30:00.000001"}'),
    "instants": ("timestamptz[]", "array(timestamp_micros(1))", '{"1970-01-01 00:00:00.000001+00"}'),
    "times": ("time[]", "array(86400000000L)", "{24:00:00}"),
    "bytes": ("bytea[]", "array(X'00ff', X'')", r'{"\\x00ff","\\x"}'),
    "flags": ("boolean[]", "array(true, false)", "{t,f}"),
    "empty": ("text[]", "CAST(array() AS ARRAY<STRING>)", "{}"),
    "nothing": ("text[]", "CAST(NULL AS ARRAY<STRING>)", None),
    "listed": ("jsonb", "array(1, NULL)", "[1, null]"),
    "nested": ("jsonb", "array(named_struct('at', TIMESTAMP_NTZ'2024-03-31 02:30:00.000001'))",
               '[{"at": "2024-03-31T02:30:00.000001"}]'),
    "nested_instant": ("json", "named_struct('at', timestamp_micros(1))", '{"at":"1970-01-01T00:00:00.000001Z"}'),
    "of_days": ("jsonb", "map(DATE'2024-03-31', map(X'00ff', 1))", '{"2024-03-31": {"AP8=": 1}}'),
    "document": ("json", "named_struct('b', 1, 'a', CAST(NULL AS INT))", '{"b":1,"a":null}'),
}  # fmt: skip


def test_lists_and_documents_arrive_as_they_are(spark: SparkSession, postgres: Served) -> None:
    """Each element as its type's text, NULLs and the order kept; published again nothing differs."""
    of = model(postgres.schema, "lists", {"id": "integer"} | {name: kind for name, (kind, _, _) in LISTS.items()})
    values = [f"{value} AS {name}" for name, (_, value, _) in LISTS.items()]
    rows = spark.range(1).selectExpr("1 AS id", *values, "'upsert' AS _op")  # Hudi's SQL has no TIMESTAMP_NTZ
    assert postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)]) == {
        of.name: Applied(1, 0, 0, 1)
    }
    texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in LISTS)
    found = postgres.run(sql.SQL("SELECT {} FROM {}").format(texts, sql.Identifier(postgres.schema, "lists")))
    assert dict(zip(LISTS, found[0], strict=True)) == {name: text for name, (_, _, text) in LISTS.items()}
    again = Difference(of, rows, Progress("g", 2))
    assert postgres.sink.publish([again]) == {of.name: Applied(0, 0, 0, 2)}


ADDRESSES = {
    "host": ("inet", "192.168.0.1/24"),
    "net": ("cidr", "10.0.0.0/8"),
    "card": ("macaddr", "08:00:2b:01:02:03"),
    "long card": ("macaddr8", "08:00:2b:01:02:03:04:05"),
    "at": ("timetz", "24:00:00+05:45"),
    "at least": ("time(0) with time zone", "12:00:01-03"),
    "moment": ("timestamp(3) with time zone", "2024-03-31 02:30:00.123+00"),
}


def test_what_silver_has_as_text_arrives_as_the_declared_type(spark: SparkSession, postgres: Served) -> None:
    """Addresses, and times with a zone (types.md section 2: timetz as is); published again nothing differs."""
    of = model(postgres.schema, "addresses", {"id": "integer"} | {name: kind for name, (kind, _) in ADDRESSES.items()})
    rows = made(spark, [(1, *[text for _, text in ADDRESSES.values()], "upsert")],
                f"id INT, {', '.join(f'`{name}` STRING' for name in ADDRESSES)}, _op STRING")  # fmt: skip
    assert postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)]) == {
        of.name: Applied(1, 0, 0, 1)
    }
    texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in ADDRESSES)
    [found] = postgres.run(sql.SQL("SELECT {} FROM {}").format(texts, sql.Identifier(postgres.schema, "addresses")))
    assert list(found) == [text for _, text in ADDRESSES.values()]
    assert postgres.sink.publish([Difference(of, rows, Progress("g", 2))]) == {of.name: Applied(0, 0, 0, 2)}


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("text", "array('a')", "cannot be stored"),
        ("text[]", "'a'", "cannot be stored"),
        ("text[]", "array(array('a'))", "cannot be stored"),
        ("integer[]", "array(1.5D)", "would be rounded"),
        ("numeric(3,1)[]", "array(1.55BD)", "would be rounded"),
        ("varchar(2)[]", "array('abc')", "SQLSTATE 22001"),
        ("smallint[]", "array(40000)", "SQLSTATE 22003. The column is list"),
        ("integer", "'NaN'", "SQLSTATE 22P02. The column is list"),
        ("timestamp", "TIMESTAMP_NTZ'9999-12-31 00:00:00' + INTERVAL '1' DAY", "SQLSTATE 22009. The column is list"),
        ("date", "DATE'0001-01-01' - INTERVAL '1' DAY", "SQLSTATE 22008. The column is list"),
        ("time", "86400000001L", "SQLSTATE 22008. The column is list"),
        ("boolean", "2S", "SQLSTATE 22P02. The column is list"),
        ("boolean[]", "array(1, 2)", "SQLSTATE 22P02. The column is list"),
        ("jsonb", "concat('\"', char(92), 'u0000\"')", "SQLSTATE 22P05. The column is list"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_column(
    spark: SparkSession, postgres: Served, kind: str, value: str, told: str
) -> None:
    """No value, and no element of a list, is cut, rounded or turned into another kind of thing; a type that the server
    cannot make of a value is told with its column.
    """
    of = model(postgres.schema, "lists", {"id": "integer", "list": kind})
    rows = spark.sql(f"SELECT 1 AS id, {value} AS list, 'upsert' AS _op")
    with pytest.raises(TargetRefused, match=told):
        postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])


def test_a_declaration_that_is_refused_leaves_no_table_of_its_types(spark: SparkSession, postgres: Served) -> None:
    """Nothing was published: fixed, the model is published at once, and nobody has to alter an empty table."""
    rows = spark.sql("SELECT 1 AS id, array('a') AS list, 'upsert' AS _op")
    for kind, told in (("text", "cannot be stored"), ("jsonb", "")):
        of = model(postgres.schema, "lists", {"id": "integer", "list": kind})
        with pytest.raises(TargetRefused, match=told) if told else nullcontext():
            done = postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])
    assert done == {"lists": Applied(1, 0, 0, 1)}


def test_a_value_that_does_not_fit_leaves_no_table_of_its_types(spark: SparkSession, postgres: Served) -> None:
    """As a declaration that is refused: whatever the server reads no value of may be declared as anything else, then.
    What refers to the model, and what does not, comes when it would.
    """
    rows = spark.sql("SELECT 1 AS id, 'n/a' AS code, 'upsert' AS _op")
    referring = model(postgres.schema, "facts", {"id": "integer", "code": "text"}, references=("codes",))
    other = model(postgres.schema, "others", {"id": "integer", "code": "text"})
    for kind, published in (("integer", {"others"}), ("date", {"others"}), ("text", {"codes", "facts", "others"})):
        of = model(postgres.schema, "codes", {"id": "integer", "code": kind})
        with nullcontext() if kind == "text" else pytest.raises(TargetRefused, match="The column is code"):
            each = (Difference(one, rows, Progress("g", 1), complete=True) for one in (of, referring, other))
            assert postgres.sink.publish(list(each))["codes"] == Applied(1, 0, 0, 1)
        found = execute(
            postgres, "SELECT relname FROM pg_class WHERE relnamespace = '$'::regnamespace AND relkind = 'r'"
        )
        assert {name for (name,) in found if not name.startswith("_replicator")} == published


def test_a_table_that_the_server_would_not_make_is_told_before_rows_are_staged(
    spark: SparkSession, postgres: Served
) -> None:
    """A key of JSON, say, has no order. They would be staged with each try; and nothing is left of the question."""
    of = model(postgres.schema, "keyed", {"id": "json"})
    rows = spark.sql("SELECT CAST(raise_error('never computed') AS STRING) AS id, 'upsert' AS _op")
    with pytest.raises(TargetRefused, match="SQLSTATE 42704"):
        postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])


KEYS = "id STRING, n INT, _op STRING"


@pytest.mark.parametrize("kind", ["char(5)", "varchar(5)", "text"])
@pytest.mark.parametrize("key", ["ab   ", "ab", "ab      ", "", "    "])
def test_a_text_that_is_a_key_is_found_again_with_its_blanks(
    spark: SparkSession, postgres: Served, kind: str, key: str
) -> None:
    """A CHAR is filled up with blanks that do not count, and a VARCHAR loses those for which it has no room."""
    of = model(postgres.schema, "keyed", {"id": kind, "n": "integer"})
    both = [(key, 1, "upsert"), ("abcde", 1, "upsert")]
    postgres.sink.publish([difference(spark, of, both, KEYS, 1, complete=True)])
    again = difference(spark, of, both, KEYS, 2, complete=True)
    assert postgres.sink.publish([again]) == {of.name: Applied(0, 0, 0, 2)}
    gone = difference(spark, of, [(key, None, "delete")], KEYS, 3)
    assert postgres.sink.publish([gone]) == {of.name: Applied(0, 0, 1, 3)}
    assert postgres.rows(of) == [("abcde", 1)]


def test_two_keys_that_are_one_in_postgres_are_said(spark: SparkSession, postgres: Served) -> None:
    """Its own words for that speak of a statement that nobody here has written."""
    of = model(postgres.schema, "keyed", {"id": "char(5)", "n": "integer"})
    both = [("ab", 1, "upsert"), ("ab ", 2, "upsert")]
    with pytest.raises(TargetRefused, match="21000 - two keys of the model are equal in the table"):
        postgres.sink.publish([difference(spark, of, both, KEYS, 1, complete=True)])


@pytest.mark.parametrize("kind", ["char(2)", "varchar(2)"])
def test_a_key_that_is_too_long_is_nobody_elses(spark: SparkSession, postgres: Served, kind: str) -> None:
    """It was never in the target, so its delete finds nothing; cut, it would be another row's."""
    of = model(postgres.schema, "keyed", {"id": kind, "n": "integer"})
    postgres.sink.publish([difference(spark, of, [("ab", 1, "upsert")], KEYS, 1, complete=True)])
    gone = difference(spark, of, [("abc", None, "delete")], KEYS, 2)
    assert postgres.sink.publish([gone]) == {of.name: Applied(0, 0, 0, 2)}


@pytest.mark.parametrize(
    ("kind", "there", "taken_back"),
    [
        ("smallint", "7", "70000"),
        ("integer", "7L", "3000000000L"),
        ("numeric(5,0)", "CAST(7 AS DECIMAL(20,0))", "CAST(123456 AS DECIMAL(20,0))"),
        ("date", "'2024-02-29'", "'2023-02-29'"),
        ("uuid", "'00000000-0000-0000-0000-000000000007'", "'none'"),
        ("text", "'a'", "concat('a', char(0))"),
        ("timestamp(3)", "TIMESTAMP_NTZ'2026-01-01 00:00:00.001'", "TIMESTAMP_NTZ'2026-01-01 00:00:00.001001'"),
        ("time(0)", "1000000L", "1000001L"),
    ],
)
def test_a_key_that_postgres_cannot_hold_is_nobodys_once_it_is_gone(
    spark: SparkSession, postgres: Served, kind: str, there: str, taken_back: str
) -> None:
    """Its row was refused, so its delete finds nothing: neither does it stop the model for good, nor does it take the
    row of another key along that is as good as it, rounded.
    """
    of = model(postgres.schema, "keyed", {"id": kind, "n": "integer"})

    def sent(version: int, *rows: tuple[str, str, str], complete: bool = False) -> Difference:
        values = ", ".join(f"({key}, {n}, '{op}')" for key, n, op in rows)
        return Difference(of, spark.sql(f"SELECT * FROM VALUES {values} AS t (id, n, _op)"), Progress("g", version),
                          complete=complete)  # fmt: skip

    postgres.sink.publish([sent(1, (there, "1", "upsert"), complete=True)])
    with pytest.raises(TargetRefused, match=r"column (is )?id"):
        postgres.sink.publish([sent(2, (taken_back, "2", "upsert"))])
    fixed = sent(3, (taken_back, "NULL", "delete"), (there, "3", "upsert"))
    assert postgres.sink.publish([fixed]) == {of.name: Applied(0, 1, 0, 3)}
    assert [row[1] for row in postgres.rows(of)] == [3]


def test_what_is_refused_beside_a_key_that_is_nobodys_is_said(spark: SparkSession, postgres: Served) -> None:
    """The delete of such a key is no reason to name its column: another one has the value that does not fit."""
    of = model(postgres.schema, "keyed", {"id": "integer", "n": "smallint"})
    schema = "id BIGINT, n INT, _op STRING"
    postgres.sink.publish([difference(spark, of, [(1, 1, "upsert")], schema, 1, complete=True)])
    rows = [(3_000_000_000, None, "delete"), (1, 70_000, "upsert")]
    with pytest.raises(TargetRefused, match="The column is n"):
        postgres.sink.publish([difference(spark, of, rows, schema, 2)])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamp", "TIMESTAMP_NTZ'2026-01-01 00:00:00.00{}'"),
        ("timestamptz", "timestamp_micros({})"),
        ("time", "{}L"),
    ],
)
def test_a_moment_that_is_a_key_is_not_rounded(spark: SparkSession, postgres: Served, kind: str, value: str) -> None:
    """Two rows of gold would be one, whose delete would take the other along; with more digits both are published."""
    of, fine = (model(postgres.schema, "k", {"v": "text", "at": each}, key=("at",)) for each in (f"{kind}(3)", kind))
    one, other = (spark.sql(f"SELECT '{n}' AS v, {value.format(n)} AS at, 'upsert' AS _op") for n in (1000, 1001))
    postgres.sink.publish([Difference(of, one, Progress("g", 1), complete=True)])
    with pytest.raises(TargetRefused, match=r"column at of model k is part of its key, which time.* would round"):
        postgres.sink.publish([Difference(of, other, Progress("g", 2))])
    postgres.sink.publish([Difference(fine, one.union(other), Progress("g", 2), complete=True)])
    assert [row[0] for row in postgres.rows(fine)] == ["1000", "1001"]


def test_the_last_moment_of_all_stays_in_its_year(spark: SparkSession, postgres: Served) -> None:
    """It stands for `infinity`: rounded it would be in the year 10000, which many clients cannot read."""
    of = model(
        postgres.schema,
        "last",
        {"id": "integer", "wall": "timestamp(3)", "at": "timestamptz(0)", "of": "timestamp(0)[]"},
    )
    rows = spark.sql(
        "SELECT id, wall, at, IF(id = 1, array(wall), NULL) AS of, 'upsert' AS _op FROM VALUES "
        "(1, TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', TIMESTAMP'9999-12-31 23:59:59.999999Z'), "
        "(2, TIMESTAMP_NTZ'2026-12-31 23:59:59.999999', TIMESTAMP'2026-12-31 23:59:59.999999Z'), "
        "(3, NULL, NULL) AS t (id, wall, at)"
    )
    postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])
    table = sql.Identifier(postgres.schema, "last")
    held = postgres.run(sql.SQL("SELECT wall::text, at::text, of::text FROM {} ORDER BY id").format(table))
    assert held == [
        ("9999-12-31 23:59:59.999", "9999-12-31 23:59:59+00", '{"9999-12-31 23:59:59"}'),
        ("2027-01-01 00:00:00", "2027-01-01 00:00:00+00", None),
        (None, None, None),
    ]
    with postgres.sink.read_back(of) as looked:
        wall, at = (each.value.cast("string") for each in looked.as_served(rows) if each.name in ("wall", "at"))
    shown = [tuple(row) for row in rows.orderBy("id").select(wall, at).collect()]
    assert shown == [(each[0], each[1] and each[1].removesuffix("+00")) for each in held]


@pytest.mark.parametrize("target", ["text", "varchar(10)", "char(10)"])
@pytest.mark.parametrize(("kind", "keys"), [("INT", (1, -2)), ("BOOLEAN", (True, False)), ("DECIMAL(5,2)", ("1.50",))])
def test_a_key_that_is_no_text_in_gold_may_be_one_in_postgres(
    spark: SparkSession, postgres: Served, kind: str, keys: tuple[Any, ...], target: str
) -> None:
    """As a column that is no key may be."""
    of = model(postgres.schema, "keyed", {"id": target, "n": "integer"})
    keys = tuple(Decimal(key) if isinstance(key, str) else key for key in keys)
    schema = f"id {kind}, n INT, _op STRING"
    postgres.sink.publish([difference(spark, of, [(key, 1, "upsert") for key in keys], schema, 1, complete=True)])
    gone = difference(spark, of, [(keys[0], None, "delete")], schema, 2)
    assert postgres.sink.publish([gone]) == {of.name: Applied(0, 0, 1, 2)}
    assert len(postgres.rows(of)) == len(keys) - 1


def test_wall_time_is_no_instant_where_it_is_a_text(spark: SparkSession, postgres: Served) -> None:
    """It has no zone in gold (types.md Y5); an instant has, and says so."""
    of = model(postgres.schema, "times", {"id": "integer", "wall": "text", "instant": "varchar(40)"})
    values = "TIMESTAMP_NTZ'2024-03-31 02:30:00.5' AS wall", "timestamp_micros(1) AS instant"
    rows = spark.range(1).selectExpr("1 AS id", *values, "'upsert' AS _op")
    postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])
    assert postgres.rows(of) == [(1, "2024-03-31 02:30:00.5", "1970-01-01 00:00:00.000001+00")]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("numeric(10,2)", "'1.505'"),
        ("numeric(3,1)[]", "array('1.55')"),
        ("real", "16777217"),
        ("real[]", "array('16777217')"),
        ("double precision", "'0.12345678901234567890'"),
        ("double precision", "9007199254740993L"),
        ("double precision[]", "array(9007199254740993L)"),
    ],
)
def test_no_number_is_rounded_whatever_brings_it(spark: SparkSession, postgres: Served, kind: str, value: str) -> None:
    """As a decimal is not: a text with a number of any digits, a whole number in a type with fewer of them."""
    of = model(postgres.schema, "rounded", {"id": "integer", "v": kind})
    rows = spark.range(1).selectExpr("1 AS id", f"{value} AS v", "'upsert' AS _op")
    with pytest.raises(TargetRefused, match="values would be rounded"):
        postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])


@pytest.mark.parametrize(
    ("kind", "value"), [("numeric", "'1.505'"), ("double precision", "2147483647"), ("real", "7S")]
)
def test_a_number_of_another_type_that_is_the_same_there_arrives(
    spark: SparkSession, postgres: Served, kind: str, value: str
) -> None:
    """Types.md section 2: a number of any digits is a text in silver."""
    of = model(postgres.schema, "same", {"id": "integer", "v": kind})
    rows = spark.range(1).selectExpr("1 AS id", f"{value} AS v", "'upsert' AS _op")
    postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])
    assert str(
        postgres.run(sql.SQL("SELECT v::text FROM {}").format(sql.Identifier(postgres.schema, "same")))[0][0]
    ) == (value.strip("'S"))


@pytest.mark.parametrize("value", ["1e10D", "1e-5D", "-0.0D", "float(0.1)", "double('NaN')", "1.50BD", "-1L", "true"])
def test_what_is_no_text_in_gold_is_one_as_gold_writes_it(spark: SparkSession, postgres: Served, value: str) -> None:
    """The texts that `verify` expects."""
    of = model(postgres.schema, "texts", {"id": "integer", "v": "text"})
    rows = spark.sql(f"SELECT 1 AS id, {value} AS v")
    postgres.sink.publish([Difference(of, rows.selectExpr("*", "'upsert' AS _op"), Progress("g", 1), complete=True)])
    with postgres.sink.read_back(of) as view:
        [_, expected] = view.as_served(rows)
    assert postgres.rows(of) == [(1, rows.select(expected.value).collect()[0][0])]


def test_zero_and_one_are_false_and_true(spark: SparkSession, postgres: Served) -> None:
    """MySQL's booleans are whole numbers; any other number is no boolean (see what does not fit)."""
    of = model(postgres.schema, "flags", {"id": "integer", "off": "boolean", "on": "boolean", "none": "boolean"})
    rows = spark.sql("SELECT 1 AS id, 0S AS off, 1 AS on, CAST(NULL AS INT) AS none, 'upsert' AS _op")
    postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])
    assert postgres.rows(of) == [(1, False, True, None)]


@pytest.mark.parametrize("kind", ["date", "time", "time with time zone"])
@pytest.mark.parametrize("value", ["TIMESTAMP_NTZ'2024-03-31 02:30:00'", "timestamp_micros(1)"])
def test_a_moment_is_not_cut_to_a_day_or_a_time_without_a_word(
    spark: SparkSession, postgres: Served, kind: str, value: str
) -> None:
    """As a decimal is not rounded: the model's SQL says so, or the column is declared as what it is."""
    of = model(postgres.schema, "cut", {"id": "integer", "v": kind})
    rows = spark.range(1).selectExpr("1 AS id", f"{value} AS v", "'upsert' AS _op")
    with pytest.raises(TargetRefused, match=r"column v of model cut is timestamp.*: values would be rounded"):
        postgres.sink.publish([Difference(of, rows, Progress("g", 1), complete=True)])


ALIKE = (
    ("interval", "30 days", "1 mon"),
    ("interval[]", '["30 days"]', '["1 mon"]'),
    ("text", "Ann", "ANN"),
    ("varchar(9)[]", '["Ann"]', '["ANN"]'),
    ("jsonb", "[1]", "[1, 1]"),
    ("jsonb", '{"price": 1.0}', '{"price": 1.00}'),
    ("numeric", "1.0", "1.00"),
)
"""By type two values that Postgres may take for equal: a month has 30 days to it, a text has the case that its column's
collation gives it, and a number is what it is worth."""

_ANY_CASE = sql.SQL(
    "CREATE COLLATION {any_case} (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "
    "ALTER TABLE {table} ALTER COLUMN value TYPE {kind} COLLATE {any_case}"
)


@pytest.mark.parametrize(("kind", "old", "new"), ALIKE)
def test_a_value_that_postgres_finds_equal_to_the_old_one_is_written(
    spark: SparkSession, postgres: Served, kind: str, old: str, new: str
) -> None:
    """What a reader sees is what gold has, also under a collation of somebody's own."""
    of = model(postgres.schema, "alike", {"id": "integer", "value": kind})
    table = sql.Identifier(postgres.schema, "alike")
    shown = []
    for version, value in enumerate((old, new), start=1):
        listed = f"from_json('{value}', 'ARRAY<STRING>')" if kind.endswith("[]") else f"'{value}'"
        rows = spark.sql(f"SELECT 1 AS id, {listed} AS value, 'upsert' AS _op")
        postgres.sink.publish([Difference(of, rows, Progress("g", version), complete=True)])
        shown += postgres.run(sql.SQL("SELECT to_jsonb(value) #>> '{{}}' FROM {}").format(table))
        if version == 1 and kind.startswith(("text", "varchar")):
            any_case = sql.Identifier(postgres.schema, "any_case")
            postgres.run(_ANY_CASE.format(any_case=any_case, table=table, kind=sql.SQL(kind)))
    assert shown == [(old,), (new,)]
