"""``replicator rebuild``: what is asked for is said before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from replicator.cli import rebuild
from replicator.errors import ConfigError
from replicator.operate.rebuilding.rebuild_result import WRITTEN, RebuildResult
from tests.cli import said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("orders", "--checkpoint", "shop"), "--checkpoint cannot be combined with tables or their options"),
        (("--all", "--checkpoint", "shop"), "--checkpoint cannot be combined with tables or their options"),
        (("orders", "--from", "t:0:1"), "--from and --yes are for --checkpoint"),
        (("--checkpoint", "shop", "--from", "t:0"), "'t:0' is not TOPIC:PARTITION:OFFSET"),
        (("--checkpoint", "ship"), "source 'ship' does not exist"),
        (("--checkpoint", "till"), "source till does not read from Kafka"),
    ],
)
def test_a_checkpoint_is_of_a_source_that_reads_kafka_and_made_alone(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    """Anything else is exit code 2, before a lease is taken and a JVM is there."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "base.yaml").write_text(f"lake: {{root: {tmp_path}}}\nkafka: {{bootstrap_servers: 'nowhere:9092'}}\n")
    (tmp_path / "sources" / "shop.yaml").write_text("name: shop\n")
    (tmp_path / "sources" / "till.yaml").write_text("name: till\nobjects: s3a://landed/till\n")
    with pytest.raises(ConfigError, match=told):
        said("rebuild", *words, "--conf", str(tmp_path), "--env", "base")


@pytest.mark.parametrize(
    ("differ", "dry", "word"),
    [
        ({"gone": 4, "of_deleted": 4}, False, "written (deleted rows alone)"),
        ({"gone": 3, "changed": 1, "of_deleted": 4}, True, "would be written (deleted rows alone)"),
        ({"gone": 4, "of_deleted": 3}, False, "written"),
        ({"gone": 4, "of_deleted": 4, "columns": ("a: int, now bigint",)}, False, "written"),
    ],
)
def test_where_deleted_rows_alone_differ_that_is_said(differ: dict[str, Any], dry: bool, word: str) -> None:
    """Nobody is shown another row, and nobody need look for the cause."""
    told = rebuild._to_row(RebuildResult("s/a.b", verdict=WRITTEN, **differ), dry=dry)
    assert (told["done"], told["gone"], told["of_deleted"]) == (word, differ["gone"], differ["of_deleted"])
