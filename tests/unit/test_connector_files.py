"""A source's file -> its connector's configuration: golden files per kind, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from replicator import settings
from replicator.config import sourcefile
from replicator.config.yamlfile import Problems
from replicator.connect.configuration import CLASSES
from replicator.connect.configuration import configuration as made
from replicator.databases.readiness.finding import missing_tables
from replicator.errors import ConfigError
from replicator.spec import Connector, SourceSpec

FILES = sorted((Path(__file__).parent / "connectors").glob("*.yaml"))
CONF = Path(__file__).parents[2] / "conf"
LEAST = "kind: postgresql, host: h, user: u, database: d, tables: [a.b]"


def configuration(of: Connector | None) -> dict[str, str]:
    """Of a source that has one."""
    assert of is not None
    return made(of)


def told(tmp_path: Path, text: str) -> SourceSpec:
    """The source that a file of that text describes."""
    path = tmp_path / "s.yaml"
    path.write_text(f"name: s\n{text}", encoding="utf-8")
    return sourcefile.load_declare_file(path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_source_file_gives_its_connector(file: Path) -> None:
    """Every kind and form against a configuration that was read by people, and by the plugin itself on a stack."""
    assert configuration(sourcefile.load_declare_file(file).connector) == json.loads(
        file.with_suffix(".json").read_text()
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_null_becomes_the_default_of_its_column(file: Path) -> None:
    """G1, F7: the converter and the flattener replace it unless told otherwise, and nothing in a record tells it."""
    config = configuration(sourcefile.load_declare_file(file).connector)
    replacing = ["value.converter"] + (["transforms.unwrap"] if config.get("transforms") == "unwrap" else [])
    assert [config.get(f"{each}.replace.null.with.default") for each in replacing] == ["false"] * len(replacing)


def test_every_kind_has_a_golden_file() -> None:
    """What is not shown is not promised."""
    shown = {json.loads(file.with_suffix(".json").read_text())["connector.class"] for file in FILES}
    assert shown == set(CLASSES.values())


def test_the_samples_describe_their_connectors() -> None:
    """Passwords are references; the outbox publishes nothing by itself, keeps deletes and what its order is made of."""
    own = configuration(settings.load(CONF, "local", {}).source("dbserver1").connector)
    assert own["database.password"] == "${env:MARIADB_CONNECTOR_PASSWORD}"
    assert (own["topic.prefix"], own["database.include.list"]) == ("dbserver1", "classicmodels")
    config = configuration(settings.load(CONF / "northwind", "local", {}).source("demo").connector)
    assert (config["publication.name"], config["publication.autocreate.mode"]) == ("cdc_publication", "disabled")
    assert config["table.include.list"] == "datalake.cdc_events"
    assert config["transforms.unwrap.delete.tombstone.handling.mode"] == "rewrite-with-tombstone"
    fields = set(config["transforms.unwrap.add.fields"].split(","))
    assert {"op", "db", "table", "schema", "lsn", "source.ts_ms", "sequence"} <= fields


def test_more_keys_win_over_the_template(tmp_path: Path) -> None:
    """``config`` has the last word, with YAML's numbers and truths as the connector writes them."""
    config = configuration(
        told(tmp_path, f"connector: {{{LEAST}, config: {{snapshot.mode: never, a.b: true}}}}").connector
    )
    assert (config["snapshot.mode"], config["a.b"]) == ("never", "true")


def test_a_transform_may_stand_beside_that_of_the_form(tmp_path: Path) -> None:
    """Without it records would come in another form, or an outbox's events in no topic of theirs."""
    block = f"connector: {{{LEAST}, form: flattened, config: {{transforms: 'unwrap, route'}}}}"
    assert configuration(told(tmp_path, block).connector)["transforms"] == "unwrap, route"


SQLSERVER = "kind: sqlserver, host: h, user: u, databases: [crm, erp]"
MARIADB = "kind: mariadb, host: h, user: u, server_id: 1"


@pytest.mark.parametrize(
    ("text", "included", "excluded"),
    [
        (f"include: [shop.a$b, shop.c]\nconnector: {{{MARIADB}}}", r"shop.a\$b,shop.c", None),
        (f"exclude: [shop.audit]\nconnector: {{{MARIADB}}}", None, "shop.audit"),
        (f"exclude: [shop.audit]\nconnector: {{{MARIADB}, tables: ['shop[.].*']}}", "shop[.].*", None),
        (f"include: [shop.c]\nconnector: {{{MARIADB}, except_tables: [shop.x]}}", None, "shop.x"),
        (f"include: [dbo.a, crm.dbo.b, erp.dbo.b]\nconnector: {{{SQLSERVER}}}", "dbo.a,dbo.b", None),
        (f"exclude: [dbo.audit, crm.dbo.b]\nconnector: {{{SQLSERVER}}}", None, "dbo.audit"),
    ],
)
def test_the_connector_captures_what_its_source_reads(
    tmp_path: Path, text: str, included: str | None, excluded: str | None
) -> None:
    """Names are no patterns; SQL Server's lists know no database, so what one of them has is captured of all."""
    config = configuration(told(tmp_path, text).connector)
    assert (config.get("table.include.list"), config.get("table.exclude.list")) == (included, excluded)


def test_a_table_that_is_not_there_is_told_by_the_key_that_may_name_it(tmp_path: Path) -> None:
    """What is captured is what the source includes where its connector names no tables; `tables` beside it declares."""
    for text in (f"include: [shop.c]\nconnector: {{{MARIADB}}}", f"connector: {{{MARIADB}, tables: [shop.c]}}"):
        captured = told(tmp_path, text).connector
        assert captured is not None
        [found] = missing_tables(captured, ["shop.a"])
        assert (found.table, "`include`" in found.fix, "of the connector" in found.fix) == ("shop.c", True, True)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("kind: mysql, host: h, server_id: 7", "kind: mysql, host: h, server_id: 7", "server_id: .* has 7, too"),
        ("kind: mysql, host: h, server_id: 7", "kind: mysql, host: i, server_id: 7", ""),
        ("kind: mysql, host: h, server_id: 7", "kind: mysql, host: h, server_id: 8", ""),
        ("kind: postgresql, host: h, database: d", "kind: postgresql, host: h, database: e", "slot: .* has s_a, too"),
        ("kind: postgresql, host: h, database: d", "kind: postgresql, host: h, database: d, slot: x", ""),
        ("kind: oracle, host: h, database: d", "kind: oracle, host: h, database: d", ""),
        (
            "kind: oracle, host: h, database: d, name: x",
            "kind: oracle, host: i, database: d, name: x",
            "name: .* has x",
        ),
    ],
)
def test_connectors_do_not_take_from_each_other(tmp_path: Path, one: str, other: str, said: str) -> None:
    """A server ends the session of a reader whose id or slot another one uses; Connect has one connector per name."""
    (tmp_path / "sources").mkdir()
    for name, block in {"s.a": one, "s_a": other}.items():
        text = f"name: {name}\nconnector: {{user: u, {block}}}\n"
        (tmp_path / "sources" / f"{name}.yaml").write_text(text, encoding="utf-8")
    problems = Problems()
    sourcefile.load_sources(tmp_path / "sources", "k:1", {}, {}, problems)
    assert bool(problems.found) == bool(said)
    assert re.search(said, "".join(problems.found))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"connector: {{{LEAST}, password: topsecret}}", r"connector.password: .*plain text.*\$\{env:"),
        (f"connector: {{{LEAST}, config: {{database.ssl.keystore.password: topsecret}}}}", "plain text"),
        (f"connector: {{{LEAST}, config: {{x.sasl.jaas.config: 'a password=\"topsecret\";'}}}}", "x.sasl.jaas.config"),
        (f"connector: {{{LEAST}, config: {{topic.prefix: t}}}}", "topic.prefix is derived from"),
        (f"connector: {{{LEAST}, config: {{slot.name: t}}}}", "slot.name has a key of its own: write it as `slot`"),
        (f"connector: {{{LEAST}, config: {{table.exclude.list: a.c}}}}", "write it as `except_tables`"),
        (
            f"connector: {{{LEAST}, config: {{unavailable.value.placeholder: x}}}}",
            "write it as `placeholder` of the source",
        ),
        ("connector: {kind: postgresql, host: h, user: u}", "captures one database"),
        ("connector: {kind: sqlserver, host: h, user: u}", "which databases"),
        ("connector: {kind: mariadb, host: h, user: u}", "server_id"),
        ("connector: {kind: oracle, host: h, user: u, database: d, server_id: 1}", "server_id"),
        (
            "connector: {kind: mysql, host: h, user: u, server_id: 1, slot: x}",
            "slot and publication apply only to PostgreSQL",
        ),
        (f"connector: {{{LEAST}, column_list: [a.b.c], except_column_list: [a.b.d]}}", "not both"),
        (f"connector: {{{LEAST}, except_tables: [a.c]}}", "not both"),
        (f"connector: {{{LEAST}, form: outbox}}", "require each other"),
        (
            f"connector: {{{LEAST}, form: flattened, config: {{transforms: route}}}}",
            "transforms in config replaces that of form: flattened: write 'unwrap, route'",
        ),
        (f"connector: {{{LEAST}, name: a/b}}", "'a/b' cannot be part of an address"),
        (f"connector: {{{LEAST}, name: ..}}", "'..' cannot be part of an address"),
        (f"outbox: router\nconnector: {{{LEAST}}}", "require each other"),
        (f"topics: s.*\nconsistency: transaction\nconnector: {{{SQLSERVER}}}", "one order of all transactions"),
        (f"database: {{kind: mariadb, host: h, user: u}}\nconnector: {{{LEAST}}}", "the same kind"),
        (f"connector: {{{LEAST}, signals: s.signals}}", "looks like the topic of a table: name it s-signals"),
        (f"connector: {{{LEAST}, notifications: s.told}}", "looks like the topic of a table: name it s-notifications"),
        (f"connector: {{{LEAST}, config: {{decimal.handling.mode: exact}}}}", "decimal.handling.mode is 'exact'"),
        (f"connector: {{{LEAST}, hots: x}}", "did you mean 'host'"),
        (f"connector: {{{LEAST}, databases: [e]}}", "'connector.databases' is another spelling of a key that is given"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    """Before Connect hears of it; a secret is in no message."""
    with pytest.raises(ConfigError, match=said) as raised:
        told(tmp_path, text)
    assert "topsecret" not in str(raised.value)


def test_one_database_of_sql_server_has_one_order_of_its_transactions(tmp_path: Path) -> None:
    """So it may be shown in whole ones."""
    one = SQLSERVER.replace("[crm, erp]", "[crm]")
    assert told(tmp_path, f"topics: s.*\nconsistency: transaction\nconnector: {{{one}}}").whole_transactions


def test_a_reference_is_left_to_connect_and_a_variable_is_filled_in(tmp_path: Path) -> None:
    """``${env:X}`` is resolved by the worker, ``${X}`` by us."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "base.yaml").write_text("kafka: {bootstrap_servers: 'k:1'}", encoding="utf-8")
    (tmp_path / "dev.yaml").write_text("", encoding="utf-8")
    text = "{kind: mariadb, host: '${H}', user: u, password: '${env:H}', server_id: 1}"
    (tmp_path / "sources" / "s.yaml").write_text(f"name: s\nconnector: {text}", encoding="utf-8")
    config = configuration(settings.load(tmp_path, "dev", {"H": "there"}).source("s").connector)
    assert (config["database.hostname"], config["database.password"]) == ("there", "${env:H}")
    assert config["schema.history.internal.kafka.bootstrap.servers"] == "k:1"
