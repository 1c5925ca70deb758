"""Silver -> gold: what is computed again, why, and what stops a model."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from replicator import failpoints
from replicator.errors import (
    ChecksFailed,
    ConfigError,
    SchemaRefused,
    TableStopped,
    TargetRefused,
    ValueRefused,
)
from replicator.failpoints import Killed
from replicator.formats.control import JsonControl, MemoryControl
from replicator.formats.delta import DeltaFormat
from replicator.formats.delta_merge_strategies import MergeThresholds
from replicator.formats.memory import MemoryFormat
from replicator.jvm import gateway
from replicator.lake import Lake
from replicator.operate import plan
from replicator.sinks.memory import MemorySink
from replicator.spec import INCREMENTAL, Applied, Model, ModelColumn, Progress, Table, Target
from replicator.spec.rules import Check, Unique
from replicator.stages import gold, tuning
from replicator.stages.gold import RefreshResult
from replicator.stages.models import refresh_plan, refresh_reasons
from replicator.stages.models.model_inputs import ModelInput, View, changed_rows
from replicator.stages.models.refresh_reasons import Reason
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.publish import publish
from replicator.transforms import model as transform
from replicator.transforms.incremental import affected
from replicator.transforms.incremental.affected import InputUse
from replicator.transforms.incremental.eligibility import JoinAnalysis

pytestmark = pytest.mark.spark

LINES = {"id": "int", "product": "int", "pieces": "int"}
PRODUCTS = {"code": "int", "name": "string", "gone": "boolean"}
SQL = """
SELECT d.id, d.product AS product, p.name, d.pieces FROM {lines} d LEFT JOIN {products} p ON p.code = d.product
"""
LOST, LEFT = "SELECT d.id, p.code AS product", "FROM {lines} d LEFT JOIN {products} p ON p.code = d.product"
TURNED = "UNPIVOT INCLUDE NULLS (n FOR x IN (a))"
LOSSES = (
    f"SELECT id, product FROM (SELECT d.id, coalesce(p.code, -1) AS product, p.gone {LEFT}) WHERE gone IS NULL",
    f"WITH x AS ({LOST}, if(p.gone, NULL, 1) AS shown {LEFT}) SELECT id, product FROM x WHERE shown = 1",
    f"{LOST} {LEFT} WHERE CASE WHEN p.gone THEN NULL ELSE 1 END IS NOT NULL",
    f"SELECT x.id, product FROM ({LOST}, if(p.gone, NULL, 3) AS n {LEFT}) x JOIN (SELECT 3 AS m) q ON q.m = x.n",
    f"SELECT p.code AS id, p.code AS product {LEFT}",
    f"SELECT id, product FROM ({LOST}, if(p.gone, NULL, 1) AS a {LEFT}) {TURNED} WHERE n = 1",
)
"""A left join finds nothing any more, and a row comes in, leads elsewhere or has no key."""

EITHER = "SELECT id, product FROM {{lines}} {} SELECT code, code FROM {{products}}"

TWICE = (
    "SELECT a.id, b.product FROM {lines} a JOIN {lines} b ON b.id = a.product",
    "WITH l AS (SELECT * FROM {lines}) SELECT a.id, b.product FROM l a LEFT JOIN l b ON b.id = a.product",
)
EMPTIED = SQL.replace("d.product AS", "CASE WHEN p.gone THEN NULL ELSE p.code END AS")
UNTRACED = (
    SQL.replace("d.product AS", "d.pieces AS"),
    SQL.replace("d.id,", "d.pieces AS id,"),
    SQL.replace("= d.product", "= coalesce(d.product, 0)"),
    f"SELECT d.id, q.code AS product {LEFT} LEFT JOIN (SELECT id + 1 AS code FROM range(3)) q ON q.code = d.product",
    *[f"SELECT d.id, {sql} LEFT JOIN {{products}} p ON p.code = {value}" for sql, value in (
        ("d.pieces AS product FROM {lines} d LEFT JOIN (VALUES (10)) v(m) ON v.m = 10 AND d.pieces = 10", 10),
        ("v.m AS product FROM {lines} d LEFT JOIN (SELECT * FROM VALUES (10) t(m) WHERE m = 10) v ON m = d.pieces", 10),
        ("v.ten AS product FROM {lines} d LEFT JOIN (SELECT m, 10 AS ten FROM VALUES (1) t(m)) v ON m = d.pieces", 10),
        ("d.pieces AS product FROM {lines} d LEFT JOIN (VALUES (1)) v(m) ON coalesce(v.m, 10) = d.pieces",
         "coalesce(v.m, 10)"),
    )],
)  # fmt: skip
"""The lineage of an input is not its key, or not always: also where a left join found no row, and a constant is not its
column's value.
"""
WITH_COMMA = SQL.replace("d.product AS", "length(concat(d.pieces, 'a', 'b')) AS").replace(
    "= d.product", "= length(concat(d.pieces, 'a, b'))"
)
"""The lineage is another expression than the key is compared with, though Spark prints both alike."""
FACT = Model(
    "fact",
    SQL,
    {"lines": "s/db.lines", "products": "s/db.products"},
    ("id",),
    (ModelColumn("id", "integer", nullable=False),),
    lineage={"lines": ("id",), "products": ("product",)},
    refresh=INCREMENTAL,
)


class Forgetful(MemoryFormat):
    """Keeps no history."""

    def changed_keys(self, *_: Any) -> None:
        return None


@dataclass
class Shop:
    """Two tables of silver and the models over them, in memory unless told otherwise."""

    spark: SparkSession
    at: Warehouse = field(
        default_factory=lambda: Warehouse(MemoryFormat(), MemoryFormat(), MemoryControl(), Lake("memory"), 2.0, 0)
    )
    batches: int = 0

    def take(self, name: str, *rows: tuple[Any, ...], columns: dict[str, str] | None = None) -> None:
        """Rows of ``lines`` (key: id) or ``products`` (key: code); one with nothing behind its key is deleted."""
        self.batches += 1
        columns = columns or {"lines": LINES, "products": PRODUCTS}[name]
        key = next(iter(columns))
        fields = [
            T.StructField(c, T._parse_datatype_string(kind), metadata={"name": c} | ({"key": 0} if c == key else {}))
            for c, kind in columns.items()
        ]
        schema = self.spark.createDataFrame([], "_seq string, _deleted boolean, _column_seq map<string,string>").schema
        ours = [*schema, T.StructField("_source_ts_ms", T.LongType()), T.StructField("_op", T.StringType())]
        told = [
            (
                *row,
                *[None] * (len(columns) - len(row)),
                f"{self.batches:09}",
                len(row) == 1,
                None,
                self.batches,
                "upsert",
            )
            for row in rows
        ]
        table = self.at.lake.silver("s", f"db.{name}", (key,))
        self.at.silver.put(
            gateway.create_frame(self.spark, told, T.StructType([*fields, *ours])),
            table,
            Progress("bronze", self.batches),
        )

    def refresh(self, *models: Model) -> list[RefreshResult]:
        return gold.refresh(self.spark, models or [FACT], self.at)

    def why(self, *models: Model) -> tuple[str, str, int, int | None]:
        """How the only model was refreshed, why, rows computed and affected."""
        [built] = self.refresh(*models)
        assert built.error is None, built.error
        return built.action, built.reason, built.rows, built.affected

    def rows(self, model: Model = FACT) -> list[tuple[Any, ...]]:
        return sorted(
            (tuple(r) for r in self.at.gold.read(self.spark, self.at.lake.gold(model.name)).collect()), key=str
        )


@pytest.fixture
def shop(spark: SparkSession) -> Shop:
    made = Shop(tuning.session_for(spark, 0))
    made.take("lines", (1, 10, 5), (2, 10, 6), (3, 20, 7))
    made.take("products", (10, "ten", False), (30, "thirty", False))
    return made


def test_only_the_rows_that_a_changed_key_touches_are_computed(shop: Shop) -> None:
    """Gold.md: changed, new, deleted and looked-up rows; nothing new is no work; what `plan` tells is what is done."""

    def planned() -> tuple[Any, ...]:
        [found] = plan.plan_models(shop.spark, [FACT], shop.at, {"fact"})
        return found.action, found.why, found.affected, found.rows

    assert planned() == ("first build", "its table does not exist yet", None, None)
    assert shop.why() == ("first build", "its table does not exist yet", 3, None)
    assert shop.rows() == [(1, 10, "ten", 5), (2, 10, "ten", 6), (3, 20, None, 7)]
    assert (shop.refresh(), planned()) == ([], ("nothing", "its inputs are unchanged", None, 3))
    shop.take("products", (20, "twenty", False))
    version = shop.at.gold.version(shop.spark, shop.at.lake.gold("fact"))
    assert planned() == ("incremental", "changed keys: 1 of s/db.products", 1, 3)
    assert shop.at.gold.version(shop.spark, shop.at.lake.gold("fact")) == version
    assert shop.why() == ("incremental", "changed keys: 1 of s/db.products", 1, 1)
    shop.take("products", (10,))
    shop.take("lines", (3,), (4, 20, 1))
    told = "changed keys: 2 of s/db.lines, 1 of s/db.products"
    assert shop.why() == ("incremental", told, 3, 4)
    assert shop.rows() == [(1, 10, None, 5), (2, 10, None, 6), (4, 20, "twenty", 1)]
    shop.take("products", (30, "THIRTY", True))
    assert shop.why() == ("incremental", "changed keys: 1 of s/db.products", 0, 0)
    shop.take("products")
    assert shop.why() == ("incremental", "no key of its inputs changed", 0, 0)
    assert shop.refresh() == []


def test_what_cannot_be_told_by_changed_keys_is_computed_in_full(shop: Shop) -> None:
    """Gold.md: another SQL, key or lineage, an input made anew or with other columns, many rows, another zone of
    Spark's; a model that gains columns keeps its table, which gains them too.
    """
    shop.refresh()
    wider = replace(FACT, sql=SQL.replace("d.pieces", "d.pieces + CAST(0 AS BIGINT) AS pieces, upper(p.name) AS loud"))
    assert shop.why(wider)[:2] == ("full", "its SQL changed")
    assert shop.rows()[0] == (1, 10, "ten", 5, "TEN")
    assert dict(shop.at.gold.read(shop.spark, shop.at.lake.gold("fact")).dtypes)["pieces"] == "bigint"
    assert shop.refresh(wider) == []
    declared = replace(wider, refresh="full")
    shop.take("lines", (4, 30, 1))
    assert shop.why(declared)[:3] == ("full", "`refresh: full`", 4)
    partial = replace(wider, lineage={"lines": ("id",)}, refresh="full")
    assert shop.why(partial)[1] == "its lineage changed"
    shop.take("lines", (5, 30, 1))
    assert shop.why(partial)[1] == "its lineage lacks products"
    assert shop.why(replace(wider, key=("id", "product")))[1] == "its key changed"
    assert shop.why(wider)[1] == "its key changed"
    shop.at = replace(shop.at, full_share=0.3)
    shop.take("lines", (6, 10, 1), (7, 10, 1))
    assert shop.why(wider)[1] == "2 changed keys for 5 rows"
    shop.take("products", (10, "TEN", False))
    assert shop.why(wider)[1] == "4 affected rows for 7 rows"
    shop.at.silver._tables.pop("memory/silver/s/db.products")  # type: ignore[attr-defined] # it is in memory
    shop.take("products", (10, "ten", False, 1), columns=PRODUCTS | {"more": "int"})
    assert shop.why(wider)[1] == "s/db.products was replaced by another table"
    shop.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert shop.why(wider)[1] == "the Spark settings that affect its SQL changed"
    assert shop.refresh(wider) == []
    shop.at = replace(shop.at, full_bytes=10_000)
    shop.take("lines", (6,))
    assert shop.why(wider)[1] == "its inputs are small"


def test_an_input_without_history_or_key_has_its_model_computed_in_full(shop: Shop) -> None:
    """The protocol lets a format forget; append-only tables have no key."""
    shop.at = replace(shop.at, silver=Forgetful())
    shop.take("lines", (1, 10, 5))
    shop.take("products", (10, "ten", False))
    shop.refresh()
    shop.take("lines", (2, 10, 5))
    assert shop.why()[1].startswith("s/db.lines no longer has the changes since its version")
    keyless = Model(
        "keyless", "SELECT id FROM {x}", {"x": "s/x"}, ("id",), (), lineage={"x": ("id",)}, refresh=INCREMENTAL
    )
    table = shop.at.lake.silver("s", "x")
    for number in (1, 2):
        shop.at.silver.append(shop.spark.range(number, number + 1), table, None)
        shop.refresh(keyless)
    shop.at.silver.append(shop.spark.range(3, 4), table, None)
    assert shop.why(keyless)[:2] == ("full", "s/x has no key")


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT d.id, max(p.code) AS product FROM {lines} d, {products} p GROUP BY d.id", "Aggregate"),
        ("SELECT d.id, p.code AS product FROM {lines} d RIGHT JOIN {products} p ON p.code = d.product", "RightOuter"),
        ("SELECT id, (SELECT max(code) FROM {products}) AS product FROM {lines}", "subquery"),
        ("SELECT id, product FROM {lines} UNION SELECT code, code FROM {products}", "Distinct"),
        (f"SELECT id, product FROM ({EITHER.format('EXCEPT ALL')})", "Except All"),
        (f"SELECT id, product FROM ({EITHER.format('INTERSECT ALL')})", "Intersect All"),
        (f"SELECT id, product FROM (SELECT TRANSFORM(id) USING 'cat' AS (id, product) {LEFT})", "ScriptTransformation"),
        (f"{SQL.replace('d.product AS', 'p.code AS')} WHERE NOT coalesce(p.gone, false)", "left join"),
        (SQL.replace("SELECT d.id, d.product AS", "SELECT coalesce(p.code, d.id) AS id, p.code AS"), "left join"),
        *[(sql, "left join") for sql in LOSSES],
        *[(sql, "{lines} more than once") for sql in TWICE],
        (EMPTIED, "does not show that product is the key (code) of {products}"),
        *[(sql, "does not show") for sql in (*UNTRACED, WITH_COMMA)],
    ],
)
def test_sql_that_changed_keys_do_not_hold_for_is_computed_in_full(shop: Shop, sql: str, why: str) -> None:
    """Gold.md, "when it holds": no aggregate, set operation or sub-query, no row that appears where a left join loses
    what its lineage is taken from, in whichever sub-select, and one lineage for each use of an input.
    """
    found = of_sql(shop, sql)
    assert found is not None
    assert why in found.sentence


@pytest.mark.parametrize(
    "sql",
    [
        f"{SQL} WHERE NOT p.gone",
        f"""WITH x AS ({LOST}, coalesce(p.name, '?') AS name, p.gone {LEFT})
        SELECT id, product FROM x WHERE NOT gone AND gone IS NOT NULL""",
        f"{LOST.replace('SELECT', 'SELECT /*+ REPARTITION(2) */')} {LEFT}",
        f"{LOST.replace('SELECT', 'SELECT /*+ BROADCAST */')} {LEFT}",
        f"{LOST} {LEFT} DISTRIBUTE BY product SORT BY id",
        """SELECT d.id, d.item.code AS product, p.name FROM (SELECT id, explode(items) AS item FROM {lines}) d
        LEFT JOIN {products} p ON p.code = d.item.code WHERE coalesce(p.gone, true)""",
        SQL.replace("d.product AS", "coalesce(p.code, -1) AS"),
        SQL.replace("d.product", "coalesce(d.product, 0)"),
        SQL.replace("p.code =", "CAST(p.code AS BIGINT) =").replace("d.product AS", "CAST(d.product AS BIGINT) AS"),
        f"WITH x AS ({LOST}, p.name {LEFT}) SELECT id, product FROM x",
        "SELECT id, code AS product FROM {lines} JOIN (SELECT code AS product, code FROM {products}) USING (product)",
    ],
    ids=["filter", "sub-select", "hint", "hint without a name", "order", "array of the grain", "another value for NULL",
         "the same expression", "wider types", "common table", "using"],
)  # fmt: skip
def test_sql_of_look_ups_is_known_as_such(shop: Shop, sql: str) -> None:
    """Gold.md, "when it holds": a filter that drops what a left join does not find, columns that are made of it, hints
    and orders, references in an array of the grain.
    """
    assert of_sql(shop, sql) is None


def of_sql(shop: Shop, sql: str) -> Reason | None:
    """Why changed keys do not hold for the SQL of a fact; None where they do."""
    columns = {"lines": "id INT, product INT, pieces INT, items ARRAY<STRUCT<code: INT>>"}
    columns["products"] = "code INT, name STRING, gone BOOLEAN"
    views: dict[str, Any] = {name: shop.spark.createDataFrame([], ddl) for name, ddl in columns.items()}
    probe = JoinAnalysis(lambda inputs: shop.spark.sql(sql, **dict[str, Any](inputs)), views)
    keys = {"lines": ("id",), "products": ("code",)}
    return refresh_reasons.sql_obstacle(replace(FACT, sql=sql), shop.spark.sql(sql, **views), keys, lambda: probe)


def test_a_lineage_that_a_left_join_loses_would_miss_rows(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the filter above is refused: a row that a looked-up row kept out comes in when that one is deleted, and it is
    in nobody's lineage. By the referencing column it is.
    """
    shop.take("products", (10, "ten", True))
    where = " WHERE NOT coalesce(p.gone, false)"
    loose = replace(FACT, sql=SQL.replace("d.product AS", "p.code AS") + where)
    tight = replace(FACT, name="tight", sql=SQL + where)
    wrong = replace(loose, name="wrong")
    shop.refresh(loose, tight, wrong)
    shop.take("products", (10,))
    assert [built.action for built in shop.refresh(loose, tight)] == ["full", "incremental"]
    assert [len(shop.rows(model)) for model in (loose, tight)] == [3, 3]
    monkeypatch.setattr(JoinAnalysis, "loses_lineage", lambda *_: False)
    assert shop.why(wrong)[0] == "incremental"
    assert len(shop.rows(wrong)) == 1


def test_a_lineage_that_is_not_always_the_key_misses_nothing(shop: Shop) -> None:
    """Changes of a row whose key a condition empties are in no lineage: such a model is computed in full."""
    shop.take("products", (10, "ten", True))
    emptied = replace(FACT, sql=EMPTIED)
    shop.refresh(emptied)
    shop.take("products", (10, "new", True))
    assert [built.action for built in shop.refresh(emptied)] == ["full"]
    assert "new" in {row[2] for row in shop.rows(emptied)}


@pytest.mark.parametrize("sql", UNTRACED[4:])
def test_rows_without_the_row_that_has_the_lineage_are_found(shop: Shop, sql: str) -> None:
    """A product that is looked up by a constant is used by all lines, whatever another left join finds for them."""
    constant = replace(FACT, sql=sql.replace("SELECT d.id", "SELECT d.id, p.name"))
    shop.refresh(constant)
    shop.take("products", (10, "new", False))
    shop.refresh(constant)
    assert {row[1] for row in shop.rows(constant)} == {"new"}


def test_columns_that_become_rows_keep_what_they_are_made_of(shop: Shop) -> None:
    """A value of UNPIVOT is NULL as its column is: what a left join takes away by it comes in as it would anew."""
    shop.take("products", (10, "ten", True))
    turned = replace(FACT, sql=LOSSES[-1])
    shop.refresh(turned)
    assert [row[0] for row in shop.rows(turned)] == [3]
    shop.take("products", (10,))
    shop.refresh(turned)
    assert [row[0] for row in shop.rows(turned)] == [1, 2, 3]


MULTIPLE = replace(
    FACT,
    sql=f"SELECT d.id, n, d.product, p.name {LEFT.replace('LEFT', 'CROSS JOIN (VALUES (1), (2)) AS t(n) LEFT')}",
    key=("id", "n"),
)
ROUTED = replace(
    FACT,
    sql="""SELECT d.id, r.code AS route, r.product FROM {lines} d JOIN {routes} r ON r.code = d.pieces
    LEFT JOIN {products} p ON p.code = r.product""",
    inputs={**FACT.inputs, "routes": "s/db.routes"},
    lineage={**FACT.lineage, "routes": ("route",)},
)


@pytest.mark.parametrize(
    ("model", "change", "rows"),
    [
        (FACT, {"lines": (1, 40, 5), "products": (99, "other", False)}, 2),
        (MULTIPLE, {"lines": (1, 40, 5)}, 4),
        (ROUTED, {"routes": (5, 40)}, 2),
    ],
    ids=["grain and another row", "several rows of a grain row", "look-up"],
)
def test_a_row_that_its_filter_drops_is_not_invented_from_a_part_of_an_input(
    shop: Shop, model: Model, change: dict[str, tuple[Any, ...]], rows: int
) -> None:
    """Gold.md step 4: a row that now refers to one that excludes it, and that did not change, leaves. The part of the
    products that is read does not hold that one, and without a match the filter lets the row pass.
    """
    kept = replace(model, sql=f"{model.sql} WHERE NOT coalesce(p.gone, false)")
    routes = {"code": "int", "product": "int"}
    shop.take("products", (40, "forty", True))
    shop.take("routes", (5, 10), (6, 10), (7, 20), columns=routes)
    shop.refresh(kept)
    for name, row in change.items():
        shop.take(name, row, columns=routes if name == "routes" else None)
    assert shop.why(kept)[0] == "incremental"
    assert len(shop.rows(kept)) == rows
    assert 1 not in {row[0] for row in shop.rows(kept)}


STRICT = "coalesce(p.name, CAST(raise_error('no such product') AS STRING))"
EXCLUDED = f"SELECT d.id, d.product, {STRICT} AS name {LEFT} WHERE NOT coalesce(p.gone, false)"


@pytest.mark.parametrize(
    ("model", "changes", "rows"),
    [
        (replace(FACT, sql=f"{SQL} WHERE 9 / length(coalesce(p.name, '')) > 0"), {"products": (10, "TEN", False)}, 3),
        (replace(FACT, sql=EXCLUDED), {"lines": (1, 40, 5), "products": (99, "other", False)}, 2),
    ],
    ids=["to_find_rows", "to_compute_them"],
)
def test_sql_that_fails_over_a_part_of_an_input_is_computed_in_full(
    shop: Shop, model: Model, changes: dict[str, tuple[Any, ...]], rows: int
) -> None:
    """Over the whole products each line has its own; over the part that a refresh reads an expression is asked for what
    it never was, and would stop the model for good. (Compiled by the stage, no value is asked for of a row that leaves,
    so that larger work does compute them.)
    """
    shop.take("products", (20, "twenty", False), (40, "forty", True))
    shop.refresh(model)
    for name, row in changes.items():
        shop.take(name, row)
    action, reason, *_ = shop.why(model)
    assert (action, reason.partition(":")[0]) == ("full", "its affected rows cannot be computed separately")
    assert len(shop.rows(model)) == rows


def test_keys_that_meet_stop_the_model_and_gold_stays(shop: Shop) -> None:
    """One row per key: a new row must not take the place of one that nothing touched; nor may a key be NULL."""
    by_pieces = replace(FACT, key=("pieces",), sql=SQL.replace("LEFT JOIN", "JOIN"))
    shop.refresh(by_pieces)
    before = shop.rows()
    shop.take("lines", (9, 30, 5))
    [built] = shop.refresh(by_pieces)
    assert isinstance(built.error, ChecksFailed)
    assert "1 keys of pieces are NULL or occur more than once" in str(built.error)
    shop.take("lines", (9, 30, None))
    [built] = shop.refresh(by_pieces)
    assert isinstance(built.error, ChecksFailed)
    assert shop.rows() == before
    shop.take("lines", (9,))
    assert shop.why(by_pieces)[0] == "incremental"
    assert shop.rows() == before


def test_what_a_table_cannot_follow_is_refused(shop: Shop) -> None:
    """A column that goes or changes its type, a key that rows of the table share: building it anew is the user's word.
    A lineage must hold its input's key.
    """
    shop.refresh()

    def error(model: Model) -> Any:
        [built] = shop.refresh(model)
        return built.error

    other = SQL.replace("d.pieces", "cast(d.pieces AS string) AS pieces")
    for sql, told in (
        (SQL.replace(", d.pieces", ""), "pieces was removed"),
        (other, "pieces changed from int to string"),
    ):
        refused = error(replace(FACT, sql=sql))
        assert isinstance(refused, SchemaRefused)
        assert told in str(refused)
        assert "`replicator rebuild fact`" in str(refused)
    collapsed = "SELECT max(d.id) AS id, d.product, max(p.name) AS name, max(d.pieces) AS pieces FROM {lines} d JOIN "
    collapsed += "{products} p ON p.code = d.product GROUP BY d.product"
    refused = error(replace(FACT, sql=collapsed, key=("product",)))
    assert "which is not unique or is NULL in existing rows" in str(refused)
    narrow = error(replace(FACT, name="narrow", sql=SQL.replace("d.product AS", "cast(d.product AS smallint) AS")))
    assert isinstance(narrow, ConfigError)
    assert "product is smallint, but code is int" in str(narrow)


def test_a_key_of_a_column_that_comes_with_it_is_followed(shop: Shop) -> None:
    """No row of the table has a key then: all rows take their place, and are held to the checks as if they were new."""
    once = Check("once", Unique(("id",)))
    shop.refresh(replace(FACT, checks=(once,)))
    parted = replace(FACT, sql=SQL.replace("d.pieces", "d.pieces, d.pieces % 2 AS part"), key=("id", "part"))
    assert shop.why(replace(parted, checks=(once,)))[:2] == ("full", "its SQL changed")
    assert [(row[0], row[4]) for row in shop.rows()] == [(1, 1), (2, 0), (3, 1)]
    shop.take("lines", (3,), (4, 10, 2))
    assert shop.why(replace(parted, checks=(once,)))[0] == "incremental"
    assert [(row[0], row[4]) for row in shop.rows()] == [(1, 1), (2, 0), (4, 0)]


def test_columns_come_with_their_values_wherever_a_run_dies(shop: Shop) -> None:
    """K-G3: who reads between the death and the next run, a publish alone among them, sees no column without values."""
    shop.refresh()
    before, sink = shop.rows(), MemorySink()
    columns = (*FACT.columns, ModelColumn("loud", "text"))
    sql = SQL.replace("d.pieces", "d.pieces, upper(p.name) AS loud")
    wider = replace(FACT, sql=sql, columns=columns, target=Target("w", "s", "fact"))
    with failpoints.watched(failpoints.parse("gold.inputs_noted:raise:1")), pytest.raises(Killed):
        shop.refresh(wider)
    assert shop.rows() == before
    [stopped] = publish(shop.spark, [wider], shop.at.gold, shop.at.lake, sink)
    assert isinstance(stopped.error, TargetRefused)
    assert shop.why(wider)[0] == "full"
    assert shop.rows() == [(1, 10, "ten", 5, "TEN"), (2, 10, "ten", 6, "TEN"), (3, 20, None, 7, None)]
    assert [each.error for each in publish(shop.spark, [wider], shop.at.gold, shop.at.lake, sink)] == [None]
    assert {row["loud"] for row in sink.tables["fact"].values()} == {"TEN", None}


def test_a_model_in_delta_is_followed_as_one_in_memory(spark: SparkSession, tmp_path: Path) -> None:
    """The same steps on tables at rest: changed keys of Delta, a merge with deletes, a column more, a model over it."""
    tables = DeltaFormat()
    at = Warehouse(tables, tables, JsonControl(spark), Lake(str(tmp_path)), 2.0, 0)
    shop = Shop(tuning.session_for(spark, 0), at)
    over = Model("over", "SELECT f.id, f.name FROM {fact} f WHERE f.pieces > 5", {"fact": "fact"}, ("id",), (),
                 lineage={"fact": ("id",)}, refresh=INCREMENTAL)  # fmt: skip
    shop.take("lines", (1, 10, 5), (2, 10, 6), (3, 20, 7))
    shop.take("products", (10, "ten", False))
    assert [built.action for built in shop.refresh(FACT, over)] == ["first build"] * 2
    shop.take("products", (20, "twenty", False))
    shop.take("lines", (2,))
    planned = [(each.action, each.reason) for each in plan.plan_models(shop.spark, [FACT, over], at, {"over"})]
    assert planned == [("incremental", "input first")]
    found = [(built.action, built.rows, built.affected) for built in shop.refresh(FACT, over)]
    assert found == [("incremental", 1, 2), ("incremental", 1, 2)]
    assert shop.rows() == [(1, 10, "ten", 5), (3, 20, "twenty", 7)]
    assert shop.rows(over) == [(3, "twenty")]
    wider = replace(FACT, sql=SQL.replace("d.pieces", "d.pieces, upper(p.name) AS loud"))
    assert shop.why(wider)[1] == "its SQL changed"
    shop.take("products", (10,))
    assert shop.why(wider)[0] == "incremental"
    assert shop.rows() == [(1, 10, None, 5, None), (3, 20, "twenty", 7, "TWENTY")]


def test_a_model_whose_table_cannot_follow_it_is_planned_to_stop(shop: Shop) -> None:
    """As a run would refuse it: a column less, a key that rows at rest share. The models over it are not told that it
    is built first.
    """
    over = Model("over", "SELECT f.id, f.name FROM {fact} f", {"fact": "fact"}, ("id",), (),
                 lineage={"fact": ("id",)}, refresh=INCREMENTAL)  # fmt: skip
    shop.refresh(FACT, over)
    shop.take("lines", (1, 10, 6))
    less, shared = replace(FACT, sql=SQL.replace(", d.pieces", "")), replace(FACT, key=("product",))
    for changed, why in ((less, "pieces was removed"), (shared, "the model's key is now product")):
        told = list(plan.plan_models(shop.spark, [changed, over], shop.at, {"fact", "over"}))
        assert [(each.action, each.reason) for each in told] == [("stops", "error"), ("nothing", "unmoved")]
        assert why in told[0].why
        [stopped] = shop.refresh(changed, over)
        assert str(stopped.error) == told[0].why


def test_a_model_that_reads_a_new_column_of_another_is_planned_after_it(shop: Shop) -> None:
    """A run builds the model with the new column first, and then the one that reads it; where the first one stops, the
    second one's SQL is not what needs to be fixed.
    """
    over = Model("over", "SELECT f.id, f.name FROM {fact} f", {"fact": "fact"}, ("id",), (),
                 lineage={"fact": ("id",)}, refresh=INCREMENTAL)  # fmt: skip
    shop.refresh(FACT, over)
    more = replace(FACT, sql=SQL.replace(", d.pieces", ", d.pieces, 1 AS more"))
    reads = replace(over, sql="SELECT f.id, f.name, f.more FROM {fact} f")
    _, told, new = plan.plan_models(
        shop.spark, [more, reads, replace(reads, name="new")], shop.at, {"fact", "over", "new"}
    )
    assert (told.action, told.reason, told.rows) == ("full", "input first", 3)
    assert told.why.startswith("with the present columns of its inputs, the SQL of model over is invalid")
    assert told.why.endswith("fact is built first, and its changes are not known yet")
    assert (new.action, new.reason, new.rows) == ("first build", "input first", None)
    stopped, stops = shop.refresh(
        replace(more, sql=more.sql.replace("p.name, ", "")), replace(reads, sql=f"{reads.sql} ")
    )
    assert str(stopped.error).endswith("`replicator rebuild fact` builds it again.")
    assert str(stops.error).endswith("Fix what stopped its input fact first.")
    assert [(built.model, built.error) for built in shop.refresh(more, reads)] == [("fact", None), ("over", None)]


def test_silver_or_gold_that_was_copied_back_goes_on_to_the_target(spark: SparkSession, tmp_path: Path) -> None:
    """F-C5: whether its versions then come to the number that was read, by another commit, or pass it, also where so
    little is always computed in full; rows of earlier checkouts, which do not say which commit it was, stay as they
    are. A model that lost its files says which folder has to go, and is then built and sent anew.
    """
    model = replace(FACT, columns=(FACT.columns[0], ModelColumn("pieces", "integer")), target=Target("t", "s", "fact"))
    shop, sink, lake = Shop(tuning.session_for(spark, 0)), MemorySink(), Lake(str(tmp_path / "lake"))
    lines, fact, copy = lake.silver("s", "db.lines", ("id",)), lake.gold("fact", ("id",)), tmp_path / "copy"

    def restart(full_bytes: int = 0) -> None:
        shop.at = Warehouse(DeltaFormat(), DeltaFormat(), JsonControl(spark), lake, 2.0, full_bytes)

    def build() -> list[str]:
        found = shop.refresh(model)
        assert [each.error for each in found if each.error] == []
        return [each.action for each in found]

    def step() -> tuple[list[str], list[str]]:
        built, sent = build(), publish(spark, [model], shop.at.gold, lake, sink)
        assert [each.error for each in sent if each.error] == []
        kept = shop.at.silver.read(spark, lines).where("NOT _deleted").collect()
        wanted = sorted((row["id"], row["pieces"]) for row in kept)
        assert sorted((row[0], row[3]) for row in shop.rows(model)) == wanted
        assert sorted(tuple(row.values()) for row in sink.tables["fact"].values()) == wanted
        return built, [each.model for each in sent]

    restart()
    shop.take("lines", (1, 10, 5), (2, 10, 6))
    shop.take("products", (10, "ten", False))
    step()
    for full_bytes, *commits in (
        (0, [(11, 10, 1), (12, 10, 2)]),
        (0, [(21, 10, 1)], [(22, 10, 2)]),
        (1 << 20, [(31, 10, 1), (32, 10, 2)]),
    ):
        restart(full_bytes)
        shutil.copytree(lines.location, copy)
        shop.take("lines", (commits[0][0][0], 10, 7))
        step()
        _set_back(lines, copy)
        restart(full_bytes)
        for rows in commits:
            shop.take("lines", *rows)
        assert step() == (["full"], ["fact"])
    for later in (3,), (4, 5):
        shutil.copytree(fact.location, copy)
        shop.take("lines", (40 + later[0], 20, 1))
        step()
        _set_back(fact, copy)
        restart()
        for number in later:
            shop.take("lines", (50 + number, 10, 1))
            build()
        assert step() == ([], ["fact"])
    for table in lines, fact:
        _restored(shop, table, step)
    for pieces, (full_bytes, action) in enumerate([(0, "incremental"), (1 << 20, "full")], 6):
        restart(full_bytes)
        _forget_commits(shop, fact)
        sink.ledger["fact"] = replace(sink.ledger["fact"], commit=None)
        assert step() == ([], [])
        shop.take("lines", (1, 10, pieces))
        assert step() == ([action], ["fact"])
        commits = [place[2] for place in _inputs(shop, fact)[1]["inputs"].values()]
        assert None not in (*commits, sink.ledger["fact"].commit)
    shop.take("lines", (1, 10, 8))
    _lost(shop, model, fact)
    assert step() == (["first build"], ["fact"])


def _set_back(table: Table, copy: Path) -> None:
    """The table as it was when it was copied."""
    shutil.rmtree(table.location)
    copy.rename(table.location)


def _restored(shop: Shop, table: Table, step: Callable[[], tuple[list[str], list[str]]]) -> None:
    """The table taken back where it is, by Delta's own statement, and then to what it was before that."""
    version = shop.at.gold.version(shop.spark, table)
    shop.take("lines", (60, 20, version))
    step()
    restore = f"RESTORE TABLE delta.`{table.location}` TO VERSION AS OF"
    shop.spark.sql(f"{restore} {version}")
    shop.take("lines", (61, 10, version))
    assert step() == (["full"], ["fact"])
    shop.spark.sql(f"{restore} {version + 1}")
    assert step()[1] == ["fact"]


def _lost(shop: Shop, model: Model, fact: Table) -> None:
    """The fact without its files, and then without its folder, as its error says."""
    for file in Path(fact.location).glob("*.parquet"):
        file.unlink()
    [stopped] = shop.refresh(model)
    assert f"remove the folder {fact.location}: the next run" in str(stopped.error)
    shutil.rmtree(fact.location)


def _forget_commits(shop: Shop, fact: Table) -> None:
    """What was written of the inputs, as earlier checkouts wrote it."""
    row, told = _inputs(shop, fact)
    shop.at.control.put(row, told | {"inputs": {name: place[:2] for name, place in told["inputs"].items()}})


def _inputs(shop: Shop, fact: Table) -> tuple[str, dict[str, Any] | None]:
    """Where it is written what the fact was made of, and what is written there."""
    progress = shop.at.gold.progress(shop.spark, fact, "fact")
    row = shop.at.lake.inputs("fact", progress.version)
    return row, shop.at.control.get(row)


def test_a_small_refresh_takes_few_jobs(spark: SparkSession, tmp_path: Path) -> None:
    """Decisions 0050 and 0063: keys are counted and rows compared in the job that computes them; where only the grain
    changed nobody looks for rows; what has not moved takes no job.
    """
    tables = DeltaFormat()
    shop = Shop(tuning.session_for(spark, 0), Warehouse(tables, tables, JsonControl(spark), Lake(str(tmp_path)), 2.0))
    own = Model("own", "SELECT id, pieces FROM {lines}", {"lines": "s/db.lines"}, ("id",), (),
                lineage={"lines": ("id",)}, refresh=INCREMENTAL, deletion_vectors=True)  # fmt: skip
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()

    def jobs(model: Model, action: str) -> int:
        before = int(scheduler.numTotalJobs())
        assert [(each.action, each.error) for each in shop.refresh(model)] == [(action, None)] * bool(action)
        return int(scheduler.numTotalJobs()) - before

    shop.take("lines", (1, 10, 5), (2, 10, 6), (3, 20, 7))
    shop.take("products", (10, "ten", False))
    shop.refresh(FACT, own)
    shop.take("lines", (2, 20, 9), (4, 10, 1), (3,))
    assert jobs(FACT, "full") == len(["looked up", "compared", "any", "merged", "written"])
    shop.at = replace(shop.at, full_bytes=0)
    done = ["changed", "sent to all", "compared", "any", "merged", "written"]
    assert jobs(own, "incremental") == len(done)
    assert (jobs(FACT, ""), jobs(own, "")) == (0, 0)
    assert shop.rows(own) == [(1, 5), (2, 9), (4, 1)]
    shop.take("lines", (1, 20, 5), (4,), (5, 10, 2))
    assert jobs(FACT, "incremental") == len([*done, "looked up"])
    shop.take("lines", (2, 10, 9))
    shop.take("products", (20, "twenty", False))
    assert jobs(FACT, "incremental") > len([*done, "looked up", "changed products", "touched", "touched keys"])
    assert shop.rows() == [(1, 20, "twenty", 5), (2, 10, "ten", 9), (5, 10, "ten", 2)]
    for model, reader in ((FACT, 1), (own, 3)):  # who reads deletion vectors knows version 3 of Delta's protocol
        assert tables.detail(spark, shop.at.table(model)).protocol == reader


def test_rows_of_the_grain_are_compared_by_whoever_writes_them(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of the table less; not where checks want the rows that there were, or where the table may have keys in
    another form than the input.
    """

    class Compared(Exception):
        """The stage looked at what the table has."""

    def fails(*_: Any) -> None:
        raise Compared

    given: dict[str, Any] = {"inputs": {"lines": "s/db.lines"}, "key": ("id",), "columns": (), "refresh": INCREMENTAL}
    own = Model("own", "SELECT id, pieces FROM {lines}", **given, lineage={"lines": ("id",)})
    checked = replace(own, name="checked", checks=(Check("unique(id)", Unique(("id",))),))
    cast = replace(own, name="cast", sql="SELECT CAST(id AS BIGINT) AS id, pieces FROM {lines}")
    every = (own, checked, cast)
    shop.refresh(*every)
    shop.take("lines", (1, 10, 5), (2, 10, 8), (3,), (4, 10, 1))
    with monkeypatch.context() as patched:
        patched.setattr(transform, "compare", fails)
        [built] = shop.refresh(own)
        assert (built.action, built.applied) == ("incremental", Applied(1, 1, 1, 1))
        for model in (checked, cast):
            with pytest.raises(Compared):
                shop.refresh(model)
    shop.refresh(checked, cast)
    assert shop.rows(own) == shop.rows(checked) == shop.rows(cast) == [(1, 5), (2, 8), (4, 1)]


def test_changed_rows_of_the_grain_are_read_where_they_were_written(spark: SparkSession, tmp_path: Path) -> None:
    """Behind one commit of silver; behind two, and of a history, which has other states of a key, in the table."""
    tables = DeltaFormat(MergeThresholds(rewritten_bytes=0))
    at = Warehouse(tables, tables, JsonControl(spark), Lake(str(tmp_path)), 2.0, 0)
    shop = Shop(tuning.session_for(spark, 0), at)
    own = Model("own", "SELECT id, pieces FROM {lines}", {"lines": "s/db.lines"}, ("id",), (),
                lineage={"lines": ("id",)}, refresh=INCREMENTAL)  # fmt: skip
    shop.take("lines", (1, 10, 5), (2, 10, 6), (3, 20, 7))
    shop.refresh(own)
    for batches, from_feed in ((1, True), (2, False)):
        for batch in range(batches):
            shop.take("lines", (1, 10, 7 + batch), (2,), (3 + batches, 20, 1))
        with refresh_plan.prepare(shop.spark, own, at, {}) as task:
            files = task.uses["lines"].rows.inputFiles()
        assert all("_change_data" in file for file in files) is from_feed
        assert shop.why(own)[0] == "incremental"
    assert shop.rows(own) == [(1, 8), (3, 7), (4, 1), (5, 1)]
    given = ModelInput("s/db.lines__history", tables, at.lake.history("s", "db.lines"), "id", 1)
    assert changed_rows(shop.spark, given, View(shop.spark.range(1).toDF("id"), ("id",), ("id",)), given.place) is None


@pytest.mark.parametrize(
    ("moved", "key", "found"),
    [
        ({"lines"}, ("id",), {"id": [(1, 2)]}),
        ({"products"}, ("id",), None),
        ({"lines", "products"}, ("id",), None),
        ({"products"}, ("product",), {}),
        (set(), ("id",), None),
    ],
    ids=["the grain", "a look-up", "both", "a grain of which nobody knows where it lies", "nothing"],
)
def test_changed_keys_are_the_touched_rows_where_only_the_grain_changed(
    spark: SparkSession, moved: set[str], key: tuple[str, ...], found: dict[str, list[tuple[int, int]]] | None
) -> None:
    """Decision 0063: and then alone; they have the model's name for the key, and lie where the input's keys do."""
    lines, products = spark.range(3).toDF("line"), spark.range(2).toDF("code")
    uses = {
        "lines": InputUse(lines, ("line",), ("id",), lines if "lines" in moved else None, {"line": [(1, 2)]}),
        "products": InputUse(products, ("code",), ("product",), products if "products" in moved else None),
    }
    own = affected.affected_by_key(uses, key)
    assert (own and own[1]) == found
    assert own is None or own[0].columns == list(key)


def test_a_model_at_which_the_engine_fails_is_named_and_the_others_go_on(shop: Shop) -> None:
    """Whatever Spark says of one model's rows is an error of that model."""
    broken = replace(
        FACT,
        name="broken",
        sql="SELECT id, CAST(reflect('java.lang.Integer', 'parseInt', id || 'x') AS INT) AS product FROM {lines}",
    )
    broken = replace(broken, inputs={"lines": "s/db.lines"}, lineage={}, refresh="full")
    built = {each.model: each for each in shop.refresh(broken, FACT)}
    assert isinstance(built["broken"].error, TableStopped)
    assert str(built["broken"].error).startswith("ENGINE_FAILED: the engine failed: ")
    assert (built["broken"].error.where, built["fact"].error) == ("broken", None)
    assert len(shop.rows()) == 3


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "SELECT id, element_at(array(product), id - id) AS product FROM {lines}",
            "INVALID_INDEX_OF_ZERO, SQLSTATE 22",
        ),
        (
            "SELECT id, (SELECT id FROM {lines}) AS product FROM {lines}",
            "SCALAR_SUBQUERY_TOO_MANY_ROWS, SQLSTATE 21000",
        ),
        ("SELECT id, map_from_arrays(array(7, 7), array(id, id))[1] AS product FROM {lines}", "DUPLICATED_MAP_KEY, "),
    ],
    ids=["an index", "rows", "a key"],
)
def test_sql_that_refuses_a_value_of_some_row_is_told_without_it(shop: Shop, sql: str, told: str) -> None:
    """By Spark's name for it and its SQLSTATE, with what fixes it: another try would end so."""
    broken = replace(FACT, name="broken", sql=sql, inputs={"lines": "s/db.lines"}, lineage={}, refresh="full")
    [built] = shop.refresh(broken)
    assert isinstance(built.error, ValueRefused)
    assert f"an expression cannot be computed for some row ({told}" in built.error.what
    assert "7" not in built.error.what
    assert str(built.error.fix).startswith("Fix its SQL")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("assert_true(id < 0)", r"'\(id.* < 0\)' is not true!"),
        ("assert_true(id < 0, 'no such id')", "no such id"),
        ("raise_error('no such ' || array_sort(transform(array(id), e -> 'id'))[0])", "no such id"),
    ],
    ids=["a check", "a check with words", "an error"],
)
def test_sql_that_raises_an_error_of_its_own_is_told_in_its_words(shop: Shop, sql: str, told: str) -> None:
    """As with a value that is refused, the same rows come to the same end: another try cures nothing."""
    own = f"SELECT id, CAST({sql} AS INT) AS product FROM {{lines}}"
    [built] = shop.refresh(
        replace(FACT, name="own", sql=own, inputs={"lines": "s/db.lines"}, lineage={}, refresh="full")
    )
    assert isinstance(built.error, ValueRefused)
    assert re.search(f"an expression raises an error for some row: .*{told}", built.error.what)
