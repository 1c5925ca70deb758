"""Whether PostgreSQL is ready to be captured, judged over answers written down; live in tests/stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replicator.databases.readiness.finding import format_bytes, is_captured
from replicator.databases.readiness.postgresql import evaluate
from replicator.spec import Connector

CONNECTOR = Connector(
    "shop", "postgresql", "shop", "h", 5432, "dbz", "${env:P}", databases=("shop",), tables=("sales[.].*",),
    except_tables=("sales.tmp",), slot="shop", publication="shop", signals="sales.signals",
)  # fmt: skip
ROLE = {
    "rolsuper": False, "rolreplication": True, "rolcanlogin": True, "rolbypassrls": False, "rolcreaterole": False,
    "rolcreatedb": False, "connects": True, "cloud": None,
}  # fmt: skip
TABLE = {
    "name": "sales.orders", "parts": None, "ancestors": None, "children": None, "alike": None, "unlogged": False,
    "identity": "d", "row_security": False, "forced": False, "key": ["id"], "immediate": True, "index": None,
    "large": None, "owned": False, "entered": True, "readable": True, "writable": False, "insertable": False,
}  # fmt: skip
SIGNALS = TABLE | {"name": "sales.signals", "writable": True, "insertable": True}
SLOT = {
    "slot_name": "shop", "plugin": "pgoutput", "database": "shop", "active": True, "wal_status": "reserved",
    "retained": 2048,
}  # fmt: skip
PUBLICATION = {
    "puballtables": False, "pubinsert": True, "pubupdate": True, "pubdelete": True, "pubtruncate": True,
    "pubviaroot": False,
}  # fmt: skip
VIA_ROOT = {"pubviaroot": True}
SETTINGS = {"wal_level": "logical", "max_replication_slots": "10", "max_slot_wal_keep_size": "1024"}


def answers(**changed: Any) -> dict[str, Any]:
    """A source at which all is well, but for what is changed."""
    settings, publication = SETTINGS | changed.pop("settings", {}), changed.pop("publication", {})
    told = {
        "settings": [{"name": name, "setting": value} for name, value in settings.items()],
        "role": [ROLE | changed.pop("role", {})],
        "slots": [SLOT | changed.pop("slot", {})],
        "publication": [] if publication is None else [PUBLICATION | publication],
        "published": [{"name": "sales.orders"}, {"name": "sales.signals"}],
        "tables": [TABLE | changed.pop("table", {}), TABLE | {"name": "sales.tmp", "key": None}, SIGNALS],
    }
    return told | changed


def bad(told: dict[str, Any], connector: Connector = CONNECTOR) -> list[tuple[str, str, str]]:
    """What is not ok: the level, what was looked at, and the fix."""
    return [(each.level, each.what, each.fix) for each in evaluate(told, connector) if each.level != "ok"]


def test_a_source_at_which_all_is_well_has_nothing_to_fix() -> None:
    """Everything is told as ok; a table that is not captured is not looked at."""
    assert bad(answers()) == []
    assert {each.what for each in evaluate(answers(), CONNECTOR)} == {
        "wal_level",
        "slot",
        "publication",
        "role",
        "table",
    }


@pytest.mark.parametrize(
    ("changed", "level", "what", "fix"),
    [
        ({"settings": {"wal_level": "replica"}}, "fix", "wal_level", "ALTER SYSTEM SET wal_level = 'logical'"),
        ({"settings": {"max_slot_wal_keep_size": "-1"}}, "advice", "max_slot_wal_keep_size", "SET max_slot_wal_keep"),
        ({"slot": {"wal_status": "lost"}}, "fix", "slot", "pg_drop_replication_slot('shop'); -- then take a new snap"),
        ({"slot": {"wal_status": "unreserved"}}, "fix", "slot", "Start the connector"),
        ({"slot": {"active": False}}, "advice", "slot", "pg_drop_replication_slot('shop')"),
        ({"slot": {"active": False, "retained": 2 << 30}}, "fix", "slot", "pg_drop_replication_slot('shop')"),
        ({"slot": {"plugin": "wal2json"}}, "fix", "slot", "another `slot`"),
        ({"slot": {"database": "other"}}, "fix", "slot", "another `slot`"),
        ({"slot": {"slot_name": "old", "active": False}}, "advice", "other slot", "pg_drop_replication_slot('old')"),
        ({"publication": {"puballtables": True}}, "advice", "publication", "Create one"),
        (
            {"publication": {"pubtruncate": False}},
            "fix",
            "publication",
            "publish = 'insert, update, delete, truncate'",
        ),
        (
            {"published": [{"name": "sales.signals"}]},
            "fix",
            "publication",
            'ALTER PUBLICATION "shop" ADD TABLE "sales"."orders";',
        ),
        (
            {"publication": None},
            "fix",
            "publication",
            'CREATE PUBLICATION "shop" FOR TABLE "sales"."orders", "sales"."signals";',
        ),
        ({"role": {"rolreplication": False}}, "fix", "role", 'ALTER ROLE "dbz" REPLICATION;'),
        ({"role": {"rolreplication": False, "cloud": False}}, "fix", "role", 'GRANT rds_replication TO "dbz";'),
        (
            {"role": {"rolreplication": False, "rolcanlogin": False, "cloud": False}},
            "fix",
            "role",
            'ALTER ROLE "dbz" LOGIN; GRANT rds_replication TO "dbz";',
        ),
        ({"role": {"rolcanlogin": False}}, "fix", "role", 'ALTER ROLE "dbz" LOGIN;'),
        ({"role": {"connects": False}}, "fix", "role", 'GRANT CONNECT ON DATABASE "shop" TO "dbz";'),
        ({"role": {"rolsuper": True, "rolcreatedb": True}}, "advice", "role", "NOSUPERUSER NOCREATEDB"),
        ({"table": {"key": None}}, "fix", "key", "ADD PRIMARY KEY"),
        ({"table": {"key": None, "identity": "f"}}, "advice", "key", "ADD PRIMARY KEY"),
        ({"table": {"identity": "n"}}, "fix", "replica identity", 'ALTER TABLE "sales"."orders" REPLICA IDENTITY DEF'),
        ({"table": {"identity": "i", "index": ["code"]}}, "fix", "replica identity", "REPLICA IDENTITY DEFAULT"),
        ({"table": {"immediate": False}}, "fix", "replica identity", "REPLICA IDENTITY FULL"),
        ({"table": {"large": {"at": "numeric[]"}}}, "advice", "replica identity", "REPLICA IDENTITY FULL"),
        ({"table": {"row_security": True}}, "fix", "row-level security", 'ALTER ROLE "dbz" BYPASSRLS;'),
        ({"table": {"row_security": True, "owned": True, "forced": True}}, "fix", "row-level security", "BYPASSRLS"),
        ({"table": {"readable": False}}, "fix", "grants", 'GRANT SELECT ON "sales"."orders" TO "dbz";'),
        ({"table": {"entered": False}}, "fix", "grants", 'GRANT USAGE ON SCHEMA "sales" TO "dbz";'),
        ({"table": {"writable": True}}, "advice", "grants", 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON "sales"."or'),
        ({"table": {"unlogged": True}}, "fix", "log", "SET LOGGED"),
        ({"table": {"alike": ["Name", "name"]}}, "fix", "columns", '"sales"."orders" RENAME COLUMN "name" TO'),
        ({"table": {"children": ["sales.late"]}}, "fix", "inheritance", "SELECT * FROM ONLY sales.orders"),
    ],
)
def test_one_fault_is_one_finding_with_its_fix(changed: dict[str, Any], level: str, what: str, fix: str) -> None:
    """Each alone, and nothing else is said beside it."""
    [found] = bad(answers(**changed))
    assert found[:2] == (level, what)
    assert fix in found[2]


@pytest.mark.parametrize(
    "changed",
    [
        {"role": {"rolreplication": False, "cloud": True}},
        {"table": {"row_security": True}, "role": {"rolbypassrls": True}},
        {"table": {"row_security": True, "owned": True}},
        {"table": {"owned": True, "writable": True}},
        {"table": {"key": None, "identity": "i", "index": ["code"]}},
        {"table": {"identity": "f", "large": {"at": "numeric[]"}}},
        {"table": {"large": {"tags": "text[]", "raw": "bytea", "days": "date[]", "paid": "money[]"}}},
        {"slots": []},
        {"table": {"parts": ["sales.o_1"]}, "publication": VIA_ROOT},
        {"table": {"ancestors": ["sales.all"]}},
    ],
)
def test_what_looks_like_a_fault_and_is_none(changed: dict[str, Any]) -> None:
    """Rights by another way, a key by another way, a slot that the connector makes, a table that is published by its
    own name.
    """
    assert bad(answers(**changed)) == []


def test_a_name_with_a_dot_is_one_name_in_the_fix() -> None:
    """Roles of managed services are mail addresses; only a table has a schema before its dot."""
    dotted = replace(CONNECTOR, user="dbz@shop.iam", databases=("shop.eu",), publication="shop.all")
    told = answers(
        role={"rolcanlogin": False, "connects": False}, table={"readable": False, "alike": ["a.B", "a.b"]},
        publication=None, slot={"database": "shop.eu"},
    )  # fmt: skip
    assert [fix.partition(";")[0] for _, _, fix in bad(told, dotted)] == [
        'ALTER ROLE "dbz@shop.iam" LOGIN',
        'GRANT CONNECT ON DATABASE "shop.eu" TO "dbz@shop.iam"',
        'ALTER TABLE "sales"."orders" RENAME COLUMN "a.b" TO …',
        'GRANT SELECT ON "sales"."orders" TO "dbz@shop.iam"',
        'CREATE PUBLICATION "shop.all" FOR TABLE "sales"."orders", "sales"."signals"',
    ]


LARGE = {
    "tags": "text[]", "codes": "uuid[]", "small": "smallint[]", "on": "boolean[]", "at": "numeric[]",
    "mood": "sales.mood[]", "raw": "bytea", "raws": "bytea[]", "days": "date[]",
}  # fmt: skip


@pytest.mark.parametrize("identity", ["d", "i"])
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "small, on, at, mood"),
        ({"binary.handling.mode": "base64"}, "small, on, at, mood, raw, raws"),
        ({"binary.handling.mode": "base64-url-safe"}, "small, on, at, mood"),
        ({"binary.handling.mode": "hex", "time.precision.mode": "isostring"}, "small, on, at, mood, raws, days"),
        ({"time.precision.mode": "connect"}, "small, on, at, mood, days"),
    ],
)
def test_large_values_without_a_placeholder_are_named(config: dict[str, str], told: str, identity: str) -> None:
    """debezium.md E2: Debezium 3.7 sends NULL for them when another column changes, in some modes of bytes and dates
    only.
    """
    table = {"large": LARGE, "identity": identity, "index": ["id"]}
    [found] = [e for e in evaluate(answers(table=table), replace(CONNECTOR, config=config)) if e.level != "ok"]
    assert (found.level, found.message) == (
        "advice",
        f"not FULL: large values of {told} arrive as NULL when other columns change",
    )


@pytest.mark.parametrize(
    ("table", "published", "via_root", "level", "fix"),
    [
        ({"parts": ["sales.o_1", "sales.o_2"]}, ["sales.other"], False, "fix", 'ADD TABLE "sales"."orders"'),
        ({"parts": ["sales.o_1", "sales.o_2"]}, ["sales.o_1"], False, "fix", 'ADD TABLE "sales"."orders"'),
        ({"parts": ["sales.o_1"]}, ["sales.o_1"], True, "fix", 'ADD TABLE "sales"."orders"'),
        ({"ancestors": ["sales.all"]}, ["sales.other"], True, "fix", 'ADD TABLE "sales"."orders"'),
        ({"ancestors": ["sales.all"]}, ["sales.all"], False, "fix", 'ADD TABLE "sales"."orders"'),
        ({"parts": ["old.o_1"]}, ["sales.orders", "old.o_1"], False, "fix", "publish_via_partition_root = true"),
        ({"parts": ["old.o_1", "sales.o_2"]}, ["old.o_1", "sales.o_2"], False, "advice", "publish_via_partition_root"),
        ({"ancestors": ["old.all"]}, ["old.all"], True, "fix", "Capture old.all"),
        ({"parts": ["sales.o_1"]}, ["sales.orders", "sales.o_1"], False, "fix", "Exclude sales.orders"),
        ({"ancestors": ["sales.all"]}, ["sales.all"], True, "fix", "Exclude sales.orders"),
        ({"ancestors": ["sales.y", "sales.all"]}, ["sales.y"], True, "fix", "Exclude sales.orders"),
    ],
)
def test_a_partitioned_table_is_published_by_its_own_root_or_all_of_its_own_parts(
    table: dict[str, list[str]], published: list[str], via_root: bool, level: str, fix: str
) -> None:
    """And its changes come under names that are captured, its own among them: else they are not applied, or a table
    that a snapshot filled gets none.
    """
    named = [{"name": name} for name in (*published, "sales.signals")]
    told = answers(table=table, published=named, publication={"pubviaroot": via_root})
    [(found, what, sql)] = bad(told)
    assert (found, what) == (level, "publication")
    assert fix in sql


def test_the_publication_that_is_proposed_leaves_out_what_no_log_has() -> None:
    """PostgreSQL refuses a publication with an UNLOGGED table, and to add one to it."""
    told = answers(publication=None)
    told["tables"].append(TABLE | {"name": "sales.cache", "unlogged": True})
    assert [fix for _, what, fix in bad(told) if what == "publication"] == [
        'CREATE PUBLICATION "shop" FOR TABLE "sales"."orders", "sales"."signals";'
    ]
    told = answers(table={"unlogged": True}, published=[{"name": "sales.signals"}])
    assert [what for _, what, _ in bad(told)] == ["log"]


def test_a_parent_that_is_read_alone_by_its_snapshots_needs_no_fix() -> None:
    """The keys that the finding proposes are its end."""
    told = answers(table={"children": ["sales.late"]})
    alone = {"snapshot.select.statement.overrides.sales.orders": "SELECT * FROM ONLY sales.orders"}
    assert bad(told, replace(CONNECTOR, config=alone)) == []


@pytest.mark.parametrize("tables", [("sales[.].*",), ("sales.orders",)])
def test_a_signal_table_that_no_incremental_snapshot_can_use_is_told(tables: tuple[str, ...]) -> None:
    """It is there, the connector's account may insert its watermarks, and they are published: captured by its own
    name or, as Debezium does, for being the signal table.
    """
    shop = replace(CONNECTOR, tables=tables)
    told = answers()
    assert bad(told, shop) == []
    told["tables"][-1] = SIGNALS | {"writable": False, "insertable": False}
    assert bad(told, shop) == [("fix", "signals", 'GRANT INSERT ON "sales"."signals" TO "dbz";')]
    assert bad(told, replace(shop, config={"read.only": "true"})) == []
    told["tables"].pop()
    [(level, what, fix)] = bad(told, shop)
    assert (level, what) == ("fix", "signals")
    assert fix.startswith('CREATE TABLE "sales"."signals" (id varchar(42) PRIMARY KEY, ')
    [unsent] = bad(answers(published=[{"name": "sales.orders"}]), shop)
    assert unsent == ("fix", "publication", 'ALTER PUBLICATION "shop" ADD TABLE "sales"."signals";')


def test_without_the_role_nothing_is_said_of_its_rights() -> None:
    """One thing to fix, not one per table."""
    told = answers(role={}, table={"readable": None, "entered": None, "owned": None, "writable": None})
    told["tables"][-1] = SIGNALS | {"insertable": None}
    told["role"] = []
    assert bad(told) == [("fix", "role", "CREATE ROLE \"dbz\" LOGIN REPLICATION PASSWORD '…';")]


def test_a_full_house_of_slots_and_a_missing_heartbeat_are_told() -> None:
    """The connector could not make its own slot; a quiet source would hold the log back."""
    others = [SLOT | {"slot_name": f"s{n}"} for n in range(10)]
    [full] = bad(answers(slots=others))
    assert full[:2] == ("fix", "max_replication_slots")
    [quiet] = bad(answers(), Connector(**{**vars(CONNECTOR), "heartbeat": 0}))
    assert quiet[:2] == ("advice", "heartbeat")


def test_a_table_that_is_named_and_absent_is_told_a_pattern_is_not() -> None:
    """Only a whole name can be wrong."""
    named = Connector(**{**vars(CONNECTOR), "tables": ("sales.orders", "sales.odrers", "sales[.]x.*")})
    [found] = [each for each in evaluate(answers(), named) if each.level != "ok"]
    assert (found.what, found.table) == ("table", "sales.odrers")


@pytest.mark.parametrize(
    ("patterns", "table", "taken"),
    [
        ((), "a.b", True),
        (("a.b",), "A.B", True),
        (("a.b",), "a.bc", False),
        (("a[.].*",), "a.bc", True),
        (("a.(",), "a.(", True),
        (("a.x", "a.b"), "a.b", True),
    ],
)
def test_tables_are_chosen_as_debezium_does(patterns: tuple[str, ...], table: str, taken: bool) -> None:
    """Whole names, in any case; what is no expression is a name."""
    assert is_captured(Connector(**{**vars(CONNECTOR), "tables": patterns, "except_tables": ()}), table) is taken


@pytest.mark.parametrize(
    ("config", "table", "taken"),
    [
        ({"schema.include.list": "sal.*, crm"}, "Sales.b", True),
        ({"schema.include.list": "sal.*, crm"}, "crm.b", True),
        ({"schema.include.list": "sal.*, crm"}, "audit.b", False),
        ({"schema.exclude.list": "audit"}, "audit.b", False),
        ({"schema.exclude.list": "audit"}, "sales.b", True),
    ],
)
def test_schemas_that_a_connector_leaves_out_are_not_looked_at(config: dict[str, str], table: str, taken: bool) -> None:
    """Otherwise the check would have tables published that nobody captures."""
    connector = replace(CONNECTOR, tables=(), except_tables=(), config=config)
    assert is_captured(connector, table) is taken


@pytest.mark.parametrize(("count", "told"), [(0, "0 B"), (1023, "1023 B"), (1536, "2 kB"), (3 << 30, "3 GB")])
def test_bytes_are_told_for_people(count: int, told: str) -> None:
    """With the unit that keeps them short."""
    assert format_bytes(count) == told
