"""What a source's file may say of rows that are marked as deleted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replicator.config import sourcefile, sqlexpressions
from replicator.errors import ConfigError
from replicator.spec import Declaration, SourceSpec, Transform
from replicator.stages.table import transform_origins

PAGE = Path(__file__).parents[2] / "docs/tables.md"
[BLOCK] = re.findall(r"```yaml\n(tables:\n  [^\n]*apply_as_deletes.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def declared(folder: Path, text: str) -> SourceSpec:
    """A ``--declare`` file."""
    path = folder / "declare.yaml"
    path.write_text(text, encoding="utf-8")
    return sourcefile.load_declare_file(path, {"KEY": "a secret of the source"})


def test_it_is_asked_before_the_steps_of_the_transform_that_it_stands_beside(tmp_path: Path) -> None:
    """With a transform and without; the example of the documentation loads."""
    assert declared(tmp_path, BLOCK).tables[0].transform == Transform(as_deletes="deleted_at IS NOT NULL")
    both = "tables: {a.b: {apply_as_deletes: x > 1, transform: {mask: [y]}}}"
    assert declared(tmp_path, both).tables[0].transform == Transform(masked=("y",), as_deletes="x > 1")


HIDDEN = "hash_key: ${KEY}\nmask_before_bronze: {a.b: {hash: [x], drop: ['first name']}}\n"
SHARDED = "hash_key: ${KEY}\nmask_before_bronze: {S_1.b: {hash: [x]}}\n"
SHARDS = "shards: '(?i)s_[0-9]+[.]b', shard_column: of, truncate: ignore"


@pytest.mark.parametrize(
    ("above", "table", "part"),
    [
        ("", "append_only: true, apply_as_deletes: x = 1", "append_only and apply_as_deletes cannot be combined"),
        ("", "schema_changes: freeze, apply_as_deletes: x = 1", "set evolve or fail"),
        ("", "columns: {mark: int}, apply_as_deletes: marc = 1", "none of them; did you mean 'mark'?"),
        ("", "apply_as_deletes: \"1 = 'x'\"", "names none of them"),
        ("", "columns: {x: {type: int, generated: true}}, apply_as_deletes: x = 1", "'x', a generated column"),
        (HIDDEN, "apply_as_deletes: x = 1", "'x', which mask_before_bronze hides"),
        (HIDDEN, "apply_as_deletes: first_x20_name = 1", "'first name', which mask_before_bronze hides"),
        (HIDDEN, "apply_as_deletes: 'struct(*).x = 1'", "'x', which mask_before_bronze hides"),
        (SHARDED, f"apply_as_deletes: x = 1, {SHARDS}", "'x', which mask_before_bronze hides"),
        ("", "columns: {status: int}, apply_as_deletes: meta.status = 1", "of a.b must be a condition over columns"),
        ("", "apply_as_deletes: rand() > 1", "names none of them"),
        ("", "columns: {mark: int, x: int}, apply_as_deletes: x OR marc = 1", "'marc', which is not a declared column"),
        ("", "columns: {mark: int}, apply_as_deletes: mark = 1 AND marc = 1", "; did you mean 'mark'?"),
        ("", "columns: {mark: int}, apply_as_deletes: mark", "is 'mark' alone, which is INT, not a boolean"),
        ("", "apply_as_deletes: mark + 1", "a number, not a boolean"),
        ("", "apply_as_deletes: count(x) > 1", "apply_as_deletes has count(), which is an aggregate"),
        ("", "apply_as_deletes: x IN (SELECT 1)", "apply_as_deletes has a sub-query"),
        ("", "apply_as_deletes: lag(x) OVER (ORDER BY y) = 1", "apply_as_deletes has a window"),
        ("", "apply_as_deletes: x < now()", "apply_as_deletes has now(), which is not deterministic"),
        ("", "apply_as_deletes: 1", "apply_as_deletes"),
        ("", "apply_as_delete: x = 1", "did you mean 'apply_as_deletes'?"),
    ],
)
def test_what_could_delete_nothing_by_mistake_is_refused(tmp_path: Path, above: str, table: str, part: str) -> None:
    """With the file, and the line; a condition that never holds would show what the source has deleted."""
    with pytest.raises(ConfigError) as caught:
        declared(tmp_path, f"{above}tables:\n  a.b: {{{table}}}\n")
    assert part in str(caught.value)
    assert re.search(r"declare\.yaml:\d+: ", str(caught.value))


def test_what_else_is_declared_beside_it_is_no_matter(tmp_path: Path) -> None:
    """A generated column that it does not read, a hidden one of another table, columns of the outbox router."""
    told = declared(
        tmp_path,
        "hash_key: ${KEY}\nmask_before_bronze: {a.c: {hash: [x]}}\ntables:\n"
        "  a.b: {apply_as_deletes: x = 1, columns: {y: {type: int, generated: true}}}\n"
        "  a.d: {apply_as_deletes: type = 'gone', outbox: router, columns: {payload: bytes}}\n"
        "  a.e: {apply_as_deletes: gone, columns: {gone: boolean}}\n",
    )
    conditions_of = [each.transform and each.transform.as_deletes for each in told.tables]
    assert conditions_of == ["x = 1", "type = 'gone'", "gone"]
    assert declared(tmp_path, f"{SHARDED}tables: {{a.b: {{{SHARDS}}}}}").tables[0].shards == "(?i)s_[0-9]+[.]b"
    routed = "tables: {a.d: {apply_as_deletes: type = 'gone', columns: {payload: bytes}}}"
    assert declared(tmp_path, f"name: s\noutbox: router\n{routed}").tables[0].outbox is not None


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("cast(at AS date) IS NOT NULL", "date"),
        ("left(code, 1) = 'D'", "left"),
        ("meta.status = 1", "status"),
        ("meta.`status` = 1", "status"),
        ("year (deleted_at) > 2000", "year"),
    ],
)
def test_types_functions_and_fields_are_no_columns(tmp_path: Path, condition: str, name: str) -> None:
    """A column that is called as one of them may be hidden, or generated."""
    hidden = f"hash_key: ${{KEY}}\nmask_before_bronze: {{a.b: {{hash: [{name}]}}}}\n"
    generated = f"columns: [{{name: {name}, type: int, generated: true}}]"
    for above, beside in ((hidden, ""), ("", f", {generated}")):
        told = declared(tmp_path, f'{above}tables: {{a.b: {{apply_as_deletes: "{condition}"{beside}}}}}')
        assert told.tables[0].transform == Transform(as_deletes=condition)


def test_names_are_told_from_texts_and_comments() -> None:
    """By the source's spelling, in back-quotes or without. What may be a column is none of the others by mistake."""
    sql = "a = 'b \\' c' AND `d` > \"e\" /* f */ OR first_x20_name IS NULL -- g"
    assert sqlexpressions.list_columns(sql) == ["a", "AND", "d", "OR", "first name", "IS", "NULL"]
    assert sqlexpressions.list_columns("a RLIKE r'\\' OR b = 'c'") == ["a", "RLIKE", "OR", "b"]
    assert sqlexpressions.list_columns("as OR b") == ["as", "b"]
    sql = "a -- (\r = 1 AND x.b.`c` = (d) OR `f.g` IN (h, 1.5 * i, cast(j AS k), l /* ) */ (m), *) OR '.' <> n"
    words = set(sqlexpressions.list_columns(sql)) - {"AND", "OR", "AS"}
    assert words == {"a", "x", "d", "f.g", "h", "i", "j", "m", "*", "n"}


def test_another_condition_is_another_transform_and_without_one_lakes_know_theirs() -> None:
    """What made the rows of a lake is known by a hash that this option must not change."""

    def mark(transform: Transform | None) -> str | None:
        return transform_origins.fingerprint(SourceSpec("s", ""), Declaration("a.b", transform=transform))

    conditional = [Transform(as_deletes=sql) for sql in ("x = 1", "x = 2")]
    assert len({mark(each) for each in (None, Transform(), *conditional)}) == 4
    assert mark(Transform(masked=("email",))) == "2a633e0776f77ad37e2d76a7f495a2742c020cac80ce0f89bca6025c4f8841bb"
