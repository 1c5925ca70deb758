"""Where things lie."""

from __future__ import annotations

import pytest

from replicator import names
from replicator.lake import Lake, Shadow

LAKE = Lake("s3a://bucket/lake/")


def test_every_layer_has_its_folder() -> None:
    """Architecture section 4, from one root; a slash at its end changes nothing."""
    root = "s3a://bucket/lake"
    assert LAKE.bronze("dbserver1").location == f"{root}/bronze/dbserver1"
    assert LAKE.silver("dbserver1", "shop.orders").location == f"{root}/silver/dbserver1/shop.orders"
    assert LAKE.history("dbserver1", "shop.orders").location == f"{root}/history/dbserver1/shop.orders"
    assert LAKE.gold("fact_orders").location == f"{root}/gold/fact_orders"
    assert LAKE.dead_letters("dbserver1").location == f"{root}/dead_letters/dbserver1"
    assert LAKE.dropped_letters("dbserver1").location == f"{root}/_replicator/dropped_letters/dbserver1"
    assert LAKE.lease("silver") == f"{LAKE.leases_root()}/silver.json" == f"{root}/_replicator/leases/silver.json"
    assert LAKE.token() == f"{root}/_replicator/leases/token.json"
    assert LAKE.checkpoint("dbserver1") == f"{root}/_replicator/checkpoints/dbserver1"
    assert Lake("s3a://bucket/lake") != LAKE
    assert Lake("s3a://bucket/lake").bronze("a") == LAKE.bronze("a")


def test_a_shadow_has_other_places_for_what_is_of_one_table_alone() -> None:
    """All that a rebuild writes lies below one folder, which tells its table; the rest is the lake's."""
    shadow, aside = Shadow(LAKE.root, "s", "a.b c"), "s3a://bucket/lake/_replicator/rebuild"
    one = "s.a.b_x20_c"
    assert shadow.silver("s", "a.b c", ("k",)).location == f"{aside}/silver/{one}"
    assert shadow.silver("s", "a.b c", ("k",)).name == "s/a.b c"
    assert shadow.history("s", "a.b c").location == f"{aside}/history/{one}"
    assert shadow.dead_letters("s").location == f"{aside}/dead_letters/{one}"
    for path in (shadow.schema, shadow.truncates, shadow.horizon):
        assert path("s", "a.b c").startswith(f"{aside}/")
        assert path("s", "a.d") == getattr(LAKE, path.__name__)("s", "a.d")
    assert LAKE.rebuild("s", "a.b c") == f"{aside}/{one}.json"
    assert set(LAKE.shadow_roots()) == {f"{aside}/{kind}" for kind in ("silver", "history", "dead_letters")}
    assert (shadow.silver("s", "a.d"), shadow.bronze("s")) == (LAKE.silver("s", "a.d"), LAKE.bronze("s"))
    assert (shadow.routes("s"), shadow.epochs("s")) == (LAKE.routes("s"), LAKE.epochs("s"))


def test_no_name_leaves_its_folder() -> None:
    """A source, table or model called ../x is a folder like any other."""
    for location in (
        LAKE.bronze("../x").location,
        LAKE.silver("../x", "a/.b/../c").location,
        LAKE.history("../x", "a/.b/../c").location,
        LAKE.gold("../x").location,
        LAKE.inputs("../x", 1),
        LAKE.routes("../x"),
        LAKE.dropped_letters("../x").location,
        LAKE.truncates("../x", "a/.b/../c"),
        LAKE.schema("../x", "a/.b/../c"),
        LAKE.horizon("../x", "a/.b/../c"),
        LAKE.verified("source", "../x", "a/.b/../c"),
    ):
        assert "../" not in location


def test_a_folder_tells_which_table_it_holds() -> None:
    """Silver's tables are found by listing folders."""
    location = LAKE.silver("s", "h.Odd Names.é").location
    assert names.decode_table(location.removeprefix(f"{LAKE.silver_root('s')}/")) == "h.Odd Names.é"


def test_bronze_is_one_table_per_source_partitioned_by_topic() -> None:
    """Tables find their records without reading those of others."""
    assert LAKE.bronze("s").partition_by == ("topic",)


def test_a_row_keeps_the_keys_that_it_is_given() -> None:
    """Silver and gold by their own key, dead letters by their Kafka place."""
    assert LAKE.silver("s", "a.b", ("id",)).keys == ("id",)
    assert LAKE.gold("m", ("id", "part")).keys == ("id", "part")
    assert LAKE.dead_letters("s").keys == ("topic", "partition", "offset")


@pytest.mark.parametrize(
    ("root", "local"),
    [("/data/lake", True), ("file:///data/lake", True), ("lake", True), ("s3a://b/p", False), ("hdfs://n/p", False)],
)
def test_a_lake_knows_whether_it_is_local(root: str, local: bool) -> None:
    """Lock files hold on a local disk only."""
    assert Lake(root).is_local() is local
