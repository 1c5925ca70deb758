"""What columns of a gold model may be called, and what they may hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator import names
from replicator.errors import ConfigError
from replicator.formats.control import MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.memory import MemoryFormat
from replicator.lake import Lake
from replicator.spec import FULL, INCREMENTAL, Evolution, Model, ModelColumn, Table
from replicator.spec.rules import Check, Expression
from replicator.stages import tuning
from replicator.stages.models.warehouse import Warehouse
from tests.unit.test_gold_stage import FACT, Shop

pytestmark = pytest.mark.spark

OF_A_PRODUCT = Model(
    "dim",
    "SELECT code, name, gone AS gone FROM {products}",
    {"products": "s/db.products"},
    ("code",),
    (ModelColumn("code", "integer"),),
    lineage={"products": ("code",)},
    refresh=INCREMENTAL,
)


@pytest.fixture
def shop(spark: SparkSession) -> Shop:
    made = Shop(tuning.session_for(spark, 0))
    made.take("lines", (1, 10, 5), (2, 10, 6), (3, 20, 7))
    made.take("products", (10, "ten", False), (30, "thirty", True))
    return made


def test_a_column_with_a_name_that_we_use_on_the_way_is_a_column(shop: Shop) -> None:
    """It is in the table, and the model is refreshed by changed keys as any other; so is one that has to be quoted."""

    def of(name: str) -> Model:
        columns = f"SELECT d.id AS {names.quote_spark(name)}, p.name, d.product AS _product"
        sql = f"{columns} FROM {{lines}} d LEFT JOIN {{products}} p ON p.code = d.product"
        lineage = {"lines": (name,), "products": ("_product",)}
        return replace(FACT, name=f"of_{name}", sql=sql, key=(name,), columns=(), lineage=lineage)

    models = {name: of(name) for name in ("_number", "_there", "_seq", "count", "broken", "a.b", "c`d")}
    assert {each.model: each.error for each in shop.refresh(*models.values())} == {
        f"of_{name}": None for name in models
    }
    shop.take("products", (20, "twenty", False))
    told = {each.model: (each.error, each.action, each.affected) for each in shop.refresh(*models.values())}
    assert told == {f"of_{name}": (None, INCREMENTAL, 1) for name in models}
    for name, model in models.items():
        assert shop.rows(model) == [(1, "ten", 10), (2, "ten", 10), (3, "twenty", 20)], name


@pytest.mark.parametrize("name", ["_op", "_deleted", "_OP"])
def test_a_column_with_a_name_that_a_difference_needs_is_refused(shop: Shop, name: str) -> None:
    """By name, before anything is written: as `_deleted` its rows would be hidden from the models above."""
    [built] = shop.refresh(replace(OF_A_PRODUCT, sql=f"SELECT code, gone AS {name} FROM {{products}}"))
    assert isinstance(built.error, ConfigError)
    assert built.error.what == f"the SQL of model dim returns a column {name}, which is a reserved name"
    assert shop.at.gold.version(shop.spark, shop.at.lake.gold("dim")) is None


@pytest.mark.parametrize("name", ["_change_type", "_commit_version", "_Commit_Timestamp"])
def test_a_column_called_as_one_of_the_change_feed_is_refused(shop: Shop, name: str) -> None:
    """By name, with what to do: Delta keeps no feed of a table that has it."""
    [built] = shop.refresh(replace(OF_A_PRODUCT, sql=f"SELECT code, gone AS {name} FROM {{products}}"))
    assert isinstance(built.error, ConfigError)
    assert built.error.what == f"the SQL of model dim returns a column {name}, which is reserved by Delta's change feed"
    assert built.error.fix == "Rename it with AS in dim.sql."
    assert shop.at.gold.version(shop.spark, shop.at.lake.gold("dim")) is None


@pytest.mark.parametrize("name", ["_metadata", "_Metadata"])
def test_a_column_called_as_that_of_sparks_files_is_refused(shop: Shop, name: str) -> None:
    """By name, with what to do: a large table with it that has deletion vectors could not be merged into."""
    [built] = shop.refresh(replace(OF_A_PRODUCT, sql=f"SELECT code, gone AS {name} FROM {{products}}"))
    assert isinstance(built.error, ConfigError)
    assert built.error.what == f"the SQL of model dim returns a column {name}, which is reserved by Spark"


@pytest.mark.parametrize("name", ["__FILE", "__Done"])
def test_a_column_called_as_one_of_a_rewrite_is_merged(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """In any case: sessions of models do not tell names by it, and the rewrite of files adds such columns."""
    lake, gold = Lake(str(tmp_path)), DeltaFormat(MergeThresholds(rewritten_bytes=0))
    shop = Shop(tuning.session_for(spark, 0), Warehouse(MemoryFormat(), gold, MemoryControl(), lake))
    model = replace(OF_A_PRODUCT, sql=f"SELECT code, name AS {name} FROM {{products}}", refresh=FULL)
    for word in ("ten", "TEN"):
        shop.take("products", (10, word, False), (20, "twenty", False))
        [built] = shop.refresh(model)
        assert (built.error, (10, word) in shop.rows(model)) == (None, True)


@pytest.mark.parametrize("value", ["NULL", "array()", "named_struct('a', 1, 'b', map('x', NULL))"])
def test_a_column_that_has_no_type_is_refused(shop: Shop, value: str) -> None:
    """A NULL says nothing of what it is instead of: Delta would make a table that nobody can read, or write, again."""
    [built] = shop.refresh(replace(FACT, sql=FACT.sql.replace("d.pieces", f"{value} AS nothing")))
    assert isinstance(built.error, ConfigError)
    assert "a column nothing without a type" in str(built.error)
    assert built.error.fix == "Cast it in fact.sql: CAST(NULL AS STRING)."


UNFIT = {
    "SELECT code, count(*) FROM {products} GROUP BY code": "a column count(1), which is not a valid column name",
    "SELECT code, struct(name AS `a name`) AS s FROM {products}": "a column a name, which is not a valid column",
    "SELECT a.code, b.code FROM {products} a JOIN {products} b USING (code)": "returns several columns named code",
    "SELECT code, array(1) AS n, name AS N FROM {products}": "returns several columns named n",
    "SELECT code, DATE'2026-01-02' - DATE'2026-01-01' AS days FROM {products}": "a column days of type interval day",
    "SELECT code, map(1, INTERVAL 1 YEAR) AS m FROM {products}": "returns a column m of type map<int,interval year>",
    "SELECT code AS Code FROM {products}": "does not return its columns code; it returns Code",
}


def test_columns_that_no_table_can_have_are_refused_by_name(shop: Shop) -> None:
    """Before anything is written, with the model's file: the format's own words name neither column nor remedy."""
    models = [replace(OF_A_PRODUCT, name=f"m{n}", sql=sql, refresh=FULL) for n, sql in enumerate(UNFIT)]
    told = {each.model: each.error for each in shop.refresh(*models)}
    for model, what in zip(models, UNFIT.values(), strict=True):
        error = told[model.name]
        assert isinstance(error, ConfigError), (model.sql, error)
        assert what in error.what, model.sql
        assert f"{model.name}.sql" in str(error.fix)
    over = replace(
        OF_A_PRODUCT, name="over", sql="SELECT code FROM {m0}", inputs={"m0": "m0"}, lineage={}, refresh=FULL
    )
    [built] = shop.refresh(over)
    assert str(built.error).endswith("Run gold, and fix what stopped model m0.")


def test_a_map_is_compared_by_its_entries(shop: Shop) -> None:
    """However deep in a value: a row whose entries are the same is not written again, one with others is."""
    values = [
        "map('n', d.pieces, 'm', 1)",
        "array(map('n', d.pieces))",
        "named_struct('a', map(1, named_struct('b', map('x', d.pieces))))",
        "if(d.pieces > 5, map('n', array(map('m', d.pieces))), NULL)",
    ]

    def of(number: int, value: str) -> Model:
        sql = f"SELECT d.id, d.product, {value} AS m FROM {{lines}} d LEFT JOIN {{products}} p ON p.code = d.product"
        return replace(FACT, name=f"fact_{number}", sql=sql, refresh=FULL)

    models = [of(number, value) for number, value in enumerate(values)]
    shop.refresh(*models)
    shop.take("lines", (1, 10, 9), (2, 10, 6))
    told = {each.model: (each.error, each.applied and each.applied.written) for each in shop.refresh(*models)}
    assert told == {model.name: (None, 1) for model in models}
    for model, value in zip(models, values, strict=True):
        wanted = shop.spark.sql(f"SELECT {value.replace('d.pieces', '9')} AS m").first()
        found = shop.at.gold.read(shop.spark, shop.at.lake.gold(model.name)).where("id = 1").collect()
        assert [row["m"] for row in found] == [wanted["m"]], value


def test_a_lineage_of_another_type_does_not_stop_a_model_that_is_computed_in_full(shop: Shop) -> None:
    """Nobody asks its lineage which rows a key touches."""
    of = replace(FACT, lineage={"lines": ("id",), "products": ("name",)})
    assert [type(each.error) for each in shop.refresh(of)] == [ConfigError]
    assert [each.error for each in shop.refresh(replace(of, refresh=FULL))] == [None]


def test_a_key_that_outgrows_a_lineage_has_its_model_computed_in_full(shop: Shop) -> None:
    """The source altered one table and not, or not yet, the other; the model is as it was and needs no fixing. A
    lineage that is new is refused: it never held.
    """
    wider = {"code": "bigint", "name": "string", "gone": "boolean"}
    shop.refresh()
    table = shop.at.lake.silver("s", "db.products", ("code",))
    shop.at.silver.evolve(shop.spark, table, Evolution(widened=(("code", "bigint"),)))
    shop.take("products", (10, "TEN", False), columns=wider)
    assert shop.why()[:2] == ("full", "the columns of s/db.products changed")
    shop.take("products", (20, "TWENTY", False), columns=wider)
    told = "the lineage of products does not match its key: product is int, but code is bigint"
    assert shop.why()[:2] == ("full", told)
    assert [row[2] for row in shop.rows()] == ["TEN", "TEN", "TWENTY"]
    [built] = shop.refresh(replace(FACT, sql=f"{FACT.sql} WHERE d.id > 0"))
    assert isinstance(built.error, ConfigError)
    assert told in str(built.error)


def test_what_spark_cannot_parse_is_said_with_its_place(shop: Shop) -> None:
    """Of a model's SQL and of the expression of a check: the first line of such an error is empty."""
    [built] = shop.refresh(replace(FACT, sql="SELECT id FROM {lines} l JOINN {products} p ON p.code = l.product"))
    assert "the SQL of model fact is invalid: [PARSE_SYNTAX_ERROR] Syntax" in str(built.error)
    [built] = shop.refresh(replace(FACT, checks=(Check("some", Expression("pieces >"), "fail"),)))
    assert "check some is invalid: [PARSE_SYNTAX_ERROR] Syntax" in str(built.error)


def test_two_uses_of_a_table_see_one_version_of_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silver may commit between two looks: a use that saw less would never be told of the rest."""
    version, news = type(shop.at.silver).version, [(10, "TEN", False)]

    def racing(format_: object, spark: SparkSession, table: Table) -> int | None:
        found = version(shop.at.silver, spark, table)
        if news and table.location.endswith("products"):
            shop.take("products", news.pop())
        return found

    shop.take("lines", (1, 10, 10), (2, 20, 20), (3, 10, 20))
    shop.take("products", (20, "twenty", False))
    of = Model(
        "fact",
        "SELECT d.id, d.product AS p1, d.pieces AS p2, a.name AS n1, b.name AS n2 FROM {lines} d "
        "LEFT JOIN {a} a ON a.code = d.product LEFT JOIN {b} b ON b.code = d.pieces",
        {"lines": "s/db.lines", "a": "s/db.products", "b": "s/db.products"},
        ("id",),
        (ModelColumn("id", "integer"),),
        lineage={"lines": ("id",), "a": ("p1",), "b": ("p2",)},
        refresh=INCREMENTAL,
    )
    shop.refresh(of)
    shop.take("lines", (4, 20, 20))
    monkeypatch.setattr(type(shop.at.silver), "version", racing)
    shop.refresh(of)
    shop.refresh(of)
    assert shop.rows(of) == [
        (1, 10, 10, "TEN", "TEN"),
        (2, 20, 20, "twenty", "twenty"),
        (3, 10, 20, "TEN", "twenty"),
        (4, 20, 20, "twenty", "twenty"),
    ]
