"""Whether MariaDB, MySQL, SQL Server and Oracle are ready to be captured, judged over answers written down.

MariaDB's are live in tests/stack; SQL Server and Oracle cannot run here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from replicator.config.tablekeys import TableKeys, refuse_undeclared_columns
from replicator.databases.readiness import binlog, oracle, preflight, sqlserver
from replicator.spec import Connector, Login

MARIADB = Connector(
    "s", "mariadb", "s", "h", 3306, "dbz", "${env:P}", databases=("shop",), tables=("shop.*",), server_id=7
)
VARIABLES = {
    "log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "server_id": "1", "version": "10.11",
    "expire_logs_days": "10.000000", "binlog_expire_logs_seconds": "864000",
}  # fmt: skip
NEEDED = ("SELECT", "RELOAD", "SHOW DATABASES", "REPLICATION SLAVE", "BINLOG MONITOR", "LOCK TABLES")
DBZ = "'dbz'@'%'"


def altered(table: str, kind: str, extra: str = "", digits: int | None = None) -> dict[str, Any]:
    """A column ``f`` of which a snapshot is not like the table."""
    return {"name": table, "col": "f", "type": kind, "extra": extra, "digits": digits}


def of_mariadb(variables: dict[str, str] | None = None, **changed: Any) -> dict[str, Any]:
    """A server at which all is well, but for what is changed."""
    told = VARIABLES | (variables or {})
    return {
        "variables": [{"variable_name": name, "value": value} for name, value in told.items()],
        "tables": [
            {"name": "shop.orders", "engine": "InnoDB", "key_count": 1},
            {"name": "other.log", "engine": "Aria", "key_count": 0, "is_unique": 0},
        ],
        "unknown_types": [{"name": "other.hosts", "col": "at", "type": "inet6"}],
        "unknown_tables": [{"name": "other.ids", "type": "SEQUENCE"}],
        "unsigned": [{"name": "other.hits", "col": "n"}],
        "altered": [altered("other.hits", "bit", "INVISIBLE")],
        "cascades": [{"name": "other.lines", "parent": "orders"}],
        "privileges": [{"grantee": DBZ, "privilege": each, "scope": "*"} for each in NEEDED],
    } | changed


def bad(found: Any) -> list[tuple[str, str, str]]:
    """What is not ok."""
    return [(each.level, each.what, each.fix) for each in found if each.level != "ok"]


def test_a_binlog_at_which_all_is_well_has_nothing_to_fix() -> None:
    """Databases that are not captured are not looked at."""
    assert bad(binlog.evaluate(of_mariadb(), MARIADB)) == []


@pytest.mark.parametrize(
    ("variables", "changed", "level", "what", "fix"),
    [
        ({"log_bin": "OFF"}, {}, "fix", "log_bin", "log_bin = binlog"),
        ({"binlog_format": "MIXED"}, {}, "fix", "binlog_format", "SET GLOBAL binlog_format = 'ROW'"),
        ({"binlog_row_image": "MINIMAL"}, {}, "fix", "binlog_row_image", "SET GLOBAL binlog_row_image = 'FULL'"),
        ({"log_bin_compress": "ON"}, {}, "fix", "log_bin_compress", "SET GLOBAL log_bin_compress = OFF"),
        ({"binlog_row_value_options": "PARTIAL_JSON"}, {}, "fix", "binlog_row_value_options", "SET GLOBAL"),
        ({"server_id": "7"}, {}, "fix", "server_id", "another `server_id`"),
        ({"gtid_mode": "OFF"}, {}, "advice", "gtid_mode", "enforce_gtid_consistency"),
        ({"binlog_expire_logs_seconds": "3600"}, {}, "advice", "retention", "= 604800"),
        (
            {},
            {"tables": [{"name": "shop.x", "engine": "InnoDB", "key_count": 0, "is_unique": 0}]},
            "fix",
            "key",
            "`shop`.`x` ADD PRI",
        ),
        ({}, {"tables": [{"name": "shop.x", "engine": "MyISAM", "key_count": 1}]}, "advice", "engine", "InnoDB"),
        (
            {},
            {"unknown_tables": [{"name": "shop.x", "type": "SEQUENCE"}]},
            "fix",
            "table",
            "except_tables: ['shop.x']",
        ),
        ({}, {"unknown_types": [{"name": "shop.x", "col": "at", "type": "inet6"}]}, "fix", "type", "VARCHAR(45)"),
        ({}, {"cascades": [{"name": "shop.orders", "parent": "p"}]}, "advice", "cascade", "without CASCADE"),
        ({}, {"privileges": None}, "advice", "grants", ""),
    ],
)
def test_one_fault_of_a_binlog_is_one_finding_with_its_fix(
    variables: dict[str, str], changed: dict[str, Any], level: str, what: str, fix: str
) -> None:
    """Each alone, and nothing else is said beside it."""
    [found] = bad(binlog.evaluate(of_mariadb(variables, **changed), MARIADB))
    assert found[:2] == (level, what)
    assert fix in found[2]


@pytest.mark.parametrize(
    ("kind", "column", "said"),
    [
        ("mariadb", altered("shop.orders", "int", "INVISIBLE"), ["an incremental snapshot sends NULL for f"]),
        ("mysql", altered("shop.orders", "enum"), ["an incremental snapshot skips rows, since f in the key is ENUM"]),
        ("mysql", altered("shop.orders", "bit", digits=16), ["an incremental snapshot skips rows"]),
        ("mariadb", altered("shop.orders", "bit", digits=8), ["an incremental snapshot skips rows"]),
        ("mariadb", altered("shop.orders", "bit", digits=9), ["an incremental snapshot skips rows", "f is a key of"]),
    ],
)
def test_what_a_snapshot_alters_is_told(kind: str, column: dict[str, Any], said: list[str]) -> None:
    """An incremental one selects `*`, which leaves invisible columns out, and goes on behind the last key as the driver
    writes it, which is another order than the table's; the bits of a key are turned round twice, for key and row.
    """
    found = binlog.evaluate(of_mariadb(altered=[column]), replace(MARIADB, kind=kind))
    told = [each.message for each in found if each.level == "advice"]
    assert [text[: len(part)] for text, part in zip(told, said, strict=True)] == said


@pytest.mark.parametrize(
    ("config", "levels"),
    [
        ({}, ["advice"]),
        ({"bigint.unsigned.handling.mode": "long"}, ["advice"]),
        ({"bigint.unsigned.handling.mode": "precise"}, []),
        ({"datatype.propagate.source.type": ".+\\.BIGINT UNSIGNED"}, []),
    ],
)
def test_an_unsigned_number_that_comes_as_a_signed_one_is_told(config: dict[str, str], levels: list[str]) -> None:
    """types.md section 5: unless the connector sends a decimal, or says in its schema that the column is unsigned. What
    is advised is valid beside what a table's entry says of other columns.
    """
    told = of_mariadb(unsigned=[{"name": "shop.orders", "col": "id"}])
    found = bad(binlog.evaluate(told, replace(MARIADB, config=config)))
    assert [(level, what) for level, what, _ in found] == [(level, "type") for level in levels]
    assert all("{id: {type: bigint, unsigned: true}}" in fix for _, _, fix in found)
    for _, _, fix in found:
        entry = yaml.safe_load(fix.partition(" -- ")[0])
        others = {"keys": ["tenant", "id"], "apply_as_deletes": "gone = 1", "transform": {"mask": ["email"]}}
        table = TableKeys.model_validate({**entry, **others})
        refuse_undeclared_columns("shop.orders", table, table)


def test_how_long_a_binlog_is_kept_is_fixed_in_the_words_of_its_server() -> None:
    """An older one knows no seconds, and refuses what names them."""
    told = of_mariadb({"expire_logs_days": "1"})
    told["variables"] = [row for row in told["variables"] if row["variable_name"] != "binlog_expire_logs_seconds"]
    assert bad(binlog.evaluate(told, MARIADB)) == [("advice", "retention", "SET GLOBAL expire_logs_days = 7;")]


def test_databases_are_named_by_patterns_as_the_connector_takes_them() -> None:
    """`database.include.list` has regular expressions: without them no table was looked at, and all seemed well."""
    by_pattern = replace(MARIADB, databases=("sho.*",), tables=())
    found = binlog.evaluate(
        of_mariadb(tables=[{"name": "Shop.x", "engine": "MyISAM", "key_count": 0, "is_unique": 0}]), by_pattern
    )
    assert [what for _, what, _ in bad(found)] == ["key", "engine"]


def test_a_unique_index_of_not_null_columns_is_the_key_of_a_binlog_table_without_one() -> None:
    """The connector takes it for the key, so the rows can be identified: a primary key is advice."""
    [found] = [
        each
        for each in binlog.evaluate(
            of_mariadb(tables=[{"name": "shop.x", "engine": "InnoDB", "key_count": 0, "is_unique": 1}]), MARIADB
        )
        if each.level != "ok" and each.table == "shop.x"
    ]
    assert (found.level, found.what) == ("advice", "key")
    assert "its records have a unique index's key" in found.message


def test_rights_of_a_binlog_reader_are_told_both_ways() -> None:
    """Too few with the GRANT, too many with the REVOKE; SELECT on what is captured is enough."""
    few = [{"grantee": DBZ, "privilege": each, "scope": "*"} for each in NEEDED if each != "RELOAD"]
    assert bad(binlog.evaluate(of_mariadb(privileges=few), MARIADB)) == [
        ("fix", "grants", f"GRANT RELOAD ON *.* TO {DBZ};")
    ]
    many = [{"grantee": DBZ, "privilege": each, "scope": "*"} for each in (*NEEDED, "SUPER", "DROP")]
    assert bad(binlog.evaluate(of_mariadb(privileges=many), MARIADB)) == [
        ("advice", "grants", f"REVOKE DROP, SUPER ON *.* FROM {DBZ};")
    ]
    narrow = [{"grantee": DBZ, "privilege": each, "scope": "*"} for each in NEEDED if each != "SELECT"]
    narrow.append({"grantee": DBZ, "privilege": "SELECT", "scope": "shop"})
    assert bad(binlog.evaluate(of_mariadb(privileges=narrow), MARIADB)) == []


@pytest.mark.parametrize(
    ("scope", "is_enough"),
    [(r"my\_shop", True), (r"my\_%", True), ("my_shop", True), (r"my\_sho", False), ("my", False)],
)
def test_a_right_for_databases_names_them_by_a_pattern(scope: str, is_enough: bool) -> None:
    """The manual has `_` escaped in a GRANT, and the server keeps it so: it was taken for another database."""
    connector = replace(MARIADB, databases=("my_shop",), tables=("my_shop.*",), signals="my_shop.signals")
    rights = [{"grantee": DBZ, "privilege": each, "scope": "*"} for each in NEEDED if each != "SELECT"]
    rights += [{"grantee": DBZ, "privilege": each, "scope": scope} for each in ("SELECT", "INSERT")]
    tables = [{"name": f"my_shop.{each}", "engine": "InnoDB", "key_count": 1} for each in ("orders", "signals")]
    found = bad(binlog.evaluate(of_mariadb(tables=tables, privileges=rights), connector))
    assert [what for _, what, _ in found] == ([] if is_enough else ["grants", "signals"])


@pytest.mark.parametrize("scope", ["*", "shop", "shop.signals"])
def test_a_signal_table_into_which_a_binlog_reader_may_not_insert_is_told(scope: str) -> None:
    """Incremental snapshots write their watermarks there; a right for the table, its database or all will do."""
    shop = replace(MARIADB, signals="shop.signals", tables=("shop.orders",))
    told = of_mariadb()
    told["tables"].append({"name": "shop.signals", "engine": "InnoDB", "key_count": 1})
    assert bad(binlog.evaluate(told, shop)) == [("fix", "signals", f"GRANT INSERT ON `shop`.`signals` TO {DBZ};")]
    assert bad(binlog.evaluate(told, replace(shop, config={"read.only": "true"}))) == []
    told["privileges"].append({"grantee": DBZ, "privilege": "INSERT", "scope": scope})
    assert [what for _, what, _ in bad(binlog.evaluate(told, shop))] == (["grants"] if scope == "*" else [])
    told["tables"].pop()
    assert ("fix", "signals") in [each[:2] for each in bad(binlog.evaluate(told, shop))]


SQLSERVER = Connector(
    "t", "sqlserver", "t", "h", 1433, "dbz", "${env:P}", databases=("testDB",), tables=("dbo.customers", "dbo.Product")
)


def of_sqlserver(
    table: dict[str, Any] | None = None, database: dict[str, Any] | None = None, **changed: Any
) -> dict[str, Any]:
    """A server at which all is well, but for what is changed; ``_`` stands for the blank of a question's name."""
    customers = {"db": "testDB", "name": "dbo.customers", "tracked": True, "keyed": 1} | (table or {})
    own = {"db": "testDB", "name": "dbo.customers", "instance": "dbo_customers", "role": None, "uncaptured": 0}
    told = {
        "server": [{"edition": 3, "sysadmin": 0}],
        "agent": [{"status": "Running"}],
        "databases": [{"name": "testDB", "cdc": True, "read_only": False, "isolation": "ON"} | (database or {})],
        "jobs": [{"db": "testDB", "retention": 4320}],
        "tables testDB": [customers, customers | {"name": "dbo.Product", "tracked": True, "keyed": 1}],
        "instances testDB": [own, own | {"name": "dbo.Product", "instance": "dbo_Product"}],
        "rights testDB": [{"db": "testDB", "held": "db_datareader"}],
    }
    return told | {name.replace("_", " ", 1): value for name, value in changed.items()}


def instance(**changed: Any) -> dict[str, Any]:
    """A capture instance of dbo.customers."""
    found: dict[str, Any] = of_sqlserver()["instances testDB"][0] | changed
    return found


PRODUCT = of_sqlserver()["instances testDB"][1]
ENABLE = (
    "sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'customers', @role_name = NULL, @supports_net_changes"
)


def test_a_sql_server_at_which_all_is_well_has_nothing_to_fix() -> None:
    """Agent, database, tables and rights are told as ok."""
    found = sqlserver.evaluate(of_sqlserver(), SQLSERVER)
    assert bad(found) == []
    assert {each.what for each in found} == {"SQL Server Agent", "CDC", "table", "grants"}


@pytest.mark.parametrize(
    ("changed", "level", "what", "fix"),
    [
        ({"agent": [{"status": "Stopped"}]}, "fix", "SQL Server Agent", "SQLSERVERAGENT"),
        ({"agent": []}, "fix", "SQL Server Agent", "SQLSERVERAGENT"),
        ({"agent": None}, "advice", "SQL Server Agent", ""),
        ({"database": {"cdc": False}}, "fix", "CDC", "USE [testDB]; EXEC sys.sp_cdc_enable_db;"),
        ({"database": {"cdc": False, "read_only": True}}, "fix", "CDC", "sp_cdc_enable_db"),
        ({"database": {"isolation": "OFF"}}, "advice", "isolation", "ALLOW_SNAPSHOT_ISOLATION ON"),
        ({"databases": []}, "fix", "database", "Correct `databases`"),
        ({"jobs": [{"db": "testDB", "retention": 1440}]}, "advice", "retention", "@retention = 10080"),
        ({"table": {"tracked": False}, "instances_testDB": [PRODUCT]}, "fix", "CDC", f"{ENABLE} = 1;"),
        ({"table": {"keyed": 0}}, "fix", "key", "ALTER TABLE [dbo].[customers] ADD PRIMARY KEY"),
        (
            {"instances_testDB": [instance(uncaptured=2), PRODUCT]},
            "fix",
            "capture instance",
            f"{ENABLE} = 1, @capture_instance = N'dbo_customers_2';",
        ),
        (
            {"instances_testDB": [instance(uncaptured=2), instance(instance="second"), PRODUCT]},
            "advice",
            "capture instance",
            "sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'customers', @capture_instance = N'dbo_cust",
        ),
        (
            {"instances_testDB": [instance(role="readers"), PRODUCT]},
            "fix",
            "grants",
            "ALTER ROLE [readers] ADD MEMBER",
        ),
        ({"rights_testDB": []}, "fix", "grants", "ALTER ROLE db_datareader ADD MEMBER [dbz];"),
        ({"rights_testDB": [{"held": "db_owner"}]}, "advice", "grants", "ALTER ROLE db_owner DROP MEMBER [dbz];"),
        ({"server": [{"edition": 3, "sysadmin": 1}]}, "advice", "grants", "sysadmin DROP MEMBER [dbz];"),
    ],
)
def test_one_fault_of_a_sql_server_is_one_finding_with_its_fix(
    changed: dict[str, Any], level: str, what: str, fix: str
) -> None:
    """Each alone, and nothing else is said beside it."""
    [found] = bad(sqlserver.evaluate(of_sqlserver(**changed), SQLSERVER))
    assert found[:2] == (level, what)
    assert fix in found[2]


@pytest.mark.parametrize(
    ("own", "fix"),
    [
        (
            [instance(instance="dbo_customers_2", uncaptured=1)],
            f"{ENABLE} = 1, @capture_instance = N'dbo_customers_3';",
        ),
        (
            [instance(uncaptured=2), instance(instance="dbo_customers_2", uncaptured=1)],
            f"N'dbo_customers'; USE [testDB]; EXEC sys.{ENABLE} = 1, @capture_instance = N'dbo_customers_3';",
        ),
        (
            [instance(role="readers", uncaptured=1)],
            f"{ENABLE} = 1, @capture_instance = N'dbo_customers_2';".replace("NULL", "N'readers'"),
        ),
    ],
    ids=["a second time", "both lack one", "with a role"],
)
def test_a_further_capture_instance_can_be_made_as_printed(own: list[dict[str, Any]], fix: str) -> None:
    """SQL Server refuses a taken name and a third instance of a table; who may read the first may read the next."""
    told = of_sqlserver(
        rights_testDB=[{"held": "db_datareader"}, {"held": "readers"}], instances_testDB=[*own, PRODUCT]
    )
    [found] = bad(sqlserver.evaluate(told, SQLSERVER))
    assert found[:2] == ("fix", "capture instance")
    assert fix in found[2]


def test_of_two_capture_instances_the_older_one_is_disabled() -> None:
    """The newer one is what the connector goes on with; a column that was retyped is in both. Both are asked for in
    the order in which they were made.
    """
    older, newer = instance(instance="first"), instance(instance="a second")
    [found] = bad(sqlserver.evaluate(of_sqlserver(instances_testDB=[older, newer, PRODUCT]), SQLSERVER))
    assert "@capture_instance = N'first';" in found[2]
    assert preflight.queries(SQLSERVER)["instances testDB"].rstrip().endswith("ORDER BY c.create_date")


def test_a_sysadmin_needs_no_role_to_read_changes() -> None:
    """It reads everything; that it is too much is said once."""
    told = of_sqlserver(
        server=[{"edition": 3, "sysadmin": 1}], rights_testDB=[], instances_testDB=[instance(role="readers"), PRODUCT]
    )
    assert [each[:2] for each in bad(sqlserver.evaluate(told, SQLSERVER))] == [("advice", "grants")]


def test_a_table_without_a_key_is_enabled_without_net_changes() -> None:
    """They need a key or a unique index; an Azure SQL database has no Agent."""
    told = of_sqlserver({"tracked": False, "keyed": 0}, server=[{"edition": 5, "sysadmin": 0}], agent=[])
    key, cdc = bad(sqlserver.evaluate(told, SQLSERVER))
    assert (key[1], cdc[1]) == ("key", "CDC")
    assert f"{ENABLE} = 0;" in cdc[2]


def test_every_database_of_a_sql_server_is_asked_by_its_name() -> None:
    """Names are quoted as brackets and texts want it; everything about the user is an argument."""
    asked = preflight.queries(replace(SQLSERVER, databases=("a]b", "c'd")))
    assert "[a]]b].sys.tables" in asked["tables a]b"]
    assert "N'c''d'" in asked["rights c'd"]
    assert all("dbz" not in sql for sql in asked.values())


def test_a_name_with_a_dot_is_one_name_in_the_fix() -> None:
    """A login of a domain often has one, and a database may; only a table has a schema before its dot."""
    dotted = replace(SQLSERVER, user="SHOP\\ann.lee", databases=("shop.eu",), tables=("dbo.customers",))
    told = of_sqlserver() | {
        "databases": [{"name": "shop.eu", "cdc": 1, "read_only": 0, "isolation": "ON"}], "rights shop.eu": [],
        "tables shop.eu": [{"db": "shop.eu", "name": "dbo.customers", "tracked": True, "keyed": 0}],
    }  # fmt: skip
    key, grants = (fix for _, _, fix in bad(sqlserver.evaluate(told, dotted)))
    assert key.startswith("ALTER TABLE [dbo].[customers] ADD PRIMARY KEY")
    assert grants == "USE [shop.eu]; ALTER ROLE db_datareader ADD MEMBER [SHOP\\ann.lee];"
    assert "FROM [shop.eu].sys.tables" in preflight.queries(dotted)["tables shop.eu"]
    [_, column] = bad(
        binlog.evaluate(of_mariadb(altered=[altered("shop.orders", "bit", digits=9) | {"col": "f.g"}]), MARIADB)
    )
    assert column[2].startswith("ALTER TABLE `shop`.`orders` MODIFY `f.g` ")


ORACLE = Connector("e", "oracle", "e", "h", 1521, "c##dbz", "${env:P}", databases=("ORCL",), tables=("ERP.ORDERS",))


def of_oracle(**changed: Any) -> dict[str, Any]:
    """A server at which all is well, but for what is changed."""
    held = (*oracle._NEEDED, "SET CONTAINER")
    return {
        "database": [{"log_mode": "ARCHIVELOG", "minimal": "YES", "whole": "NO"}],
        "redo": [{"smallest": 1 << 30}],
        "tables": [{"name": "ERP.ORDERS", "key_count": 1}, {"name": "HR.PEOPLE", "key_count": 0}],
        "logged": [{"name": "ERP.ORDERS"}],
        "columns": [{"name": "HR.PEOPLE", "col": "CV", "type": "CLOB"}],
        "privileges": [{"privilege": each} for each in held],
    } | changed


def test_an_oracle_at_which_all_is_well_has_nothing_to_fix() -> None:
    """Tables that are not captured are not looked at."""
    assert bad(oracle.evaluate(of_oracle(), ORACLE)) == []


@pytest.mark.parametrize(
    ("changed", "level", "what", "fix"),
    [
        (
            {"database": [{"log_mode": "NOARCHIVELOG", "minimal": "YES", "whole": "NO"}]},
            "fix",
            "log_mode",
            "ARCHIVELOG;",
        ),
        (
            {"database": [{"log_mode": "ARCHIVELOG", "minimal": "NO", "whole": "NO"}]},
            "fix",
            "supplemental logging",
            "ADD",
        ),
        ({"redo": [{"smallest": 200 << 20}]}, "advice", "redo logs", "ADD LOGFILE"),
        ({"logged": []}, "fix", "supplemental logging", '"ERP"."ORDERS" ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS;'),
        ({"tables": [{"name": "ERP.ORDERS", "key_count": 0}]}, "fix", "key", "ADD PRIMARY KEY"),
        ({"columns": [{"name": "ERP.ORDERS", "col": "X" * 31, "type": "DATE"}]}, "fix", "name", "Rename it"),
        ({"columns": [{"name": "ERP.ORDERS", "col": "DOC", "type": "CLOB"}]}, "advice", "large object", "lob.enabled"),
        ({"privileges": [{"privilege": "DBA"}]}, "advice", "grants", "REVOKE DBA FROM c##dbz;"),
        ({"privileges": [{"privilege": "CREATE SESSION"}]}, "fix", "grants", "GRANT FLASHBACK ANY TABLE"),
        ({"privileges": []}, "advice", "grants", ""),
    ],
)
def test_one_fault_of_an_oracle_is_one_finding_with_its_fix(
    changed: dict[str, Any], level: str, what: str, fix: str
) -> None:
    """Each alone, and nothing else is said beside it."""
    [found] = bad(oracle.evaluate(of_oracle(**changed), ORACLE))
    assert found[:2] == (level, what)
    assert fix in found[2]


def test_what_an_oracle_user_has_through_roles_it_does_not_lack() -> None:
    """CONNECT holds CREATE SESSION; a role of one's own may hold all, and is not to be revoked then."""
    own = [{"privilege": each, "is_role": 1} for each in ("C##CAPTURE", "CONNECT")]
    through = [{"privilege": each} for each in ("CONNECT", *oracle._NEEDED)]
    assert bad(oracle.evaluate(of_oracle(privileges=own, through=through), ORACLE)) == []
    [lacks] = bad(oracle.evaluate(of_oracle(privileges=own, through=through[:-1]), ORACLE))
    assert lacks[2].startswith("GRANT LOCK ANY TABLE TO c##dbz;")
    spare = [*own, *({"privilege": each, "is_role": 0} for each in oracle._NEEDED)]
    assert [fix for _, _, fix in bad(oracle.evaluate(of_oracle(privileges=spare), ORACLE))] == [
        "REVOKE C##CAPTURE FROM c##dbz;"
    ]


def test_an_oracle_that_logs_every_column_of_every_table_needs_no_log_group() -> None:
    """The whole database, or table by table."""
    whole = [{"log_mode": "ARCHIVELOG", "minimal": "YES", "whole": "YES"}]
    assert bad(oracle.evaluate(of_oracle(database=whole, logged=[]), ORACLE)) == []


def test_a_user_that_only_kafka_connect_knows_is_the_one_that_asks() -> None:
    """``${env:X}`` is no name of an account."""
    login = Login("mariadb", "h", 3306, "looker")
    assert preflight.query_parameters(login, replace(MARIADB, user="${env:U}"))["user"] == "looker"
    assert preflight.query_parameters(login, MARIADB)["user"] == "dbz"


def test_a_question_is_given_the_values_that_it_names_and_no_other() -> None:
    """Oracle's client refuses a value that a statement does not name: `:user` is not named by `:username`."""
    login = Login("oracle", "h", 1521, "c##dbz")
    told = preflight.query_parameters(login, ORACLE)
    for sql in oracle.QUERIES.values():
        assert set(preflight.used_parameters("oracle", sql, told)) == set(re.findall(r":(\w+)", sql))
    assert preflight.used_parameters("oracle", oracle.QUERIES["privileges"], told) == {"username": "c##dbz"}
    assert preflight.used_parameters("mariadb", binlog.QUERIES["privileges"], told) == {"user": "c##dbz"}
