"""``replicator report`` on a lake of recorded events: what the page says is what the original rows add up to."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from replicator.cli import app
from replicator.config import modelfile
from replicator.config.yamlfile import Problems
from replicator.errors import ConfigError
from replicator.formats.delta import DeltaFormat
from replicator.operate.report import sales, star
from replicator.operate.runs import RunLog
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages import gold
from replicator.stages.models.warehouse import Warehouse
from replicator.stages.run_report import ReportLine
from tests.builders import exact_session, made
from tests.cli import said
from tests.golden.run import Run
from tests.golden.test_recordings import read_gz, stream

pytestmark = pytest.mark.spark

EVENTS = "datalake.cdc_events"
SQL = """
SELECT
  customer_id,
  order_id,
  item.product_id,
  item.quantity,
  CAST(item.quantity * item.unit_price * (1 - item.discount) AS decimal(18, 4)) AS revenue
FROM (
  SELECT customer_id, order_id, explode(from_json(order_items,
    'array<struct<product_id:int,unit_price:decimal(6,2),quantity:decimal(6,2),discount:decimal(6,2)>>')) AS item
  FROM {events})
"""
YAML = """
key: [order_id, product_id]
inputs: {events: demo/datalake.cdc_events}
columns:
  customer_id: {type: text}
  order_id: {type: integer}
  product_id: {type: integer}
  quantity: {type: "numeric(6,2)"}
  revenue: {type: "numeric(18,4)"}
"""


@pytest.fixture(scope="module")
def lake(spark: SparkSession, recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 829 original orders through bronze, silver, and a model of order lines, with a note of that run."""
    folder = tmp_path_factory.mktemp("report")
    told = json.loads(read_gz(recorded / "northwind.truth.json.gz"))["final"][EVENTS]["columns"]
    columns = tuple(Column(column["name"], column["type"]) for column in told)
    source = SourceSpec("demo", "demo.*", tables=(Declaration(EVENTS, columns),))
    run = Run(exact_session(spark), folder, source, memory=False)
    records = stream(recorded, "northwind.demo")[:829]
    run.take([*records, records[0] | {"offset": 829, "key": None}])
    (folder / "lines.sql").write_text(SQL, encoding="utf-8")
    (folder / "lines.yaml").write_text(YAML, encoding="utf-8")
    problems = Problems()
    models = modelfile.load_models(folder, [source], None, {}, problems)
    [built] = gold.refresh(spark, models, Warehouse(run.at.silver, DeltaFormat(), run.at.control, run.at.lake))
    assert built.error is None
    log = RunLog(run.at.control, run.at.lake, "run silver")
    log.add(ReportLine("silver", f"demo/{EVENTS}", 830, 829, 0, 1, {}, 1.0))
    log.close()
    return folder / "lake"


def figures(page: str) -> dict[str, str]:
    """The tiles of a page, by name."""
    return dict(re.findall(r'<dd data-figure="([\w-]+)">([^<]*)</dd>', page))


def cells(page: str, table: str) -> list[list[str]]:
    """The rows of a table, their cells as texts."""
    body = re.search(rf'<table id="{table}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    assert body is not None, table
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", body.group(1))]


def test_the_page_has_the_figures_of_the_original_rows(lake: Path, tmp_path: Path) -> None:
    """To the cent, in decimals: 1,265,294.9395 in all, 63.1 % of it with the top twenty."""
    path = tmp_path / "report.html"
    assert said("report", "--lake", str(lake), "--output", str(path)) == f"{path}\n"
    page = path.read_text(encoding="utf-8")
    wanted = {"revenue": "1,265,294.94", "customers": "89", "orders": "829", "lines": "2,152", "share": "63.1\xa0%"}
    assert figures(page) == wanted
    assert "798,305.03" in page
    customers = {row[0]: row[1:] for row in cells(page, "all-customers")}
    assert customers["QUICK"] == ["110,277.31", "8.7\xa0%", "28", "86", "46.06", "1,282.29"]
    assert customers["ERNSH"] == ["104,874.98", "8.3\xa0%", "30", "102", "44.54", "1,028.19"]
    assert customers["SAVEA"] == ["104,361.95", "8.2\xa0%", "31", "116", "42.74", "899.67"]
    assert customers["SIMOB"] == ["16,817.10", "1.3\xa0%", "7", "15", "25.20", "1,121.14"]
    ranked = [row[0] for row in cells(page, "largest-customers")]
    assert ranked == ["QUICK", "ERNSH", "SAVEA", "RATTC", "HUNGO", "HANAR", "KOENE", "FOLKO", "MEREP", "WHITC"]
    assert "Few orders, high-priced items: SIMOB, HANAR, PICCO, HUNGO, MEREP." in page
    assert 'id="star-left-out"' in page
    rows = {tuple(row[:2]): row[2:5] for row in cells(page, "tables")}
    assert rows["bronze", "demo"][0] == "830"
    assert rows["silver", f"demo/{EVENTS}"] == ["829", "0", "0"]
    assert rows["gold", "lines"][0] == "2,152"
    assert [row[:3] for row in cells(page, "letters")] == [["key_missing", f"demo/{EVENTS}", "1"]]
    assert [row[1:5] for row in cells(page, "runs")] == [["run silver", "0", "829", "1"]]
    assert [row[1:] for row in cells(page, "batches-table")] == [["1", "830"]]


def test_a_broken_table_is_named_and_the_page_has_the_rest(lake: Path, tmp_path: Path) -> None:
    """One table must not stop the page: it is named there and on stderr, and the exit code is 1."""
    copy = tmp_path / "lake"
    shutil.copytree(lake, copy)
    for file in (copy / "gold" / "lines").glob("*.parquet"):
        file.unlink()
    path = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", "--lake", str(copy), "--output", str(path), "--json"])
    assert done.exit_code == 1
    assert [trouble["table"] for trouble in json.loads(done.stdout)["troubles"]] == ["gold lines"]
    assert "gold lines: " in done.stderr
    page = path.read_text(encoding="utf-8")
    assert "<strong>gold lines</strong>" in page
    assert 'id="sales-left-out"' in page
    assert ["silver", f"demo/{EVENTS}", "829"] in [row[:3] for row in cells(page, "tables")]


def test_no_folder_is_made_for_a_page(lake: Path, tmp_path: Path) -> None:
    """A misspelt folder is told before the lake is asked."""
    with pytest.raises(ConfigError, match="cannot be written"):
        said("report", "--lake", str(lake), "--output", str(tmp_path / "nowhere" / "report.html"))


def test_totals_are_of_all_customers_however_many_are_shown(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page names the largest; those it does not name are in every sum, and a line without figures is a line."""
    monkeypatch.setattr(sales, "MOST_CUSTOMERS", 1)
    rows = [
        ("a", 1, 2, Decimal("0.1")),
        ("a", 1, None, None),
        ("a", 2, 1, Decimal("0.2")),
        (None, 3, 4, Decimal("0.05")),
    ]
    lines = made(spark, rows, "customer_id string, order_id int, quantity int, revenue decimal(18,4)")
    found = sales.build("m", lines)
    assert found.total == sales.Total(2, Decimal("0.35"), 3, 4)
    assert found.customers == (sales.Customer("a", Decimal("0.3"), 2, 3, Decimal(3)),)


def test_a_fact_without_its_dimension_row_stays_in_the_sums(spark: SparkSession) -> None:
    """The parts add up to the whole, in decimals, whatever the dimensions lack."""
    customers = made(spark, [(1, "Spain")], "customer_key int, country string")
    products = made(spark, [("a", "Ships")], "product_key string, product_line string")
    ddl = (
        "order_key int, customer_key int, product_key string, order_date date, quantity_ordered int, "
        "product_price decimal(10,2), profit decimal(12,2)"
    )
    rows = [
        (1, 1, "a", dt.date(2003, 1, 6), 3, Decimal("0.10"), Decimal("0.01")),
        (1, 1, "b", dt.date(2003, 1, 6), 1, Decimal("9.99"), Decimal("-1.00")),
        (2, 2, "a", dt.date(2003, 2, 1), 2, Decimal("5.05"), Decimal("2.00")),
    ]
    found = star.build(customers, products, made(spark, rows, ddl))
    assert (found.customers, found.products, found.whole.orders, found.whole.lines) == (1, 1, 2, 3)
    assert (found.whole.quantity, found.whole.revenue, found.whole.profit) == (
        Decimal(6),
        Decimal("20.39"),
        Decimal("1.01"),
    )
    assert {part.name: part.revenue for part in found.product_lines} == {
        "Ships": Decimal("10.4"),
        None: Decimal("9.99"),
    }
    assert {part.name: part.lines for part in found.countries} == {"Spain": 2, None: 1}
    assert [(part.name, part.orders) for part in found.months] == [("2003-01", 1), ("2003-02", 1)]
