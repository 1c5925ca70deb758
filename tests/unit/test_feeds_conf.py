"""``conf/canonical``: what a feed may say, and what it must agree with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replicator import settings
from replicator.errors import ConfigError
from replicator.spec import Feed
from tests.cli import said

GOOD = "topic: cdm.orders\ntable: s/db.orders\n"
Load = Callable[..., tuple[Feed, ...]]


@pytest.fixture
def feeds(tmp_path: Path) -> Load:
    """Writes ``name=yaml`` beside a source ``s`` and a model ``dim``, and loads them."""

    def load(kafka: str = "kafka:9092", **given: str) -> tuple[Feed, ...]:
        files = {
            "dev.yaml": f'kafka: {{bootstrap_servers: "{kafka}", options: {{client.id: us}}}}\n',
            "sources/s.yaml": "name: s\ninclude: [db.orders]\n",
            "models/dim.sql": "SELECT id FROM {orders}",
            "models/dim.yaml": "key: [id]\ninputs: {orders: s/db.orders}\ncolumns: {id: integer}\n",
            **{f"canonical/{name}.yaml": text for name, text in given.items()},
        }
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        return settings.load(tmp_path, "dev", {"TOPIC": "cdm.x"}).feeds

    return load


def test_a_feed_has_what_its_file_says(feeds: Load) -> None:
    """Everything else from the shared Kafka; variables are filled."""
    more = "version: 2\nselect: {order: id, what: upper(name)}\nwhere: id > 1\ntombstones: true\ndescription: Orders.\n"
    first, second = feeds(
        a=GOOD + more + "every_change: true\noptions: {client.id: them}\n", b="topic: ${TOPIC}\ntable: dim\n"
    )
    assert first == Feed(
        "a", "cdm.orders", "s/db.orders", 2, (("order", "id"), ("what", "upper(name)")), "id > 1",
        every_change=True, tombstones=True, description="Orders.", bootstrap_servers="kafka:9092",
        options={"client.id": "them"},
    )  # fmt: skip
    assert (first.source, first.source_table) == ("s", "db.orders")
    assert (second.topic, second.source, second.version, second.options) == ("cdm.x", None, 1, {"client.id": "us"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("topic: cdm.x\ntable: dimm\n", "model 'dimm' does not exist; did you mean 'dim'"),
        ("topic: cdm.x\ntable: t/db.orders\n", "source 't' does not exist"),
        ("topic: cdm.x\ntable: s/db.order\n", "does not include 'db.order'"),
        ("topic: cdm.x\ntable: s/orders\n", "named <source>/<database or schema>.<table>"),
        ("topic: s.db.orders\ntable: dim\n", "the source 's' reads this topic"),
        ("topic: cdm orders\ntable: dim\n", "topic"),
        ("topic: cdm.x\ntable: dim\nevery_change: true\n", "a model has no records"),
        ("topic: cdm.x\ntable: dim\nselect: {a: id, A: id}\n", "which no table format keeps apart"),
        ("topic: cdm.x\ntable: dim\ntombstone: true\n", "did you mean 'tombstones'"),
        ("topic: cdm.x\ntable: dim\nversion: 0\n", "version"),
        ("topic: cdm.x\ntable: dim\noptions: {group.id: x}\n", "group.id"),
        ("topic: cdm.x\ntable: dim\nwhere: since > current_date()\n", "has current_date(), which is not deterministic"),
        ("topic: cdm.x\ntable: dim\nwhere: since > current_date\n", "has current_date, which is not deterministic"),
        ("topic: cdm.x\ntable: dim\nwhere: id IN (SELECT 1)\n", "where has a sub-query"),
        ("topic: cdm.x\ntable: dim\nselect: {n: count(id)}\n", "select of 'n' has count(), which is an aggregate"),
    ],
)
def test_what_cannot_be_right_is_refused(feeds: Load, text: str, told: str) -> None:
    """With the file, before anything starts."""
    with pytest.raises(ConfigError) as caught:
        feeds(a=text)
    assert told in str(caught.value)
    assert "a.yaml" in str(caught.value)


def test_two_feeds_have_two_topics_and_a_kafka(feeds: Load) -> None:
    """Else consumers could not tell their versions apart, or nobody knew where to write."""
    with pytest.raises(ConfigError, match="the feed 'a' already writes this topic"):
        feeds(a=GOOD, b=GOOD)
    with pytest.raises(ConfigError, match="no Kafka is configured to write to"):
        feeds(kafka="", a=GOOD)


def test_a_feed_is_not_blamed_for_the_mistakes_of_other_files(feeds: Load, tmp_path: Path) -> None:
    """A model whose file is wrong is there, and servers of settings that are wrong are not known to be missing."""
    feeds(a="topic: cdm.a\ntable: dim\n")
    for name, wrong in (("models/dim.yaml", "key: [idd]\n"), ("dev.yaml", "laek: {}\n")):
        path = tmp_path / name
        before = path.read_text()
        path.write_text(before + wrong if name == "dev.yaml" else before.replace("key: [id]\n", wrong))
        with pytest.raises(ConfigError) as caught:
            settings.load(tmp_path, "dev", {})
        path.write_text(before)
        assert name in str(caught.value)
        assert "a.yaml" not in str(caught.value)


def test_a_stage_without_feeds_and_a_feed_that_is_none_are_refused(feeds: Load, tmp_path: Path) -> None:
    """Before anything starts; the nearest name helps."""
    feeds(orders=GOOD)
    ours = "--conf", str(tmp_path), "--env", "dev"
    for verb in ("schema", "restart"):
        with pytest.raises(ConfigError, match="feed 'order' does not exist; did you mean 'orders'"):
            said("canonical", verb, "order", *ours)
    assert "canonical.orders" in said("config", "show", *ours)
    (tmp_path / "canonical/orders.yaml").unlink()
    with pytest.raises(ConfigError, match="no feed is configured"):
        said("run", "canonical", *ours)
    with pytest.raises(ConfigError, match="publish, canonical"):
        said("run", "canonicle", *ours)


def test_a_feed_is_restarted_in_a_lake_that_exists(feeds: Load, tmp_path: Path) -> None:
    """A mistyped root made a folder, and the feed was said to start over."""
    feeds(orders=GOOD)
    (tmp_path / "base.yaml").write_text(f"lake: {{root: {tmp_path / 'typo'}}}\n")
    with pytest.raises(ConfigError, match="there is no lake yet"):
        said("canonical", "restart", "orders", "--conf", str(tmp_path), "--env", "dev")
    assert not (tmp_path / "typo").exists()
