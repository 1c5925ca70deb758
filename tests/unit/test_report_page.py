"""The page of ``replicator report`` from figures made by hand: what it says, and what it lets nobody do."""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from replicator.cli import app
from replicator.errors import ConfigError
from replicator.operate.dead_letters import Count
from replicator.operate.progress.attempts import UnreadableTable
from replicator.operate.progress.table_status import TableStatus
from replicator.operate.report import formatting, page, sales_charts
from replicator.operate.report.collect import Report
from replicator.operate.report.health import Batch, Health, timeline
from replicator.operate.report.palette import DARK, LIGHT, Palette, contrast, text_on
from replicator.operate.report.sales import Customer, Sales, Total
from replicator.operate.report.star import Part, Star
from replicator.operate.runs import Entry, Run

NOW = dt.datetime(2026, 11, 22, 14, 5, 9, tzinfo=dt.timezone.utc)
HOSTILE = """</script><script>document.title="taken"</script><img src=x onerror="document.title='taken'"><b>&amp;"""
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def customer(id_: str | None, revenue: str, orders: int = 1, lines: int = 1, quantity: str = "1") -> Customer:
    return Customer(id_, Decimal(revenue), orders, lines, Decimal(quantity))


def sales(*customers: Customer) -> Sales:
    """Of a model that has no other customers."""
    revenue = sum((each.revenue for each in customers), Decimal(0))
    orders, lines = sum(each.orders for each in customers), sum(each.lines for each in customers)
    return Sales("order_items", Total(len(customers), revenue, orders, lines), customers)


SALES = sales(
    customer("BIG", "110277.305", 28, 86, "3961"),
    customer(HOSTILE, "2000.1", 3, 2, "9"),
    customer("SMALL", "0.005", 2, 7, "20"),
    customer(None, "0"),
)


def part(name: str | None, revenue: str) -> Part:
    return Part(name, 1, 2, Decimal(3), Decimal(revenue), Decimal("0.5"))


STAR = Star(
    2,
    1,
    part(None, "12.5"),
    (part(HOSTILE, "12.5"),),
    (part("Spain", "12"), part(None, "0.5")),
    (part("2003-01", "12.5"),),
)
HEALTH = Health(
    (
        TableStatus("bronze", "shop", 5, "version 1", 7, 31.0, newest_ms=1_700_000_000_000),
        TableStatus("silver", "shop/sales.orders", 4, "0", None, None, 1, 1_700_000_000_000, unknown=2),
        TableStatus("silver", HOSTILE, 3, "0", 2, 60.0, 0, 1_700_000_061_000),
        TableStatus("publish", "star.orders", None, "unreachable"),
    ),
    timeline([Batch("shop", NOW, 5)]),
    (Count("shop", None, "malformed_json", 3, NOW, NOW),),
    (Run("r", "run", NOW.isoformat(timespec="seconds"), None, (Entry("silver", HOSTILE, 1, 5, error="no"),)),),
)
FULL = Report(HOSTILE, NOW, SALES, STAR, HEALTH, (UnreadableTable("gold " + HOSTILE, HOSTILE),))
EMPTY = Report("shop-lake", NOW, None, None, Health())


class Parsed(HTMLParser):
    """What a browser would see: every element with its attributes, scripts and styles apart, all other text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.texts: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, _tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside][-1] += data
        else:
            self.texts.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


@pytest.fixture(scope="module")
def full() -> Parsed:
    return Parsed(page.html(FULL))


def test_names_from_the_data_are_text_and_never_markup(full: Parsed) -> None:
    """A customer, table, lake or error called like a script is shown as it is called."""
    assert (full.count("script"), full.count("img"), full.count("b")) == (3, 0, 0)
    told = sum(HOSTILE in text for text in full.texts)
    assert told == len(("title", "lake", "broken table", "why", "customer", "product line", "table", "stopped table"))
    assert not [name for _, attributes in full.elements for name in attributes if name.startswith("on")]
    assert "<" not in full.raw["script"][0]


def test_names_from_the_data_are_no_markup_of_the_charts_either(full: Parsed) -> None:
    """Plotly reads tags in every text: names come to it escaped."""
    drawn = json.loads(full.raw["script"][0])["light"]
    assert [each["name"] for each in drawn][:2] == ["revenue-by-customer", "quantity-and-revenue"]
    assert "</script>" not in json.dumps(drawn)
    assert drawn[0]["figure"]["data"][0]["customdata"][1].startswith("<b>&lt;/script&gt;")


def test_nothing_is_loaded_from_anywhere(full: Parsed) -> None:
    """The page is one file: no element, style or policy of it reaches out."""
    loading = {"src", "href", "srcset", "data", "action", "poster", "formaction", "background", "ping", "manifest"}
    assert not [found for _, attributes in full.elements for found in attributes.items() if found[0] in loading]
    assert full.count("link") + full.count("iframe") + full.count("object") + full.count("base") == 0
    assert not re.search(r"url\(|@import|https?:", "".join(full.raw["style"]))
    [policy] = [a["content"] for _, a in full.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy).startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-")
    assert "unsafe-eval" not in str(policy)


def test_what_a_lake_does_not_have_is_left_out_with_what_would_bring_it() -> None:
    """A line per missing part, and no chart."""
    parsed = Parsed(page.html(EMPTY))
    left_out = [a["id"] for _, a in parsed.elements if a.get("class") == "left-out"]
    assert left_out == ["sales-left-out", "star-left-out", "health-left-out"]
    assert "customer_id, order_id, quantity, revenue" in "".join(parsed.texts)
    assert json.loads(parsed.raw["script"][0]) == {"dark": [], "light": []}


def test_every_chart_has_a_name_for_those_who_do_not_see_it_and_a_table(full: Parsed) -> None:
    """As many drawings as places for them, each with what it shows in words."""
    places = [a for _, a in full.elements if a.get("role") == "img"]
    assert [a["id"] for a in places] == [each["name"] for each in _by_place(full)]
    assert all(len(str(a["aria-label"])) > 30 for a in places)
    assert "unreachable" in full.texts
    tables = {str(a.get("id")) for tag, a in full.elements if tag == "table"}
    assert {"largest-customers", "product-lines-table", "countries-table", "months-table", "batches-table"} <= tables


def _by_place(parsed: Parsed) -> list[dict[str, object]]:
    order = [a["id"] for _, a in parsed.elements if a.get("class") == "chart"]
    drawn = {each["name"]: each for each in json.loads(parsed.raw["script"][0])["dark"]}
    assert set(order) == set(drawn)
    return [drawn[name] for name in order]


def test_figures_of_any_size_have_a_text() -> None:
    """Sums of 38 digits, and a time that a source counts in microseconds: the page is made all the same."""
    assert formatting.money(Decimal("9" * 36 + ".995")) == "1" + ",000" * 12 + ".00"
    assert formatting.from_ms(1_700_000_000_000_000) == "1700000000000000 ms since 1970"
    huge = TableStatus("silver", "t", 1, "", newest_ms=1 << 63)
    text = page.html(Report("/lake", NOW, sales(customer("a", "9" * 36)), None, Health((huge,))))
    assert text.count(f"{1 << 63} ms since 1970") == 2


def test_sums_are_exact_and_halves_are_rounded_up() -> None:
    """The page's total is that of the rows to the last digit; half a cent is a cent."""
    assert SALES.total.revenue == Decimal("112277.410")
    assert formatting.money(SALES.customers[0].revenue) == "110,277.31"
    assert formatting.number(SALES.customers[0].average_quantity, 2) == "46.06"
    assert formatting.money(SALES.customers[0].average_revenue) == "1,282.29"
    assert formatting.money(SALES.customers[2].revenue) == "0.01"
    assert formatting.percent(SALES.share(1)) == "98.2\xa0%"
    assert sales().share(20) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, formatting.NOTHING), (0.2, "0 s"), (62, "1 min 2 s"), (7325, "2 h 2 min"), (90_000, "1 d 1 h")],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: float | None, text: str) -> None:
    """A table that is a day behind needs no seconds."""
    assert formatting.span(seconds).replace("\xa0", " ") == text


def test_the_promising_have_the_dearest_lines_beside_the_largest() -> None:
    """Few orders, dear items: by revenue per line, without those that are the largest anyway."""
    lines = {"a": ("900", 1), "b": ("800", 100), "c": ("700", 10), "d": ("600", 2), "e": ("500", 50)}
    found = sales(*[customer(name, revenue, lines=count) for name, (revenue, count) in lines.items()])
    assert [each.id for each in found.promising(2, beside=1)] == ["d", "c"]


def test_the_pie_holds_all_revenue() -> None:
    """The twenty largest have a slice each, all others one together."""
    found = sales(*[customer(f"c{at}", str(100 - at)) for at in range(30)])
    [pie, _] = sales_charts.build(found, LIGHT)
    [data] = pie.figure["data"]
    assert len(data["values"]) == 21
    assert data["values"][-1] == sum(100 - at for at in range(20, 30))
    assert sum(data["values"]) == float(found.total.revenue)
    assert "10 others" in data["customdata"][-1]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_can_be_told_apart(palette: Palette) -> None:
    """WCAG 2: 4.5 to 1 for texts, 3 for marks and for texts on them."""
    for text in (palette.ink, palette.faint, palette.bad, palette.first):
        assert min(contrast(text, palette.page), contrast(text, palette.card)) >= 4.5
    for mark in (palette.first, palette.first_soft, palette.second, palette.rest):
        assert contrast(mark, palette.card) >= 3
        assert contrast(text_on(mark, palette), mark) >= 4.5


def test_batches_are_counted_in_few_even_spans_without_a_gap() -> None:
    """Sixty bars at most; a pause is an empty one; nothing is lost."""
    batches = [Batch("s", NOW + dt.timedelta(seconds=31 * at), 2) for at in range(0, 200, 2)]
    found = timeline(batches)
    assert len(found.buckets) <= 60
    assert sum(bucket.records for bucket in found.buckets) == 200
    assert sum(bucket.batches for bucket in found.buckets) == 100
    steps = {after.since - before.since for before, after in zip(found.buckets, found.buckets[1:], strict=False)}
    assert steps == {found.width}
    assert timeline([]).buckets == ()


def test_a_hop_adds_up_its_tables_and_says_which_do_not_know() -> None:
    """What waits is summed, its age is the greatest; a table that nobody can count is not taken for one without lag."""
    bronze, silver, target = HEALTH.hops
    assert (target.behind, target.unknown) == (None, 1)
    assert (bronze.behind, bronze.seconds, bronze.unknown) == (7, 31.0, 0)
    assert (silver.behind, silver.seconds, silver.unknown, silver.tables) == (2, 60.0, 1, 2)
    assert formatting.from_ms(silver.newest_ms) == "2023-11-14 22:14:21 UTC"


def test_a_missing_library_is_told_with_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked of a lake."""
    for name in [name for name in sys.modules if name.startswith("replicator.operate.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    done = CliRunner().invoke(app, ["report", "--lake", "nowhere"])
    assert isinstance(done.exception, ConfigError)
    assert "lakehouse-replicator[report]" in str(done.exception)


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Parsed]:
    """A page as a browser has it after its scripts ran."""
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    folder = tmp_path_factory.mktemp("browser")

    def dom(report: Report, *flags: str) -> Parsed:
        path = folder / "page.html"
        path.write_text(page.html(report), encoding="utf-8")
        quiet = ("disable-gpu", "disable-quic", "no-first-run", "disable-background-networking")
        still = ("disable-component-update", "disable-sync", "virtual-time-budget=20000", "host-resolver-rules=MAP * 0")
        options = [f"--{flag}" for flag in ("headless", "no-sandbox", *quiet, *still, *flags)]
        done = subprocess.run(
            [BROWSER, *options, f"--user-data-dir={folder}/profile", "--dump-dom", path.as_uri()],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return Parsed(done.stdout)

    return dom


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_browser_draws_every_chart(browse: Callable[..., Parsed], full: Parsed, theme: str) -> None:
    """No script fails, nothing breaks the page's own policy; each chart is there, in the theme's colours, and shows
    names that look like markup as they are.
    """
    found = browse(FULL, *(("blink-settings=preferredColorScheme=0",) if theme == "dark" else ()))
    [root] = [attributes for tag, attributes in found.elements if tag == "html"]
    assert (root["data-charts"], root["data-theme"]) == ("drawn", theme)
    classes = [str(attributes.get("class")) for _, attributes in found.elements]
    assert sum("js-plotly-plot" in each for each in classes) == 6
    assert classes.count("slice") == len(SALES.customers)
    orange = (DARK if theme == "dark" else LIGHT).second
    written_so = ", ".join(str(int(orange[at : at + 2], 16)) for at in (1, 3, 5))
    assert any(f"fill: rgb({written_so})" in str(attributes.get("style")) for _, attributes in found.elements)
    assert {"112,277.41", "110,277.31", "1,282.29", "BIG", "98.2\xa0%"} <= set(found.texts)
    assert (found.count("script"), found.count("img")) == (3, 0)
    assert not any(text == "taken" for text in found.texts)
    drawn = [text for text in found.texts if text.startswith(HOSTILE[:23]) and text not in full.texts]
    assert drawn == [HOSTILE[:23] + "…"] * len(("dot of the customer", "bar of the product line"))
