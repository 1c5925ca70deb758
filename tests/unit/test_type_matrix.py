"""docs/types.md says what the type tests prove (architecture section 8; types.md sections 2 and 9.1)."""

from __future__ import annotations

import pytest

from replicator.debezium import connect_schema, type_names
from replicator.debezium.logical_types import spark_type
from replicator.debezium.type_parser import parse_type
from tests import type_matrix
from tests.type_rows import MATRIX, Row
from tests.type_vectors import Problem

ROWS = [row for _, rows in MATRIX for row in rows]


def test_the_document_is_what_the_command_writes() -> None:
    """`python -m tests.type_matrix` was run after the last change of a vector."""
    assert type_matrix.DOCUMENT.read_text(encoding="utf-8") == type_matrix.document()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.declared}, {row.columns}")
def test_every_row_has_a_value_that_is_taken_and_schemas_that_mean_the_same(row: Row) -> None:
    """Section 9.1: no line is a claim; a schema block and the declaration lead to one silver type."""
    taken = [value for _, value in type_matrix.vectors()[row.declared] if not isinstance(value, Problem)]
    assert any(value is not None for value in taken)
    declared = parse_type(row.declared)
    for sent in row.sent:
        meant = type_matrix.means(sent, declared)
        assert (meant, spark_type(meant)) == (declared, spark_type(declared))


def test_every_type_and_every_schema_name_has_a_row() -> None:
    """Section 2: what the decoder knows is in the matrix, or a struct, which has no short form."""
    shown = {parse_type(row.declared).name for row in ROWS}
    assert set(type_names.SIMPLE_TYPES) - shown == set()
    names = {sent.name for row in ROWS for sent in row.sent}
    assert set(connect_schema.BY_SEMANTIC_TYPE) - names == set()
