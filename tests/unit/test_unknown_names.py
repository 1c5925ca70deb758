"""Names that nobody knows are refused by every verb, with the nearest that there is; an answer of nothing would be read
as "all is well".
"""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from replicator import spelling
from replicator.errors import ConfigError
from replicator.lake import Lake
from replicator.operate.verify.marks import Mark
from replicator.stages.tick.routing import Routes
from tests.cli import said


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A lake with records of one source, which has two tables and no dead letters."""
    lake = Lake(str(tmp_path))
    deltalake.write_deltalake(lake.bronze("shop").location, pa.table({"topic": ["shop.sales.orders"]}))
    identity = str(deltalake.DeltaTable(lake.bronze("shop").location).metadata().id)
    carried = Routes(identity, {f"shop.sales.{table}": (f"sales.{table}",) for table in ("orders", "items")})
    routes = Path(lake.routes("shop"))
    routes.parent.mkdir(parents=True)
    routes.write_text(json.dumps(carried.value()), encoding="utf-8")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("epoch", "show", "shp"), "source 'shp' does not exist; did you mean 'shop'"),
        (("dead-letters", "list", "--source", "shp"), "source 'shp' does not exist; did you mean 'shop'"),
        (("dead-letters", "list", "--table", "order"), "table 'order' does not exist; did you mean 'orders'"),
        (
            ("dead-letters", "list", "--table", "sale.items"),
            "table 'sale.items' does not exist; did you mean 'sales.items'",
        ),
        (
            ("dead-letters", "list", "--reason", "key_mising"),
            "reason 'key_mising' does not exist; did you mean 'key_missing'",
        ),
    ],
    ids=["epoch", "source", "table", "full table", "reason"],
)
def test_an_unknown_name_is_refused(root: str, arguments: tuple[str, ...], nearest: str) -> None:
    """A matter of usage (exit code 2), told without Spark where the answer needs none."""
    with pytest.raises(ConfigError, match=nearest):
        said(*arguments, "--lake", root)


def test_letters_of_a_table_are_asked_for_by_its_whole_name(root: str) -> None:
    """As ``status`` and a run's lines print it: of several sources whose tables have one name that is the only way."""
    assert json.loads(said("dead-letters", "list", "--table", "shop/sales.items", "--json", "--lake", root)) == []
    for arguments, refused in (
        (("--table", "shp/sales.items"), "source 'shp' does not exist; did you mean 'shop'"),
        (("--table", "shop/sales.itms"), "table 'sales.itms' does not exist; did you mean 'sales.items'"),
        (("--table", "shop/sales.items", "--source", "crm"), "is not a table of the source crm"),
        (("--table", "sales.a/b"), "table 'sales.a/b' does not exist"),
    ):
        with pytest.raises(ConfigError, match=refused):
            said("dead-letters", "list", *arguments, "--lake", root)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("custmers", "'shop/public.customers'"),
        ("public.custmer", "'shop/public.customers'"),
        ("shp/public.customers", "'shop/public.customers'"),
        ("item", "'crm/sales.items' or 'shop/sales.items'"),
        ("fact_order", "'fact_orders'"),
    ],
)
def test_a_table_is_meant_by_its_last_part_too(word: str, meant: str) -> None:
    """However long the names are of its source and its schema; of several with the same part all are named."""
    known = ("shop/public.customers", "shop/sales.items", "crm/sales.items", "fact_orders", "shop/operations.lines")
    assert spelling.did_you_mean_table(word, known) == f"; did you mean {meant}?"
    assert spelling.did_you_mean_table("nothing like it", known) == ""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("epoch", "bump", "shp", "--reason", "restored"), "source 'shp' does not exist; did you mean 'shop'"),
        (("dead-letters", "list", "--rows", "--reason", "key_mising"), "did you mean 'key_missing'"),
        (("dead-letters", "retry", "--table", "order"), "table 'order' does not exist; did you mean 'orders'"),
        (("dead-letters", "drop", "--table", "order", "--yes"), "table 'order' does not exist; did you mean 'orders'"),
        (("verify", "order", "--show"), "table 'order' does not exist; did you mean 'shop/sales.orders'"),
        (("rebuild", "itmes"), "table 'itmes' does not exist; did you mean 'shop/sales.items'"),
        (("explain", "sale.order", "id=1"), "table 'sale.order' does not exist; did you mean 'shop/sales.orders'"),
        (("tables", "pause", "ordrs"), "table 'ordrs' does not exist; did you mean 'shop/sales.orders'"),
        (("maintain", "ordrs"), "table 'ordrs' does not exist; did you mean 'shop/sales.orders'"),
        (("diff", "ordrs", "--from", "0"), "table 'ordrs' does not exist; did you mean 'orders'"),
        (("catalog", "ddl", "ordrs"), "table 'ordrs' does not exist; did you mean 'shop/sales.orders'"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_spark_refuses_it_too(spark: object, root: str, arguments: tuple[str, ...], nearest: str) -> None:
    """Verbs that write, and those that look at rows."""
    assert spark is not None
    for table in ("sales.orders", "sales.items"):
        deltalake.write_deltalake(Lake(root).silver("shop", table).location, pa.table({"id": [1]}))
    with pytest.raises(ConfigError, match=nearest):
        said(*arguments, "--lake", root)


def test_a_known_name_of_which_there_is_nothing_is_no_mistake(root: str) -> None:
    """A source that never started anew, a table and a reason without letters."""
    assert said("epoch", "show", "shop", "--lake", root) == ""
    for chosen in (("--table", "orders"), ("--table", "sales.items"), ("--reason", "key_missing")):
        assert said("dead-letters", "list", *chosen, "--lake", root) == ""


def test_marks_of_verify_are_those_that_were_asked_for() -> None:
    """By layer, table, what it was compared with and source; a model is of no source."""
    layers = ("source", "twins", "gold", "target")
    table = Mark("source", "shop/sales.orders", "mysql", "", "", 1, "")
    model = Mark("target", "fact_orders", "warehouse", "", "", 1, "")
    assert table.matches(layers, None, None, None)
    assert table.matches(layers, ["shop/sales.items", "shop/sales.orders"], "mysql", "shop")
    for other in ((("gold",), None, None, None), (layers, ["shop/sales.items"], None, None)):
        assert not table.matches(*other)
    assert not table.matches(layers, None, "hudi", None)
    assert not table.matches(layers, None, None, "shop2")
    assert model.matches(layers, ["fact_orders"], None, "shop")
