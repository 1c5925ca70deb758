"""What a source's file may say of a table's transform."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replicator.config import sourcefile
from replicator.config.yamlfile import Problems
from replicator.errors import ConfigError
from replicator.spec import Declaration, SourceSpec, Transform
from replicator.stages.table import transform_origins

KEY = "a secret of the source"
PAGE = Path(__file__).parents[2] / "docs/transforms.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def declared(folder: Path, transform: str, *, more: str = "", source: str = "hash_key: ${SECRET}") -> SourceSpec:
    """A ``--declare`` file of one table."""
    path = folder / "declare.yaml"
    path.write_text(f"{source}\ntables:\n  shop.people:\n    {more}\n    transform:\n      {transform}\n")
    return sourcefile.load_declare_file(path, {"SECRET": KEY, "SHORT": "guess me"})


def test_every_step_is_declared_per_table(tmp_path: Path) -> None:
    """Each in the order in which it is taken; the key of hashes is in no text form."""
    steps = (
        "{cast: {total: 'decimal(12,2)'}, function: 'shop.clean:tidy', derive: {name: \"concat(a, b)\"}, where: a > 1,"
        " hash: [email], mask: [phone], except_column_list: [ssn], rename: {no: number}}"
    )
    source = declared(tmp_path, steps.replace("\n", ""))
    assert source.tables[0].transform == Transform(
        cast=(("total", "decimal(12,2)"),),
        function="shop.clean:tidy",
        derive=(("name", "concat(a, b)"),),
        where="a > 1",
        hashed=("email",),
        masked=("phone",),
        except_column_list=("ssn",),
        rename=(("no", "number"),),
    )
    assert source.hash_key == KEY
    assert KEY not in repr(source)


@pytest.mark.parametrize(
    ("transform", "more", "part"),
    [
        ("{column_list: [a], except_column_list: [b]}", "", "not both"),
        ("{hash: [a], mask: [a]}", "", "'a' is hashed and masked"),
        ("{hash: [a], except_column_list: [a]}", "", "it cannot be changed"),
        ("{rename: {a: c, b: C}}", "", "'c' and 'C'"),
        ("{rename: {a: c, b: c}}", "", "rename contains a column twice"),
        ("{function: nonsense}", "", "module:function"),
        ("{hash: [emial]}", "columns: {email: string}", "'emial' is not a declared column; did you mean 'email'?"),
        ("{where: a > 1}", "columns: {a: int, b: {type: int, generated: true}}", "'b' is generated"),
        ("{column_list: [a]}", "schema_changes: freeze", "list the columns in column_list"),
        ("{where: status = 1 AND b = 1}", "columns: {stats: int, b: int}", "where of shop.people reads 'status'"),
        ("{rename: {a: c}, where: c > 1}", "columns: {a: int}", "'c', which is not a declared column"),
        ("{derive: {d: a + e}}", "columns: {a: int}", "derive of 'd' of shop.people reads 'e'"),
        ("{derive: {d: a, e: d}}", "columns: {a: int}", "derive of 'e' of shop.people reads 'd'"),
        ("{where: a = max(a)}", "", "where has max(), which is an aggregate"),
        ("{where: a IN (SELECT 1)}", "", "where has a sub-query"),
        ("{derive: {d: row_number() OVER (ORDER BY a)}}", "", "derive of 'd' has a window"),
        ("{where: rand() > 1}", "", "where has rand(), which is not deterministic"),
        ("{hsah: [a]}", "", "did you mean 'hash'?"),
    ],
)
def test_what_cannot_be_meant_of_a_transform_is_refused(tmp_path: Path, transform: str, more: str, part: str) -> None:
    """A misspelled mask would let through what it shall hide."""
    with pytest.raises(ConfigError) as caught:
        declared(tmp_path, transform, more=more)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "transform",
    [
        "{derive: {d: a + 1}, where: d > 1 AND a > 1}",
        "{function: 'm:f', where: made > 1}",
        "{where: shard = 'x' AND a > 1}",
        "{where: a}",
        "{where: _source_ts_ms > 1}",
    ],
)
def test_sql_may_read_what_the_steps_before_it_give(tmp_path: Path, transform: str) -> None:
    """Derived columns, those of a function, the shard's, ours; a filter is cast, so that a number may be one."""
    shards = "columns: {a: int}\n    shards: 's[.]p'\n    shard_column: shard\n    truncate: fail"
    assert declared(tmp_path, transform, more=shards).tables[0].transform is not None


@pytest.mark.parametrize("transform", ["{where: a > 1, except_column_list: [b]}", "{where: a > 1, column_list: [a]}"])
def test_rows_may_be_filtered_where_what_is_never_sent_is_left_out(tmp_path: Path, transform: str) -> None:
    """E8: what remains of a row is complete."""
    generated = "columns: {a: int, b: {type: int, generated: true}}"
    assert declared(tmp_path, transform, more=generated).tables[0].transform is not None


@pytest.mark.parametrize(
    ("source", "part"), [("name: s", "has hashed columns: give hash_key"), ("hash_key: ${SHORT}", "could be guessed")]
)
def test_hashed_columns_need_a_key_that_nobody_guesses(tmp_path: Path, source: str, part: str) -> None:
    """Without a key whoever has a list of addresses has the table."""
    with pytest.raises(ConfigError) as caught:
        declared(tmp_path, "{hash: [email]}", source=source)
    assert part in str(caught.value)
    assert "guess me" not in str(caught.value)


@pytest.mark.parametrize("block", BLOCKS, ids=["transform", "mask", "shards"])
def test_the_examples_of_the_documentation_of_transforms_are_valid(tmp_path: Path, block: str) -> None:
    """What a reader copies out of docs/transforms.md loads."""
    (tmp_path / "s.yaml").write_text(block)
    problems = Problems()
    [(source, _)] = sourcefile.load_sources(tmp_path, "", {}, {"SHOP_HASH_KEY": KEY}, problems)
    problems.raise_if_any()
    assert source.name == "shop"


def test_a_transform_is_another_one_with_another_step_function_or_key() -> None:
    """Each of them makes other rows; where nothing is hashed, the key makes none."""
    hashing, plain = Transform(hashed=("email",)), Transform(masked=("email",))
    told = [None, hashing, plain, Transform(function="tests.user_functions:tidy"), replace(plain, where="id > 1")]
    marks = {
        transform_origins.fingerprint(SourceSpec("s", "", hash_key=KEY), Declaration("a.b", transform=each))
        for each in told
    }
    assert len(marks) == len(told)
    assert None in marks
    other = SourceSpec("s", "", hash_key=f"{KEY}, another")
    assert transform_origins.fingerprint(other, Declaration("a.b", transform=hashing)) not in marks
    assert transform_origins.fingerprint(other, Declaration("a.b", transform=plain)) in marks


def test_a_program_is_told_alike_by_every_python() -> None:
    """A lake outlives its Python: 3.12 gave functions a further field, and none of them may stop a table."""
    call: Any = (
        "Call",
        [("func", ("Name", [("id", "'g'"), ("ctx", ("Load", []))])), ("args", [("Constant", [("value", "1")])])],
    )
    body: Any = (
        "FunctionDef",
        [("name", "'f'"), ("args", ("arguments", [])), ("body", [("Return", [("value", call)])])],
    )
    assert transform_origins.normalize_ast(ast.parse("def f():  # why\n    return g( 1 )\n")) == (
        "Module",
        [("body", [body])],
    )
    parts = ast.JoinedStr([ast.Constant("a"), ast.Constant("")])  # as 3.12 has it of some
    assert transform_origins.normalize_ast(parts) == transform_origins.normalize_ast(ast.JoinedStr([ast.Constant("a")]))
