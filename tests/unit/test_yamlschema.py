"""The JSON Schemas that editors get: they take what the loaders take, and refuse a misspelled key as these do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from replicator.cli.config import Kind
from replicator.config import scaffold, yamlschema
from replicator.config.yamlfile import Problems, read
from tests import readme
from tests.cli import said

ROOT = Path(__file__).parents[2]
FOLDERS = {"sources": "source", "models": "model", "canonical": "feed"}
FILES = [*ROOT.glob("conf/**/*.yaml"), *ROOT.glob("tests/unit/connectors/*.yaml")]

SOURCE = "name: shop\ntables:\n  s.t: "
MODEL = "key: [a]\ninputs: {t: shop/s.t}\ncolumns: "
SPELLINGS = {
    "settings": [
        "s3: {path_style: ${S3_PATH_STYLE:-true}}",
        "targets: {warehouse: {host: h, database: d, user: u, port: ${PGPORT:-5432}, options: {connect_timeout: 5}}}",
        "spark: {spark.sql.adaptive.enabled: true, spark.executor.instances: 4, spark.memory.fraction: 0.6}",
        "lake: {lease: off}",
        "lake: {lease: 90 seconds}",
        "maintenance: {keep: 7 days, every: 1 hour}",
        "maintenance: {keep: 0, every: null}",
        "bronze: {max_offsets_per_trigger: '1000', trigger_seconds: '0.5'}",
        "aws: {application: '', roles: {bronze: ''}, artifacts: 's3://${BUCKET:-some-bucket}/jobs'}",
    ],
    "source": [
        f"{SOURCE}{{columns: {{id: int, total: {{type: 'decimal(10,2)', unsigned: true}}}}}}",
        f"{SOURCE}{{columns: [{{name: id, type: int}}]}}",
        f"{SOURCE}{{outbox: log, format: hudi, table_type: merge_on_read, purge_after: 30 days}}",
        f"{SOURCE}{{outbox: {{mode: log}}, format: [delta, hudi], stored_as_scd_type: 2, unavailable: 'no'}}",
        "source: shop\nconnector: {kind: mysql, host: h, user: u, server_id: '5', database: shop, tables: s.t}",
        "name: shop\nconnector: {kind: sqlserver, host: h, user: u, databases: [a, b], config: {poll.interval.ms: 5}}",
        "name: shop\nbootstrap_servers: k:9092\noptions: {max.poll.records: 500}",
    ],
    "model": [
        f"{MODEL}{{a: integer, b: {{type: text, checks: [not_null, {{unique: true, severity: warn}}]}}}}",
        f"{MODEL}[{{name: a, type: integer}}]\nchecks: [{{unique: [a]}}, {{row_count_change: {{max_drop: 0.1}}}}]",
        f"{MODEL}{{a: integer, day: date}}\nunknown_member: {{a: 0, day: 1900-01-01}}",
        f"{MODEL}{{a: integer}}\npublish: {{target: warehouse, schema: star, table: facts}}",
    ],
    "feed": ["topic: cdm.t\ntable: facts\nversion: ${VERSION:-2}\noptions: {max.poll.records: 500}"],
    "declare": [
        "tables: {s.t: {columns: {id: int}}}",
        "source: shop\nhash_key: ${KEY:-0123456789abcdef}\nmask_before_bronze: {s.t: {hash: [email]}}",
        "name: shop\nplaceholder: none\ntables: {s.t: {keys: [id]}}",
    ],
}
MISSPELLED = {
    "settings": ["lakes: {}", "lake: {rot: here}", "aws: {jobs: {silver: {minute: 5}}}"],
    "source": [
        "name: shop\ntabels: {}",
        f"{SOURCE}{{key: [id]}}",
        f"{SOURCE}{{columns: {{id: {{typ: int}}}}}}",
        "topics: a",
    ],
    "model": [f"{MODEL}{{a: integer}}\nlinage: {{}}", f"{MODEL}{{a: {{type: text, checks: [notnull]}}}}"],
    "feed": ["topic: t\ntable: t\nfilter: x"],
    "declare": ["tables: {s.t: {column: {id: int}}}", "table: {}"],
}


def wrong(kind: str, values: Any) -> list[str]:
    """What an editor would mark."""
    validator = Draft202012Validator(yamlschema.build(kind))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(values)]


def filled(text: str, folder: Path) -> tuple[Any, Any]:
    """A file as it stands there, and as its loader has it, without any variable."""
    path, problems = folder / "file.yaml", Problems()
    path.write_text(text, encoding="utf-8")
    document = read(path, problems)
    return document.values, document.filled({"PASSWORD": "p"}, problems).values


def pairs(table: dict[str, list[str]]) -> list[Any]:
    return [pytest.param(kind, text, id=f"{kind} {n}") for kind, texts in table.items() for n, text in enumerate(texts)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_ours_is_as_its_schema_says(path: Path) -> None:
    """No editor marks what the project itself has written."""
    kind = FOLDERS.get(path.parent.name, "source" if path.parent.name == "connectors" else "settings")
    assert wrong(kind, yaml.safe_load(path.read_text(encoding="utf-8"))) == []


def test_nor_what_init_makes_and_what_the_readme_declares() -> None:
    """The first files that a new user sees in an editor."""
    for path, text in scaffold.render_project("shop", "postgresql").items():
        if Path(path).suffix == ".yaml":
            assert wrong(FOLDERS.get(Path(path).parent.name, "settings"), yaml.safe_load(text)) == []
    assert wrong("declare", yaml.safe_load(readme.file("declare.yaml"))) == []


@pytest.mark.parametrize(("kind", "text"), pairs(SPELLINGS))
def test_what_a_loader_takes_its_schema_takes(kind: str, text: str, tmp_path: Path) -> None:
    """Variables in the place of any value, short forms, values in quotes."""
    written, values = filled(text, tmp_path)
    TypeAdapter(yamlschema.KINDS[kind]).validate_python(values)
    assert wrong(kind, written) == []


def test_settings_may_be_a_part() -> None:
    """``<env>.yaml`` is laid over ``base.yaml``: what a target needs may stand in either."""
    assert wrong("settings", {"targets": {"warehouse": {"password": "${PGPASSWORD}"}}}) == []


@pytest.mark.parametrize(("kind", "text"), pairs(MISSPELLED))
def test_what_no_loader_takes_is_marked(kind: str, text: str, tmp_path: Path) -> None:
    """Keys that there are not, at any depth, and those that are missing."""
    written, _ = filled(text, tmp_path)
    assert wrong(kind, written) != []


def test_keys_are_explained_by_the_words_of_their_classes() -> None:
    """There is no second description: what a docstring says of a key is what an editor shows."""
    found = yamlschema.build("source")["$defs"]["TableKeys"]["properties"]
    assert found["purge_after"]["description"].startswith("`purge_after` is how long deleted rows stay")
    assert all(own.get("description") for name, own in found.items() if name != "accept_refused_replays")


def test_the_command_prints_a_schema_of_each_kind() -> None:
    """Valid itself, and of every kind of file."""
    assert [kind.value for kind in Kind] == list(yamlschema.KINDS)
    for kind in yamlschema.KINDS:
        Draft202012Validator.check_schema(yaml.safe_load(said("config", "schema", kind)))
