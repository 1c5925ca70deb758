"""Which tables of a lake a catalog is told of, and by what names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from replicator.catalog import catalog_tables
from replicator.cli.views import list_views
from replicator.errors import ConfigError
from replicator.lake import Lake

LAKE = Lake("s3a://bucket/lake")


def placed(*silver_tables: tuple[str, str], gold: Sequence[str] = ()) -> list[catalog_tables.CatalogTable]:
    made = [(source, name, LAKE.silver(source, name)) for source, name in silver_tables]
    models = [(model, LAKE.gold(model)) for model in gold]
    return catalog_tables.list_tables(made, models, list_views(made, models))


def test_a_table_has_the_shortest_name_that_is_its_own_in_lower_case() -> None:
    """The names of `sql`: the last part, or the long one where two have it."""
    every = placed(("S", "Db.Orders"), ("S", "a.t"), ("S", "b.T"), gold=["Fact"])
    assert {place.title: place.catalog_name for place in every} == {
        "silver/S/Db.Orders": "orders", "silver/S/a.t": "s__a__t", "silver/S/b.T": "s__b__t", "gold/Fact": "fact",
    }  # fmt: skip


def test_what_a_catalog_cannot_have_in_a_name_is_encoded_as_in_columns() -> None:
    """Athena takes letters, digits and `_`; the source's own name is found all the same."""
    every = placed(("s", "shop.Order Details"), ("s", "shop.a-b"), ("s", "shop.ü"), gold=["fact_orders"])
    assert [place.catalog_name for place in every] == ["order_x20_details", "a_x2d_b", "_xc3__xbc_", "fact_orders"]
    assert [place.name for place in catalog_tables.select_tables(every, None, ["Order Details"])] == [
        "shop.Order Details"
    ]


def test_tables_that_would_have_one_name_are_both_refused() -> None:
    """Whichever came last would hide the other: long names in two cases, a model called as a table of all rows."""
    every = placed(("s", "a.T"), ("s", "A.t"), ("s", "x.u"), gold=["u__all"])
    assert set(catalog_tables.collisions(every)) == {"silver/s/a.T", "silver/s/A.t", "silver/s/x.u", "gold/u__all"}
    assert "both be named s__a__t in lower case" in str(catalog_tables.collisions(every)["silver/s/a.T"])
    assert catalog_tables.collisions(placed(("s", "a.t"), gold=["m"])) == {}


def test_tables_are_chosen_by_source_or_by_name() -> None:
    """As other verbs take them; a name that nothing has is an error that lists what there is."""
    every = placed(("s", "a.t"), ("r", "a.u"), gold=["m"])

    def titles(source: str | None = None, *names: str) -> list[str]:
        return [place.title for place in catalog_tables.select_tables(every, source, names)]

    assert titles() == ["silver/s/a.t", "silver/r/a.u", "gold/m"]
    assert titles("r") == ["silver/r/a.u"]
    assert titles(None, "t", "m") == ["silver/s/a.t", "gold/m"]
    assert titles(None, "r/a.u") == titles(None, "a.u") == ["silver/r/a.u"]
    with pytest.raises(ConfigError, match=r"table 'x' does not exist.*Available: m, r/a[.]u, s/a[.]t[.]"):
        titles(None, "x")
    with pytest.raises(ConfigError, match=r"source 'x' does not exist.*Available: r, s"):
        titles("x")
