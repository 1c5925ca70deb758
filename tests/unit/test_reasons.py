"""Every reason for a dead letter has words, and every rule for an ignored record."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from replicator.debezium import reasons
from tests import readme

PACKAGE = Path(__file__).parents[2] / "replicator"
NAMED_BY_CODE = {
    "malformed_json", "too_deep", "invalid_utf8", "unknown_shape", "unknown_op", "unknown_table", "key_missing",
    "key_undecodable", "after_missing", "position_missing", "position_malformed",
    "type_mismatch", "integer_overflow", "decimal_overflow",
    "decimal_scale", "temporal_range", "invalid_base64", "nul_character",
}  # fmt: skip


@cache
def texts(folder: str) -> set[str]:
    """Every string constant below a folder of the package."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (PACKAGE / folder).rglob("*.py")
             if path.name != "reasons.py"]  # fmt: skip
    return {node.value for tree in trees for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)}  # fmt: skip


@pytest.mark.parametrize("name", sorted(NAMED_BY_CODE))
def test_a_reason_that_the_code_gives_is_explained(name: str) -> None:
    """R4: what is wrong, and how to fix it; the names are those that stand in the code."""
    assert name in texts("debezium") | texts("transforms")
    words = reasons.REASONS[name]
    assert words.meaning.endswith(".")
    assert words.fix.endswith(".")


OF_THE_RECORD = {
    "malformed_json", "too_deep", "invalid_utf8", "unknown_table", "after_missing", "place_missing", "position_missing",
    "mongodb_partial_update",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OF_THE_RECORD))
def test_no_retry_is_advised_of_what_the_record_itself_lacks(name: str) -> None:
    """It reads the same record again, whatever the connector sends since."""
    assert "retry" not in reasons.REASONS[name].fix


def test_what_a_frozen_table_does_not_take_is_fixed_by_its_policy() -> None:
    """G3: only `schema_changes: freeze` makes such letters; a type that is declared lets it follow no more."""
    assert "`schema_changes: evolve`" in reasons.REASONS["incompatible_schema"].fix


@pytest.mark.parametrize(("name", "way"), [("unknown_op", "`shape: flattened`"), ("unknown_shape", "docs/shapes.md")])
def test_a_shape_that_records_cannot_show_is_fixed_by_a_declaration(name: str, way: str) -> None:
    """Rows with a column `op`, or of another shape than their topic has, need not be a mistake of who wrote them."""
    assert way in reasons.REASONS[name].fix


def test_a_reason_of_a_newer_release_is_told_by_its_name() -> None:
    """A lake may have been written by one."""
    assert reasons.describe("from_the_future").meaning == "from_the_future"


RULES = {
    "tombstone", "heartbeat", "transaction", "schema_change", "notification", "message", "signal", "key_swap",
    "truncate_of_no_table", "truncate_by_policy", "outbox_update", "outbox_delete", "outbox_duplicate",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_that_the_code_follows_is_explained(name: str) -> None:
    """R3: what an ignored record is, by the name that stands in the code."""
    assert name in texts("debezium") | texts("transforms") | texts("stages")
    assert reasons.RULES[name]


def test_no_rule_is_explained_that_no_code_follows() -> None:
    """The list above is all of them."""
    assert set(reasons.RULES) == RULES


def test_the_readme_names_only_reasons_that_there_are() -> None:
    """Those of the sentence about reasons."""
    text = "\n".join(readme.sections("docs/operate.md")["Dead letters"])
    named = {word for word in NAMED_BY_CODE if f"`{word}`" in text}
    assert named == NAMED_BY_CODE
