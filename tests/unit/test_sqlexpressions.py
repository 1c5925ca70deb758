"""What is told of SQL without Spark is what Spark says of it."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from replicator.config import sqlexpressions
from replicator.jvm import gateway
from replicator.transforms.table_transform import as_deletes, rowwise
from tests.builders import made

COLUMNS = (
    "id INT, mark INT, name STRING, at TIMESTAMP, day DATE, tags ARRAY<STRING>, meta STRUCT<status: STRING>, "
    "`2nd` INT, first_x20_name STRING"
)
NAMES = ["id", "mark", "name", "at", "day", "tags", "meta", "2nd", "first name"]

CONDITIONS = [
    "mark = 1 AND NOT (name <=> 'x' OR day IS NULL) AND id IN (1, 2) AND `2nd` > 0 AND 2nd <> 3",
    "at > TIMESTAMP '2020-01-01' AND day >= DATE '2020-01-01' - INTERVAL 1 DAY",
    "at BETWEEN timestamp_ntz'2020-01-01' AND at + INTERVAL '1:2' HOUR TO MINUTE",
    "CASE WHEN mark = 1 THEN true WHEN name LIKE ANY ('a%', 'b%') THEN false ELSE name NOT  LIKE  ALL ('c%') END",
    "name ILIKE SOME ('a%') OR name LIKE '50!%' ESCAPE '!'",
    "exists(tags,t->t='a') OR aggregate(tags,0,(n,t)->n+1) > mark",
    "exists(tags, t -> t = 'a' OR t LIKE name) OR aggregate(tags, 0, (n, t) -> n + 1) > mark",
    "extract(dow FROM at) = 1 AND trim(BOTH 'x' FROM name) <> '' AND substring(name FROM 2 FOR 3) = 'abc'",
    "CAST(name AS DECIMAL(10,2)) > 1.5e-3 AND try_cast(name AS int) IS NOT NULL AND id > 10L AND id < 1e5 + 2.0BD",
    "cast(named_struct('a', array(1)) AS struct<b: array<int>>).b[0] = mark",
    "meta.status = 'D' AND `first_x20_name` RLIKE '^x' AND first_x20_name REGEXP r'\\d'",
    "encode(name, 'UTF-8') = X'1F' AND mark DIV 2 = 0 AND mark % 2 = 0",
    "mark IS DISTINCT FROM id AND timestampdiff(DAYOFYEAR, at, at) < 1 AND dateadd(DAY, 1, day) > day",
    "id = 1 OR overlay(name PLACING 'x' FROM 2) = name -- emial\n OR /* emial */ name = \"emial\"",
    "mask(name, lowerChar => 'q') = name OR xxhash64(struct(*)) = 1",
    "struct(mark AS a, name AS b).a = 1",
]
"""Over NAMES, and all of them what Spark takes for a condition on each row."""


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_over_the_columns_is_no_other_one(condition: str) -> None:
    """Key words, literals, parameters, fields, types: none of them is a column that is not there."""
    assert sqlexpressions.find_unknown_column(condition, NAMES) is None
    assert sqlexpressions.row_level_obstacle(condition) is None
    assert not sqlexpressions.is_arithmetic(condition)


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("marc = 1", "marc"),
        ("mark = 1 OR naem = 'x'", "naem"),
        ("`emial` = 'x' OR mark = 1", "emial"),
        ("mark = 1 AND `year` > 2000", "year"),
        ("exists(tags, t -> t = emial)", "emial"),
        ("mark__v2 = 1 OR marc__v2 = 1", "marc__v2"),
        ("CASE WHEN mark = 1 THEN flag END", "flag"),
        ("upper(last_x20_name) = 'X' AND mark = 1", "last name"),
        ("Mark = 1", "Mark"),
        ("mark > 10l AND 3rd = 1", "3rd"),
    ],
)
def test_a_column_that_is_not_there_is_told(condition: str, name: str) -> None:
    """By the source's spelling, also behind others that are there; silver tells names apart by their case."""
    assert sqlexpressions.find_unknown_column(condition, NAMES) == name


OBSTACLES = [
    ("count(name) > 1", "count(), which is an aggregate"),
    ("mark = 1 AND MAX (id) = id", "max(), which is an aggregate"),
    ("any(mark = 1)", "any(), which is an aggregate"),
    ("sum(mark) OVER (PARTITION BY name) > 1", "a window"),
    ("row_number() = 1", "row_number(), which needs a window"),
    ("id IN (SELECT 1)", "a sub-query"),
    ("EXISTS (\n select * FROM values (1))", "a sub-query"),
    ("id = (WITH t AS (SELECT 1 AS a) SELECT a FROM t)", "a sub-query"),
    ("rand() > 0.5 AND mark = 1", "rand(), which is not deterministic"),
    ("at < now()", "now(), which is not deterministic"),
    ("day < Current_Date - 7", "current_date, which is not deterministic"),
    ("at>current_timestamp", "current_timestamp, which is not deterministic"),
    ("mark < unix_timestamp()", "unix_timestamp(), which is not deterministic"),
]


@pytest.mark.parametrize(("condition", "what"), OBSTACLES)
def test_what_looks_at_more_than_the_row_is_told(condition: str, what: str) -> None:
    """As the run would, and what to do instead."""
    assert (sqlexpressions.row_level_obstacle(condition) or "").startswith(what)


@pytest.mark.parametrize(
    "condition",
    [
        "name = 'count(x)'", "`count(x)` = 1", "a.count = 1", "(select) = 1", "over = 1", "count = 1",
        "a.current_date = 1", "`current_date` = 1", "name = 'current_date'", "unix_timestamp(at) = 1",
    ],
)  # fmt: skip
def test_names_and_texts_are_no_functions(condition: str) -> None:
    """Columns may be called like them."""
    assert sqlexpressions.row_level_obstacle(condition) is None


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("day < DATE 'today'", "'today'"),
        ("at>timestamp_ntz'Now'", "'Now'"),
        ('at > TIMESTAMP "yesterday UTC"', '"yesterday UTC"'),
        ("cast('tomorrow' AS date) > day", "'tomorrow'"),
        ("day = 'now'::date", "'now'"),
    ],
)
def test_a_time_that_moves_is_told(condition: str, text: str) -> None:
    """Spark puts the current one in its place before anything could notice."""
    assert sqlexpressions.row_level_obstacle(condition) == (
        f"the time {text}, which is not deterministic: compare with a column"
    )
    for fixed in ("name = 'today'", "day > DATE 'epoch'", "name = \"date 'now'\"", "mark = 1 -- date 'now'"):
        assert sqlexpressions.row_level_obstacle(fixed) is None


def test_what_is_one_column_or_a_sum_is_told() -> None:
    """Whatever brackets are around it. What may be true or false is none of both."""
    given = ("mark", "( `first name` )", "mark = 1", "NULL", "1", "f(mark)")
    assert [*map(sqlexpressions.single_column, given)] == ["mark", "first name", None, None, None, None]
    assert all(map(sqlexpressions.is_arithmetic, ("mark + 1", "-mark", "(mark - id) * 2 % meta.a")))
    assert not any(
        map(sqlexpressions.is_arithmetic, ("mark", "mark - 1 > 2", "f(mark + 1)", "tags[mark + 1]", "mark AND -1"))
    )


@pytest.fixture
def rows(exact: SparkSession) -> DataFrame:
    """None, with the columns."""
    return made(exact, [], COLUMNS)


@pytest.mark.spark
def test_spark_takes_the_conditions_as_they_are_meant_here(rows: DataFrame) -> None:
    """What is let pass is not more than a run lets pass, and what is refused is what it refuses."""
    for condition in CONDITIONS:
        assert as_deletes.columns_read(condition, rows, rows.columns), condition
    for condition, _ in OBSTACLES:
        with pytest.raises(as_deletes.InvalidCondition):
            as_deletes.columns_read(condition, rows, rows.columns)


@pytest.mark.spark
def test_spark_has_no_other_aggregates_and_ranks(exact: SparkSession) -> None:
    """By its own groups of functions; what is not in them is of its grammar or of a later Spark."""
    registry = gateway.of(exact).org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    known = [found.get() for found in map(registry.lookupFunction, gateway.iterate(registry.listFunction())) if found]
    groups = {str(each.getName()): str(each.getGroup()) for each in known}
    aggregates = {name for name, group in groups.items() if group == "agg_funcs"}
    assert aggregates <= sqlexpressions.AGGREGATES
    assert not (sqlexpressions.AGGREGATES - aggregates) & groups.keys()
    assert {name for name, group in groups.items() if group == "window_funcs"} == sqlexpressions.WINDOW_FUNCTIONS


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(sqlexpressions.NONDETERMINISTIC))
def test_spark_refuses_what_is_not_the_same_each_time(rows: DataFrame, name: str) -> None:
    """Each of them, and no other function by mistake."""
    call = f"{name}(tags)" if name == "shuffle" else f"{name}()"
    with pytest.raises((rowwise.NotRowwise, PySparkException)) as caught:
        rowwise.lineage(rows, rows.select("*", F.expr(call).alias("told")))
    assert isinstance(caught.value, rowwise.NotRowwise)
