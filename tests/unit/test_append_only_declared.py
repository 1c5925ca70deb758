"""What may be declared of an append-only table, and what is said of one where nothing has been read yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.config import sourcefile
from replicator.databases.readiness.finding import apply_declarations, no_primary_key, unsigned_bigint
from replicator.errors import ConfigError
from replicator.spec import Column, Declaration, SourceSpec
from replicator.stages.table import missing_rows


def declared(folder: Path, table: str, source: str = "name: shop\n") -> tuple[Declaration, ...]:
    file = folder / "declared.yaml"
    file.write_text(f"{source}tables:\n  shop.log: {{append_only: true{table}}}\n", encoding="utf-8")
    return sourcefile.load_declare_file(file).tables


def test_a_table_is_declared_append_only(tmp_path: Path) -> None:
    """In a source's file and in a --declare file; updates and deletes may be ignored beside it."""
    assert [told.append_only for told in declared(tmp_path, "")] == [True]
    for more in (", outbox: log, columns: {a: int}", ", transform: {mask: [a]}"):
        assert [told.append_only for told in declared(tmp_path, more, "")] == [True]


@pytest.mark.parametrize(
    ("table", "source", "said"),
    [
        (", keys: [a]", "", "append_only and keys cannot be combined"),
        (", stored_as_scd_type: 2", "", "append_only and stored_as_scd_type: 2 cannot be combined"),
        (", shards: 'shop.log_.*', shard_column: s, truncate: ignore", "", "append_only and shards"),
        (", compacted_topic: true", "", "append_only and compacted_topic"),
        (", outbox: current", "", "append_only and outbox"),
        ("", "name: shop\ncompacted_topic: true\n", "append_only and compacted_topic"),
        ("", "name: shop\noutbox: router\n", "append_only and outbox"),
        (", columns: {_change: int}", "", "_change is reserved in an append-only table"),
        (", transform: {hash: [_change]}", "", "_change is the key of an append-only table"),
        (", transform: {rename: {a: _change}}", "", "_change is the key of an append-only table"),
    ],
)
def test_what_it_cannot_be_as_well_is_refused(tmp_path: Path, table: str, source: str, said: str) -> None:
    """Each with the key and the reason, where the file is read."""
    with pytest.raises(ConfigError, match=said):
        declared(tmp_path, table, source)


def test_a_source_is_ready_where_its_file_says_what_was_found() -> None:
    """C1: declared `keys`, `append_only` and `unsigned` are what was advised, so nothing is left to fix; but a table
    of PostgreSQL still has to send its updates. Of others both ways out are named.
    """
    declared = (
        Declaration("shop.log", append_only=True),
        Declaration("shop.keyed", (Column("n", "bigint", unsigned=True), Column("m", "bigint")), keys=("n", "m")),
        Declaration("shop.mute", keys=("n",)),
    )
    mute = no_primary_key("shop.mute", "shop.mute", also=", and: ALTER TABLE shop.mute REPLICA IDENTITY FULL;")
    keyed = [no_primary_key(f"shop.{name}", f"shop.{name}") for name in ("log", "keyed", "other")]
    found = apply_declarations(
        [*keyed, mute, unsigned_bigint("shop.keyed", "n"), unsigned_bigint("shop.keyed", "m")], declared
    )
    assert [(each.level, each.table) for each in found] == [
        ("ok", "shop.log"), ("ok", "shop.keyed"), ("fix", "shop.other"),
        ("fix", "shop.mute"), ("ok", "shop.keyed"), ("advice", "shop.keyed"),
    ]  # fmt: skip
    assert "`keys`, or `append_only`" in found[2].fix


def test_a_snapshot_does_not_say_which_of_its_rows_are_gone() -> None:
    """D7: nothing is removed for want of being mentioned."""
    source = SourceSpec("shop", ".*", tables=(Declaration("shop.log", append_only=True),))
    assert "append_only" in (missing_rows.find_obstacle(source, "shop.log") or "")
