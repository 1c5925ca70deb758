"""A gold model is one SELECT and one YAML that agree with each other and with everything they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replicator import settings
from replicator.config import modelfile
from replicator.errors import ConfigError
from replicator.spec import Model, rules

CONF = Path(__file__).parents[2] / "conf"
GOOD_SQL = "SELECT id FROM {orders}"
SOURCE = "name: s\ninclude: [db.orders, db.lines]\ntables: {db.lines: {stored_as_scd_type: 2}}\n"
GOOD_YAML = "key: [id]\ninputs: {orders: s/db.orders}\ncolumns: {id: integer}\n"


@pytest.fixture
def models(tmp_path: Path) -> Callable[..., tuple[Model, ...]]:
    """Writes ``name=(sql, yaml)`` beside a source ``s`` and a target ``w``, and loads them."""

    def load(**given: tuple[str | None, str | None]) -> tuple[Model, ...]:
        folder = tmp_path / "conf"
        (folder / "models").mkdir(parents=True)
        (folder / "sources").mkdir()
        (folder / "dev.yaml").write_text("targets: {w: {host: h, database: d, user: u}}\n", encoding="utf-8")
        (folder / "sources" / "s.yaml").write_text(SOURCE, encoding="utf-8")
        for name, (sql, yaml) in given.items():
            for suffix, text in ((".sql", sql), (".yaml", yaml)):
                if text is not None:
                    (folder / "models" / f"{name}{suffix}").write_text(text, encoding="utf-8")
        return settings.load(folder, "dev", {}).models

    return load


def model(reads: str, key: str = "id", more: str = "") -> tuple[str, str]:
    return f"SELECT 1 FROM {{{reads}}}", f"key: [{key}]\ninputs: {{{reads}: {reads}}}\ncolumns: {{{key}: text}}\n{more}"


def with_check(check: str) -> str:
    return GOOD_YAML.replace("id: integer", f"id: {{type: integer, checks: [{check}]}}")


def test_the_star_has_the_columns_and_types_of_its_ddl() -> None:
    """Columns, their order, types and keys are those of the given Postgres DDL."""
    star = {m.name: m for m in settings.load(CONF, "demo", {}).models}
    typed = {name: [(c.name, c.type, c.nullable) for c in m.columns] for name, m in star.items()}
    assert typed["dim_customers"][0] == ("customer_key", "integer", False)
    assert typed["dim_customers"][-2:] == [("creditlimit", "numeric(10,2)", True), ("updated_at", "timestamp(3)", True)]
    assert [len(columns) for columns in typed.values()] == [13, 8, 11]
    assert star["fact_orders"].key == ("order_key", "order_line_key", "customer_key", "product_key")
    assert star["fact_orders"].target.schema == "classicmodels_star_schema"
    assert all(column.description for m in star.values() for column in m.columns)


def test_models_come_after_what_they_read_and_reference(models: Callable[..., tuple[Model, ...]]) -> None:
    """The order of the models is an order in which they can be built and published."""
    found = models(a=model("b", more="references: [c]\n"), b=model("c"), c=("SELECT 1 FROM {orders}", GOOD_YAML))
    assert [m.name for m in found] == ["c", "b", "a"]


def test_a_key_column_is_never_null(models: Callable[..., tuple[Model, ...]]) -> None:
    """What makes a row unique is there; nobody has to say so."""
    (only,) = models(m=(GOOD_SQL, GOOD_YAML))
    assert [column.nullable for column in only.columns] == [False]


def test_a_model_whose_lineage_names_every_input_is_refreshed_incrementally(
    models: Callable[..., tuple[Model, ...]],
) -> None:
    """Gold.md: unless it says otherwise; lineage may name columns that are not published."""
    named = GOOD_YAML + "lineage: {orders: [_order]}\n"
    found = models(a=(GOOD_SQL, named), b=(GOOD_SQL, named + "refresh: full\n"), c=(GOOD_SQL, GOOD_YAML))
    assert {m.name: m.refresh for m in found} == {"a": "incremental", "b": "full", "c": "full"}
    assert found[0].lineage == {"orders": ("_order",)}


def test_every_model_that_comes_along_is_refreshed_incrementally() -> None:
    """The sample stars are trees of look-ups: each says which row of each input a row is from."""
    every = [*settings.load(CONF, "demo", {}).models, *settings.load(CONF / "northwind", "local", {}).models]
    assert {m.refresh for m in every} == {"incremental"}


def test_checks_stand_beside_their_column_or_below_checks(models: Callable[..., tuple[Model, ...]]) -> None:
    """A bare word, or a word with a value, a severity and a name; without a name it is called what it says."""
    yaml = (
        "key: [id]\ninputs: {orders: s/db.orders}\ncolumns:\n"
        "  id: {type: integer, checks: [unique, {not_null: true, severity: warn}]}\n"
        "  state: {type: text, checks: [{accepted_values: [open, 2], name: known states}]}\n"
        "  up: {type: integer, checks: [{relationship: {to: m, field: id}}]}\n"
        "checks:\n  - unique: [id, state]\n  - {expression: id > 0, severity: warn}\n"
        "  - row_count_change: {max_drop: 0.5}\n  - semi_additive: {measure: up, by: [state], over: id, every: day}\n"
    )
    (found,) = models(m=(GOOD_SQL, yaml))
    assert [(check.name, check.severity) for check in found.checks] == [
        ("unique(id)", "fail"),
        ("not_null(id)", "warn"),
        ("known states", "fail"),
        ("relationship(up -> m.id)", "fail"),
        ("unique(id, state)", "fail"),
        ("expression(id > 0)", "warn"),
        ("row_count_change", "fail"),
        ("semi_additive(up)", "fail"),
    ]
    assert found.checks[2].rule == rules.AcceptedValues("state", ("open", 2))
    assert found.checks[7].rule == rules.SemiAdditive("up", ("state",), "id", "day")
    assert len({check.digest for check in found.checks}) == len(found.checks)


def test_a_model_comes_after_those_that_its_relationships_lead_to(models: Callable[..., tuple[Model, ...]]) -> None:
    """They are there when its rows are looked up in them."""
    child = "columns: {id: {type: integer, checks: [{relationship: {to: parent, field: id}}]}}\n"
    found = models(child=(GOOD_SQL, GOOD_YAML.replace("columns: {id: integer}\n", child)), parent=(GOOD_SQL, GOOD_YAML))
    assert [m.name for m in found] == ["parent", "child"]


def test_a_column_may_be_null_unless_it_is_of_the_key_or_says_otherwise(
    models: Callable[..., tuple[Model, ...]],
) -> None:
    """PostgreSQL's tables are made so."""
    (found,) = models(m=(GOOD_SQL, GOOD_YAML[:-2] + ", n: {type: integer, nullable: false}, o: integer}\n"))
    assert [column.nullable for column in found.columns] == [False, False, True]


def test_a_model_may_read_nothing_at_all(models: Callable[..., tuple[Model, ...]]) -> None:
    """A calendar is made of its SQL alone."""
    (found,) = models(m=("SELECT 1 AS id", GOOD_YAML.replace("{orders: s/db.orders}", "{}")))
    assert (dict(found.inputs), found.refresh) == ({}, "incremental")


def test_a_table_has_deletion_vectors_where_its_model_says_so(models: Callable[..., tuple[Model, ...]]) -> None:
    """Else nothing is said of them: a new table has none, and one that is there stays as it is."""
    said = {"a": "", "b": "deletion_vectors: true\n", "c": "deletion_vectors: false\n"}
    found = models(**{name: (GOOD_SQL, GOOD_YAML + line) for name, line in said.items()})
    assert {model.name: model.deletion_vectors for model in found} == {"a": None, "b": True, "c": False}


def test_what_some_editors_begin_a_file_with_is_no_part_of_it(models: Callable[..., tuple[Model, ...]]) -> None:
    """A byte order mark, which Spark would take for a part of the first word."""
    (found,) = models(m=(f"\ufeff{GOOD_SQL}", f"\ufeff{GOOD_YAML}"))
    assert found.sql == GOOD_SQL


def test_a_history_is_read_where_one_is_kept(models: Callable[..., tuple[Model, ...]]) -> None:
    """Its name is that of its table with ``__history`` behind it."""
    (found,) = models(m=(GOOD_SQL, GOOD_YAML.replace("db.orders", "db.lines__history")))
    assert found.inputs == {"orders": "s/db.lines__history"}


def test_braces_of_the_sql_itself_are_doubled() -> None:
    """Placeholders are what Spark's formatter fills, nothing else."""
    assert modelfile.placeholders("SELECT '{{x}}' FROM {a} JOIN {b}") == {"a", "b"}
    with pytest.raises(ValueError, match="reserved by Spark"):
        modelfile.placeholders("SELECT 1 FROM {args}")


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"m": (None, GOOD_YAML)}, "m.sql cannot be read"),
        ({"m": (GOOD_SQL, None)}, "m.yaml, which declares its key, inputs and columns, is missing"),
        (
            {"m": ("SELECT 1 FROM {order}", GOOD_YAML)},
            "{order} is not among the inputs of m.yaml; did you mean 'orders'?",
        ),
        ({"m": ("SELECT 1", GOOD_YAML)}, "the input 'orders' is never used"),
        ({"m": ("SELECT '{' FROM {orders}", GOOD_YAML)}, "placeholders cannot be parsed"),
        ({"m": ("SELECT 1 FROM {orders.x}", GOOD_YAML)}, "is not a placeholder"),
        ({"m": ("SELECT 1 FROM {orders:x}", GOOD_YAML)}, "is not a placeholder"),
        ({"m": ("SELECT 1 FROM {orders!r}", GOOD_YAML)}, "is not a placeholder"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("s/db", "t/db"))}, "m.yaml:2: inputs.orders: source 't' does not exist"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("db.orders", "db.order"))}, "does not include 'db.order'"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("s/db.orders", "s/orders"))}, "<source>/<database or schema>.<table>"),
        ({"m": model("n")}, "model 'n' does not exist"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("[id]", "[idd]"))}, "the key 'idd' is not a column; did you mean 'id'?"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("[id]", "[]"))}, "key"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("integer", "intger"))}, "did you mean 'integer'?"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("integer", "'integer); drop table x'"))}, "not a known Postgres type"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("id: integer", "id: integer, ID: integer"))}, "'id' and 'ID'"),
        (
            {"m": (GOOD_SQL, GOOD_YAML.replace("id: integer", "id: {type: integer, nullable: true}"))},
            "cannot be nullable",
        ),
        ({"m": (GOOD_SQL, GOOD_YAML + "references: [x]\n")}, "model 'x' does not exist"),
        ({"m": (GOOD_SQL, GOOD_YAML + "publish: {target: v, schema: a, table: b}\n")}, "target 'v' does not exist"),
        ({"m": (GOOD_SQL, GOOD_YAML + f"publish: {{target: w, schema: a, table: {'b' * 64}}}\n")}, "63 bytes"),
        (
            {"m": (GOOD_SQL, GOOD_YAML + "publish: {target: w, schema: a, table: _replicator_writers}\n")},
            "publish.table: table names that begin with _replicator_ are reserved for publishing",
        ),
        ({"m": (GOOD_SQL, GOOD_YAML + "pubish: {}\n")}, "did you mean 'publish'?"),
        ({"m": (GOOD_SQL, GOOD_YAML + "publish: {target: w, schem: a, table: b}\n")}, "did you mean 'schema'?"),
        ({"m": (GOOD_SQL, GOOD_YAML.replace("[id]", "[]"))}, "m.yaml:1: key: must not be empty"),
        ({"m": (GOOD_SQL, GOOD_YAML), "M": (GOOD_SQL, GOOD_YAML)}, "'M' and 'm'"),
        (
            dict.fromkeys("ab", (GOOD_SQL, GOOD_YAML + "publish: {target: w, schema: a, table: b}\n")),
            "already published there",
        ),
        ({"a": model("b"), "b": model("c"), "c": model("a")}, "these models depend on each other"),
        ({"a": model("a")}, "these models depend on each other"),
        ({"m": (GOOD_SQL, GOOD_YAML + "lineage: {order: [id]}\n")}, "no such input; did you mean 'orders'?"),
        (
            {"m": (GOOD_SQL, GOOD_YAML + "lineage: {orders: [idd]}\n")},
            "m.yaml:4: lineage.orders: 'idd' is not a column",
        ),
        ({"m": (GOOD_SQL, GOOD_YAML + "lineage: {orders: []}\n")}, "lineage.orders"),
        ({"m": (GOOD_SQL, GOOD_YAML + "refresh: incremental\n")}, "m.yaml:4: refresh: incremental needs a lineage"),
        ({"m": (GOOD_SQL, GOOD_YAML + "refresh: always\n")}, "refresh"),
        (
            {"a": model("b", more="lineage: {b: [id, id]}\n"), "b": (GOOD_SQL, GOOD_YAML)},
            "lineage.b: the key is id, which needs 1 columns",
        ),
        ({"m": (GOOD_SQL, with_check("not_nul"))}, "m.yaml:3: unknown key 'columns.id.checks.0.not_nul'; did you mean"),
        ({"m": (GOOD_SQL, with_check("{not_null: true, unique: true}"))}, "a check must be one of not_null, unique"),
        ({"m": (GOOD_SQL, with_check("{unique: true, severity: error}"))}, "severity"),
        ({"m": (GOOD_SQL, with_check("unique, unique"))}, "the check 'unique(id)' is declared twice"),
        ({"m": (GOOD_SQL, with_check("{accepted_values: [[1]]}"))}, "a value must be a string, a number"),
        (
            {"m": (GOOD_SQL, with_check("{accepted_values: [open, no]}").replace("integer", "text"))},
            "m.yaml:3: columns.id: accepted_values contains false, but the column is text: quote words such as on, yes",
        ),
        (
            {"m": (GOOD_SQL, with_check("{relationship: {to: n, field: id}}"))},
            "m.yaml:3: relationship(id -> n.id): model 'n' does not exist",
        ),
        (
            {"m": (GOOD_SQL, with_check("{relationship: {to: m, field: idd}}"))},
            "m has no column 'idd'; did you mean 'id'?",
        ),
        ({"m": (GOOD_SQL, GOOD_YAML + "checks: [{unique: [idd]}]\n")}, "m.yaml:4: unique(idd): 'idd' is not a column"),
        ({"m": (GOOD_SQL, GOOD_YAML + "checks: [{row_count_change: {}}]\n")}, "give max_drop, max_growth or both"),
        ({"m": (GOOD_SQL, GOOD_YAML + "checks: [{expresion: x}]\n")}, "did you mean 'expression'?"),
        (
            {"m": (GOOD_SQL, GOOD_YAML.replace("db.orders", "db.orders__history"))},
            "db.orders keeps no history: set `stored_as_scd_type: 2`",
        ),
        ({"m": (GOOD_SQL, GOOD_YAML + "unknown_member: {idd: 1}\n")}, "unknown_member: 'idd' is not a column"),
        ({"m": (GOOD_SQL, GOOD_YAML + "unknown_member: {}\n")}, "unknown_member: id cannot be NULL"),
        (
            {"m": (GOOD_SQL, GOOD_YAML[:-2] + ", n: {type: integer, nullable: false}}\nunknown_member: {id: 1}\n")},
            "unknown_member: n cannot be NULL",
        ),
        ({"m": (GOOD_SQL, GOOD_YAML + "unknown_member: {id: none}\n")}, "the value of id is not a valid integer"),
        ({"m": (GOOD_SQL, GOOD_YAML + "unknown_member: {id: true}\n")}, "the value of id is not a valid integer"),
        ({"m": (GOOD_SQL, GOOD_YAML + "unknown_member: {id: 2147483648}\n")}, "the value of id is not a valid integer"),
        ({"m": (GOOD_SQL, GOOD_YAML + "unknown_member: {id: -2147483649}\n")}, "value of id is not a valid integer"),
    ],
)
def test_a_wrong_model_is_refused(
    models: Callable[..., tuple[Model, ...]], given: dict[str, tuple[str | None, str | None]], part: str
) -> None:
    """What could not run, or would serve something else, is refused with its place and the nearest spelling."""
    with pytest.raises(ConfigError) as caught:
        models(**given)
    assert part in str(caught.value)
