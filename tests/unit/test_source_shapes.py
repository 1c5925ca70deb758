"""What a source's file says about the shapes of its records: refused aloud where it cannot be meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replicator.config.sourcefile import load_declare_file, load_sources
from replicator.config.yamlfile import Problems
from replicator.errors import ConfigError
from replicator.spec import AGGREGATE_ID, Outbox, SourceSpec

PAGE = Path(__file__).parents[2] / "docs/shapes.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def source(folder: Path, text: str) -> SourceSpec:
    (folder / "s.yaml").write_text(text)
    problems = Problems()
    found = load_sources(folder, "", {}, {}, problems)
    problems.raise_if_any()
    return found[0][0]


@pytest.mark.parametrize("block", BLOCKS, ids=["names", "compacted", "router"])
def test_the_examples_of_the_documentation_are_valid(tmp_path: Path, block: str) -> None:
    """What a reader copies out of docs/shapes.md loads."""
    assert source(tmp_path, block).name in ("shop", "outbox")


def test_an_outbox_is_declared_by_its_mode(tmp_path: Path) -> None:
    """I4: it must be chosen; a word alone is enough."""
    told = source(
        tmp_path,
        "name: s\ntopics: .*\ntables:\n"
        "  shop.events: {outbox: log}\n"
        "  shop.image: {outbox: current}\n"
        "  event.order: {outbox: router, columns: {payload: bytes}}\n"
        "  event.cart: {outbox: {mode: router, empty_payload: delete, topic: carts}, keys: [aggregate_id]}\n",
    )
    assert [declared.outbox for declared in told.tables] == [
        Outbox("log"),
        Outbox("current"),
        Outbox("router", binary=True),
        Outbox("router", key=AGGREGATE_ID, null_deletes=True, topic="carts"),
    ]
    assert told.declaration("shop.other").outbox is None


def test_what_a_source_says_holds_for_tables_that_say_nothing(tmp_path: Path) -> None:
    """A router writes a topic per kind of aggregate: nobody wants to list them."""
    told = source(
        tmp_path,
        "name: outbox\noutbox: router\ndeletes: rewrite\ntables:\n"
        "  event.order: {keys: [aggregate_id]}\n  a.b: {outbox: current, deletes: tombstone}\n",
    )
    assert told.declaration("event.any").outbox == Outbox("router")
    assert told.declaration("event.order").outbox == Outbox("router", key=AGGREGATE_ID)
    assert (told.declaration("event.order").deletes, told.declaration("a.b").deletes) == ("rewrite", "tombstone")


def test_one_table_of_a_compacted_source_need_not_be(tmp_path: Path) -> None:
    """B5: what a table says goes before what its source says."""
    told = source(tmp_path, "name: s\ncompacted_topic: true\ntables: {a.b: {}, a.c: {compacted_topic: false}}\n")
    assert [told.declaration(table).compacted_topic for table in ("a.b", "a.c", "a.d")] == [True, False, True]


def test_the_signal_table_is_named_as_in_the_connector(tmp_path: Path) -> None:
    """H4: some connectors put the database before the schema."""
    assert source(tmp_path, "name: s\nsignal_data_collection: db.dbo.signals\n").signals == "dbo.signals"
    assert source(tmp_path, "name: s\nsignal_data_collection: s.signals\n").signals == "s.signals"


def test_a_file_declares_the_same_of_recorded_events(tmp_path: Path) -> None:
    """What holds for the whole source is not lost with `run --recorded --declare`."""
    path = tmp_path / "declare.yaml"
    path.write_text("name: s\nsignal_data_collection: s.signals\noutbox: log\ntables: {a.b: {}}\n")
    told = load_declare_file(path)
    assert (told.signals, told.declaration("a.b").outbox, told.declaration("x.y").outbox) == (
        "s.signals",
        Outbox("log"),
        Outbox("log"),
    )


def test_a_topic_is_named_as_debezium_names_it(tmp_path: Path) -> None:
    """What is declared of a table applies to its topic, whatever characters the table's name has."""
    told = source(tmp_path, "name: s\ntables: {a.b c: {shape: flattened}, a.ñ: {shape: envelope}}\n")
    assert (told.reading.flattened, told.envelope_topics) == (("s.a.b_c",), ("s.a._",))


def test_what_a_table_of_events_may_declare_does_not_depend_on_where_the_router_is_declared(tmp_path: Path) -> None:
    """Its columns are known: a key or a step of its transform need not be declared beside the payload."""
    table = "{columns: {payload: bytes}, keys: [aggregate_id], transform: {except_column_list: [headers]}}"
    of_source = source(tmp_path, f"name: s\noutbox: router\ntables: {{a.b: {table}}}\n")
    of_table = source(tmp_path, f"name: s\ntables: {{a.b: {table.replace('{', '{outbox: router, ', 1)}}}\n")
    assert of_source.tables == of_table.tables
    assert of_source.tables[0].outbox == Outbox("router", key=AGGREGATE_ID, binary=True)


def test_only_tables_with_times_are_ordered_by_them(tmp_path: Path) -> None:
    """Events of the router may lie beside them, in the order of their offsets."""
    events = "a.b: {outbox: router, sequence_by: position}"
    told = source(tmp_path, f"name: s\nsequence_by: source.ts_ms\ntables: {{{events}, a.c: {{}}}}\n")
    assert (told.by_time("a.b"), told.by_time("a.c")) == (False, True)


def test_shapes_are_declared_per_table(tmp_path: Path) -> None:
    """A1: overridable."""
    told = source(tmp_path, "name: s\ntables: {a.b: {shape: flattened}, a.c: {shape: envelope}, a.d: {}}\n")
    assert (told.reading.flattened, told.envelope_topics) == (("s.a.b",), ("s.a.c",))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("deletes: drop", "accept_lost_deletes: true"),
        ("tables: {a.b: {deletes: drop}}", "accept_lost_deletes: true"),
        ("tables: {a.b: {outbox: {mode: log, topic: x}}}", "apply only to mode router"),
        ("tables: {a.b: {outbox: {mode: router, topics: x}}}", "unknown key"),
        ("tables: {a.b: {outbox: rooter}}", "'router', 'log' or 'current'"),
        ("tables: {a.b: {outbox: {mode: router, empty_payload: delete}}}", "needs keys: [aggregate_id]"),
        ("tables: {a.b: {outbox: router, keys: [x]}}", "the key id or aggregate_id"),
        ("tables: {a.b: {outbox: router, columns: {x: int}}}", "only the payload can be declared"),
        ("outbox: router\ntables: {a.b: {keys: [x]}}", "the key id or aggregate_id"),
        ("outbox: {mode: router}\ntables: {a.b: {columns: {x: int}}}", "only the payload can be declared"),
        ("tables: {a.b: {outbox: router}}\nmask_before_bronze: {a.b: {drop: [x]}}", "no columns to hide"),
        ("outbox: router\nmask_before_bronze: {a.b: {drop: [x]}}", "no columns to hide"),
        ("outbox: {mode: router, topic: x}", "only a mode"),
        ("outbox: {mode: router, empty_payload: delete}", "only a mode"),
        ("database: {kind: mariadb, host: h, user: u, port: on}", "database.port: must be a whole number"),
        ("tables: {a.b: {outbox: {mode: router, topic: carts}}}", "'carts' is not read"),
        ("compacted_topic: true\nsequence_by: source.ts_ms", "compacted_topic needs positions"),
        ("tables: {a.b: {compacted_topic: true, sequence_by: source.ts_ms}}", "compacted_topic of a.b needs positions"),
        ("sequence_by: source.ts_ms\ntables: {a.b: {outbox: router}}", "outbox of a.b: events of the router have no"),
        ("sequence_by: source.ts_ms\noutbox: router", "outbox: events of the router have no source.ts_ms"),
        ("include: [a.b]\nconsistency: transaction", "s.transaction: give topics"),
        ("outbox: router\nconsistency: transaction", "which the outbox router does not send"),
        ("mask_before_bronze: {a.b: {hash: [x]}}", "a.b has hashed columns: give hash_key"),
        ("mask_before_bronze: {a.b: {}}", "give columns to hash or to drop"),
        (
            "tables: {a.b: {compacted_topic: true}}\nconsistency: transaction",
            "those that compaction removed never arrive",
        ),
        (
            "tables: {a.b: {shards: 'a[0-9].b', shard_column: s, truncate: fail}}\nconsistency: transaction",
            "shards have table names of their own",
        ),
        (
            "tables: {a.b: {shards: 'a[0-9].b', shard_column: s, truncate: fail, keys: [id, S]}}",
            "'s' is added to the key",
        ),
        (
            "tables: {a.b: {shards: 'a[0-9].b', shard_column: s, truncate: fail, transform: {mask: [S]}}}",
            "no step of the transform may name it",
        ),
        (
            "tables: {a.b: {shards: 'a[0-9].b', shard_column: s, truncate: fail, transform: {derive: {s: x}}}}",
            "no step of the transform may name it",
        ),
        ("consistency: strict", "'eventual' or 'transaction'"),
        ("avro_bytes: utf8", "'base64' or 'latin1'"),
        ("signal_data_collection: signals", "<database or schema>.<table>"),
        ("tables: {a.b: {shape: flat}}", "'envelope' or 'flattened'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """F2: no deletes, ever, must be accepted in words; unknown keys and values are refused."""
    with pytest.raises(ConfigError) as refused:
        source(tmp_path, f"name: s\n{text}\n")
    assert sentence in str(refused.value)


def test_lost_deletes_can_be_accepted(tmp_path: Path) -> None:
    """F2: the user has said so."""
    told = source(tmp_path, "name: s\ntables: {a.b: {deletes: drop, accept_lost_deletes: true}}\n")
    assert told.declaration("a.b").deletes == "drop"


@pytest.mark.parametrize("placeholder", ["hex:", "hex:4e2", "hex:4e 2f", "hex:zz"])
def test_a_placeholder_in_hex_is_bytes(tmp_path: Path, placeholder: str) -> None:
    """E1: what is none ended a run with Python's own words, and `hex:` alone made every empty text one that was not
    sent.
    """
    with pytest.raises(ConfigError, match="placeholder: hex: must be followed by pairs of hex digits"):
        source(tmp_path, f"name: s\nplaceholder: '{placeholder}'\n")
    assert source(tmp_path, "name: s\nplaceholder: 'hex:4E2f41'\n").placeholder == "hex:4E2f41"
