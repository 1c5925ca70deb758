"""What a connector is told by a signal, and what it says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from replicator.connect import notifications, signals, table_existence
from replicator.connect.configuration import CLASSES
from replicator.connect.notifications import Notification
from replicator.connect.signals import Signal, SnapshotRequest
from replicator.errors import ConfigError, ConnectorFailed, Unreachable

PG = {
    "connector.class": CLASSES["postgresql"],
    "topic.prefix": "shop",
    "table.include.list": r"sales\.(orders|lines),other.x{1\,2}",
    "signal.data.collection": "sales.signals",
}


def config(kind: str = "postgresql", **more: str | None) -> dict[str, str]:
    """A configuration that runs; a key without a value is left out."""
    made = {**PG, "connector.class": CLASSES[kind], **{key.replace("__", "."): value for key, value in more.items()}}
    return {key: value for key, value in made.items() if value is not None}


def test_an_incremental_snapshot_names_its_tables_and_nothing_else() -> None:
    """Names are regular expressions to Debezium: a dot is one."""
    signal = signals.build_signal(SnapshotRequest(("sales.orders", "sales.lines")), config())
    assert signal.type == "execute-snapshot"
    assert signal.data == {"data-collections": [r"sales\.orders", r"sales\.lines"], "type": "INCREMENTAL"}
    assert json.loads(signal.message()) == {"id": signal.id, "type": signal.type, "data": dict(signal.data)}
    assert (signal.row()[0], json.loads(signal.row()[2])) == (signal.id, dict(signal.data))
    assert signals.build_signal(SnapshotRequest(("sales.orders",)), config()).id != signal.id


def test_a_condition_is_a_filter_or_a_whole_query() -> None:
    """An incremental snapshot takes a condition, a blocking one a SELECT, quoted as its database does; only under its
    very name, not by an expression, is that one found (seen with Debezium 3.7: all rows were read).
    """

    def filter_of(kind: str, blocking: bool, table: str = "sales.orders", **more: str) -> tuple[str, str]:
        asked = SnapshotRequest((table,), where="id < 10", blocking=blocking)
        [condition] = signals.build_signal(asked, config(kind, **more)).data["additional-conditions"]
        return condition["data-collection"], condition["filter"]

    assert filter_of("postgresql", blocking=False) == (r"sales\.orders", "id < 10")
    whole = ("sales.orders", 'SELECT * FROM "sales"."orders" WHERE id < 10')
    assert filter_of("postgresql", blocking=True) == whole
    assert filter_of("mariadb", blocking=True)[1] == "SELECT * FROM `sales`.`orders` WHERE id < 10"
    servers = {"database__names": "prod"}
    assert filter_of("sqlserver", blocking=False, **servers) == (r"prod\.sales\.orders", "id < 10")
    assert filter_of("oracle", blocking=True, database__dbname="C", database__pdb__name="P") == (
        "P.sales.orders",
        'SELECT * FROM "sales"."orders" WHERE id < 10',
    )


@pytest.mark.parametrize(
    ("kind", "name", "quoted"),
    [
        ("mariadb", "a`b.t", "`a``b`.`t`"),
        ("postgresql", 'a"b.t', '"a""b"."t"'),
        ("sqlserver", "d.dbo.t", '"d"."dbo"."t"'),
        ("oracle", "d.s.t", '"s"."t"'),
    ],
)
def test_a_table_is_named_as_its_database_names_it(kind: str, name: str, quoted: str) -> None:
    """Oracle's statements have no database."""
    assert signals.quote(kind, name) == quoted


def test_what_is_under_way_can_be_stopped_whole_or_in_part() -> None:
    """Without tables the list is empty, which means all of them; a connector without a signal table can be told too."""
    assert signals.build_signal(SnapshotRequest((), stop=True), config()).data == {
        "data-collections": [],
        "type": "INCREMENTAL",
    }
    part = signals.build_signal(SnapshotRequest(("sales.orders",), stop=True), config(signal__data__collection=None))
    assert (part.type, part.data["data-collections"]) == ("stop-snapshot", [r"sales\.orders"])


@pytest.mark.parametrize(
    ("asked", "more", "said"),
    [
        (SnapshotRequest(()), {}, "needs table names"),
        (SnapshotRequest(("orders",)), {}, "'orders' is not a table name"),
        (SnapshotRequest(("shop.sales.orders",)), {}, "'shop.sales.orders' is not a table name"),
        (
            SnapshotRequest(("sales.order",)),
            {},
            r"sales.order is not captured: table\.include\.list is .*connect apply",
        ),
        (
            SnapshotRequest(("sales.orders",)),
            {"table__include__list": None, "table__exclude__list": "sales.o.*"},
            "exclude.list",
        ),
        (
            SnapshotRequest(("sales.orders",)),
            {"kind": "mariadb", "database__include__list": "shop"},
            "database.include.list",
        ),
        (SnapshotRequest(("sales.orders",)), {"schema__include__list": "public"}, "schema.include.list is public"),
        (SnapshotRequest(("sales.orders",)), {"signal__data__collection": None}, "needs a signal table.*--blocking"),
        (SnapshotRequest(("sales.orders", "sales.lines"), where="x"), {}, "--where applies to one table"),
        (SnapshotRequest((), stop=True, blocking=True), {}, "--stop applies to incremental snapshots only"),
        (
            SnapshotRequest(("sales.orders",), is_full=True, where="x"),
            {},
            "--remove-missing needs an incremental snapshot",
        ),
        (
            SnapshotRequest(("sales.orders",), is_full=True, blocking=True),
            {},
            "--remove-missing needs an incremental snapshot",
        ),
        (
            SnapshotRequest(("sales.orders",)),
            {"kind": "sqlserver", "database__names": "a,b"},
            "<database>.<schema>.<table>",
        ),
        (SnapshotRequest(("sales.orders",)), {"kind": "oracle"}, "<database>.<schema>.<table>"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(
    asked: SnapshotRequest, more: dict[str, Any], said: str
) -> None:
    """Before anything is sent, with the way out."""
    with pytest.raises(ConfigError, match=said):
        signals.build_signal(asked, config(**more))


def test_no_way_out_is_named_that_does_not_go_with_what_was_asked() -> None:
    """--remove-missing needs the end of an incremental snapshot: neither --no-wait nor --blocking is let beside it."""
    nothing = config(signal__data__collection=None)
    for whole in (False, True):
        with pytest.raises(ConfigError, match="signal_data_collection") as no_table:
            signals.build_signal(SnapshotRequest(("sales.orders",), is_full=whole), nothing)
        with pytest.raises(ConfigError, match="notifications") as no_end:
            signals.notifications("c", nothing, whole=whole)
        assert ("--blocking" in str(no_table.value), "--no-wait" in str(no_end.value)) == (not whole, not whole)


def test_a_list_that_names_tables_tells_which_one_may_be_meant() -> None:
    """Whether its points are escaped or not; expressions name none."""
    listed = config(table__include__list=r"sales\.orders, sales.lines,other\.x.*,a\.b\-c")
    assert signals.list_captured(listed) == ["sales.orders", "sales.lines", "a.b-c"]
    with pytest.raises(ConfigError, match=r"sales.order is not captured: .*; did you mean 'sales.orders'\?"):
        signals.build_signal(SnapshotRequest(("sales.order",)), listed)


SEEN = ["sales.orders", "sales.lines", "sales.signals", "hr.people"]
EVERYTHING = {"table__include__list": None}


@pytest.mark.parametrize(
    ("kind", "more", "seen", "table", "said"),
    [
        (
            "postgresql",
            EVERYTHING,
            SEEN,
            "sales.order",
            "u sees no table sales.order at the source; did you mean 'sales.or",
        ),
        ("postgresql", EVERYTHING, [], "sales.orders", "u sees no table"),
        ("postgresql", EVERYTHING, SEEN, "Sales.ORDERS", "u sees no table Sales.ORDERS .*sales.orders"),
        ("mariadb", EVERYTHING, SEEN, "sales.order", "did you mean 'sales.orders'"),
        (
            "mariadb",
            {"table__include__list": "sales[.].*"},
            SEEN,
            "sales.qqqqqqqqq",
            r"; known: sales.lines, sales.orders, s",
        ),
        ("sqlserver", {**EVERYTHING, "database__names": "db"}, SEEN, "db.sales.order", "sees no table db.sales.order"),
    ],
)
def test_a_table_that_is_not_there_is_refused_with_the_nearest_captured_one(
    kind: str, more: dict[str, str | None], seen: list[str], table: str, said: str
) -> None:
    """A connector would pass over it without a word."""
    with pytest.raises(ConfigError, match=said):
        table_existence.find_unverified([table], config(kind, **more), seen, "u")


def test_of_a_table_that_a_login_may_not_see_nobody_can_tell() -> None:
    """PostgreSQL shows all names to everyone, others do not; what is there, or listed by name, needs nobody's word."""
    listed = {"table__include__list": r"sales\.orders,sales\.l.*"}
    for seen in (None, [], ["sales.signals"], ["hr.people"]):
        found = table_existence.find_unverified(["sales.orders", "sales.lines"], config("mariadb", **listed), seen, "u")
        assert found == ["sales.lines"]
    assert table_existence.find_unverified(["sales.lines"], config(**listed), None, "") == ["sales.lines"]
    of_maria = config("mariadb", **listed)
    assert table_existence.find_unverified(["Sales.ORDERS", "sales.lines"], of_maria, SEEN, "u") == []


def test_captured_is_what_debezium_reads() -> None:
    """Case does not count, a comma may be part of an expression, one that only Java reads refuses no table; a blocking
    snapshot and a ``read.only`` connector need no signal table.
    """
    for name in ("Sales.ORDERS", "other.xx"):
        assert signals.build_signal(SnapshotRequest((name,)), config()).data["data-collections"] == [
            name.replace(".", r"\.")
        ]
    assert signals.build_signal(SnapshotRequest(("a.b",)), config(table__include__list=r"a\.\p{Lower}"))
    excluding = config(table__include__list=None, table__exclude__list=r"a\.\p{Lower},x\.y")
    assert [signals.excluding_key(name, excluding) for name in ("a.b", "x.y")] == ["", "table.exclude.list"]
    without: dict[str, Any] = {"signal__data__collection": None}
    assert signals.build_signal(SnapshotRequest(("sales.orders",), blocking=True), config(**without)).is_blocking
    assert signals.build_signal(SnapshotRequest(("sales.orders",)), config(**without, read__only="true"))


def test_a_table_of_mariadb_may_have_dots_in_its_name() -> None:
    """Its first dot ends the database's name; Debezium reads the table by incremental and by blocking snapshots."""
    maria = config("mariadb", table__include__list=r"sales\.dot\.ted", signal__data__collection="sales.my.signals")
    asked = SnapshotRequest(("sales.dot.ted",))
    assert signals.build_signal(asked, maria).data["data-collections"] == [r"sales\.dot\.ted"]
    [condition] = signals.build_signal(replace(asked, where="n > 1", blocking=True), maria).data[
        "additional-conditions"
    ]
    assert condition == {"data-collection": "sales.dot.ted", "filter": "SELECT * FROM `sales`.`dot.ted` WHERE n > 1"}
    assert signals.quote("mariadb", signals.table(maria)) == "`sales`.`my.signals`"
    assert table_existence.find_unverified(["sales.dot.ted"], maria, ["sales.dot.ted"], "u") == []
    with pytest.raises(ConfigError, match=r"u sees no table sales.dot.ted .*sales.dot.tet"):
        table_existence.find_unverified(["sales.dot.ted"], config("mariadb", **EVERYTHING), ["sales.dot.tet"], "u")


def test_channels_are_those_that_run() -> None:
    """The table unless said otherwise, a topic by name or Debezium's own; none at all is refused, so is silence."""
    assert (signals.table(config()), signals.topic(config())) == ("sales.signals", "")
    by_topic = config(signal__enabled__channels="kafka")
    assert (signals.table(by_topic), signals.topic(by_topic)) == ("", "shop-signal")
    both = config(signal__enabled__channels="source, kafka", signal__kafka__topic="t")
    assert (signals.table(both), signals.topic(both)) == ("sales.signals", "t")
    with pytest.raises(ConfigError, match=r"c reads no signals\. .*signal_data_collection.*signals: TOPIC"):
        signals.require_channel("c", config(signal__data__collection=None))
    told = {"notification__enabled__channels": "log, sink", "notification__sink__topic__name": "n"}
    assert signals.notifications("c", config(**told)) == "n"
    with pytest.raises(ConfigError, match=r"does not report the progress .*--no-wait"):
        signals.notifications("c", config(**{**told, "notification__enabled__channels": "log"}))


def value(
    type_: str, id_: str, aggregate: str = "Incremental Snapshot", *, wrapped: bool = False, **more: str
) -> bytes:
    """A notification as Debezium 3.7 writes it, recorded from a real snapshot."""
    told = {
        "id": id_,
        "type": type_,
        "aggregate_type": aggregate,
        "additional_data": {"connector_name": "shop", **more},
    }
    return json.dumps({"schema": {}, "payload": told} if wrapped else told).encode()


def heard(signal: Signal, *values: bytes | None) -> list[Notification]:
    """The notices of values that come in one batch each."""
    read = partial(notifications.parse_notification, of=signal, prefix="shop")
    return list(notifications.follow([[each] for each in values], read, lambda: None, patience=60))


def test_a_snapshot_is_followed_to_its_end() -> None:
    """Chunks, tables with their rows, the end; what others' snapshots say is not ours, with a schema or without."""
    signal = signals.build_signal(SnapshotRequest(("sales.orders",)), config())
    scanned = {"scanned_collection": "sales.orders", "total_rows_scanned": "1467", "status": "SUCCEEDED"}
    found = heard(
        signal,
        value("COMPLETED", "another"),
        None,
        b"no json",
        value("STARTED", signal.id, data_collections="sales.orders"),
        value("COMPLETED", "first", "Initial Snapshot"),
        value(
            "IN_PROGRESS", signal.id, current_collection_in_progress="sales.orders", chunk_index="2", total_chunks="9"
        ),
        value("TABLE_SCAN_COMPLETED", signal.id, wrapped=True, **scanned),
        value("COMPLETED", signal.id),
        value("STARTED", signal.id),
    )
    assert found == [
        Notification("STARTED", queue=("sales.orders",)),
        Notification("IN_PROGRESS", "sales.orders", chunk=2, chunks=9),
        Notification("TABLE_SCAN_COMPLETED", "sales.orders", "SUCCEEDED", 1467),
        Notification("COMPLETED"),
    ]
    [outcome] = notifications.outcomes(found, ["Sales.Orders"])
    assert (outcome.rows, outcome.failed) == (1467, False)


def test_a_later_signal_takes_the_notices_over_and_the_reading_for_an_earlier_one_is_not_ours() -> None:
    """The queue is one: a later signal gives it its id up to the end, and a table that was being read when ours came is
    read for us once more.
    """
    signal = signals.build_signal(SnapshotRequest(("sales.orders",)), config())
    queue = "sales.orders,sales.lines,sales.orders"
    scanned = partial(value, "TABLE_SCAN_COMPLETED", scanned_collection="sales.orders", status="SUCCEEDED")
    first = [
        value("IN_PROGRESS", "earlier", data_collections="sales.orders,sales.lines"),
        value("IN_PROGRESS", signal.id, current_collection_in_progress="sales.orders", data_collections=queue),
        scanned(signal.id, total_rows_scanned="7"),
    ]
    for end, outcome in (
        ([scanned("later", total_rows_scanned="8")], ("SUCCEEDED", 8)),
        ([value("ABORTED", "later")], ("ABORTED", None)),
    ):
        [read] = notifications.outcomes(heard(signal, *first, *end, value("COMPLETED", "later")), ["sales.orders"])
        assert (read.status, read.rows) == outcome


def test_a_blocking_snapshot_looks_as_a_first_one() -> None:
    """It has no id of ours: what such a snapshot of this connector says after the signal counts."""
    signal = signals.build_signal(SnapshotRequest(("sales.orders",), blocking=True), config())
    other = json.dumps(
        {"id": "1", "type": "STARTED", "aggregate_type": "Initial Snapshot", "additional_data": {"connector_name": "x"}}
    )
    found = heard(
        signal, other.encode(), value("STARTED", "2", "Initial Snapshot"), value("COMPLETED", "3", "Initial Snapshot")
    )
    assert [each.type for each in found] == ["STARTED", "COMPLETED"]


def test_a_table_that_was_not_read_is_told() -> None:
    """With the plugin's reason; stopped before; or not a word of it. The end of a name is enough."""
    failed = Notification("TABLE_SCAN_COMPLETED", "db.dbo.a", "NO_PRIMARY_KEY", 0)
    done = Notification("TABLE_SCAN_COMPLETED", "db.dbo.b", "EMPTY", 0)
    told = [
        (each.table, each.status, each.failed)
        for each in notifications.outcomes([failed, done], ["dbo.a", "dbo.b", "dbo.c"])
    ]
    assert told == [
        ("db.dbo.a", "NO_PRIMARY_KEY", True),
        ("db.dbo.b", "EMPTY", False),
        ("dbo.c", "NOT_FOUND", True),
    ]
    [stopped] = notifications.outcomes([Notification("ABORTED")], ["dbo.a"])
    assert (stopped.status, stopped.failed) == ("ABORTED", True)


def test_a_table_that_the_connector_does_not_know_yet_is_told_with_what_makes_it_known() -> None:
    """Renamed or moved in PostgreSQL and not changed since: Debezium repeats the expression of the signal."""
    signal = signals.build_signal(SnapshotRequest(("sales.lines",)), config())
    unknown: Any = {"scanned_collection": r"sales\.lines", "status": "UNKNOWN_SCHEMA", "total_rows_scanned": "0"}
    found = heard(signal, value("TABLE_SCAN_COMPLETED", signal.id, **unknown), value("COMPLETED", signal.id))
    [outcome] = notifications.outcomes(found, ["sales.lines"])
    assert (outcome.table, outcome.status, outcome.failed) == ("sales.lines", "UNKNOWN_SCHEMA", True)
    with pytest.raises(ConnectorFailed, match=r"sales.lines was not read: UNKNOWN_SCHEMA\. .*case.*--blocking"):
        notifications.require_read("shop", [outcome])


def test_a_snapshot_of_nothing_has_ended_as_it_begins() -> None:
    """Debezium finds no table with a blank in its name for an incremental snapshot, and never says that it is done."""
    signal = signals.build_signal(SnapshotRequest(("sales.order lines",)), config(table__include__list=None))
    found = heard(signal, value("STARTED", signal.id, data_collections=""), value("STARTED", "later"))
    assert [each.type for each in found] == ["STARTED"]
    [outcome] = notifications.outcomes(found, ["sales.order lines"])
    with pytest.raises(ConnectorFailed, match=r"sales.order lines was not read: NOT_FOUND\. .*--blocking"):
        notifications.require_read("shop", [outcome])


def test_a_table_that_was_not_read_is_not_called_read() -> None:
    """Neither as it is told nor in the end, where the error says where its cause stands."""
    failed = Notification("TABLE_SCAN_COMPLETED", "sales.a", "SQL_EXCEPTION", 0)
    done = Notification("TABLE_SCAN_COMPLETED", "sales.b", "SUCCEEDED", 1234)
    assert [failed.describe, done.describe] == ["sales.a was not read: SQL_EXCEPTION", "sales.b was read, 1,234 rows"]
    notifications.require_read("shop", [done])
    with pytest.raises(ConnectorFailed, match=r"sales.a was not read: SQL_EXCEPTION\. .*connect check shop") as error:
        notifications.require_read("shop", [done, failed])
    assert error.value.exit_code == 1
    keyless = replace(failed, status="NO_PRIMARY_KEY")
    with pytest.raises(ConnectorFailed, match=r"a primary key, or a unique index.*--blocking\.$"):
        notifications.require_read("shop", [done, keyless])


def test_waiting_ends_when_it_is_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing said in time: try again, with the causes; once there is an answer, it may take as long as it takes; a
    connector that failed meanwhile is told by its own error.
    """
    signal = signals.build_signal(SnapshotRequest(("sales.orders",)), config())
    read = partial(notifications.parse_notification, of=signal, prefix="shop")

    def failing() -> None:
        raise ConnectorFailed("it failed")

    silence: list[list[Any]] = [[] for _ in range(3)]
    answered = [[value("STARTED", signal.id)], *silence, [value("COMPLETED", signal.id)]]
    assert len(list(notifications.follow(answered, read, lambda: None, patience=0))) == 2
    with pytest.raises(
        Unreachable, match=r"did not respond to the signal within 0 s.*published.*restarted.*first change"
    ):
        list(notifications.follow(silence, read, lambda: None, patience=0))
    monkeypatch.setattr(notifications, "_LOOK_SECONDS", 0)
    with pytest.raises(ConnectorFailed):
        list(notifications.follow([[value("STARTED", signal.id)], *silence], read, failing, patience=0))
