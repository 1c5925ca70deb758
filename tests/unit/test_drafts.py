"""``schema infer``: declarations drafted from records (types.md Y14)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from replicator.debezium.event_reader import KafkaRecord as Told
from replicator.debezium.jsontext import loads
from replicator.debezium.type_guesses import ColumnProfile, Guess, guess_type
from replicator.debezium.type_parser import parse_type
from replicator.operate.drafts import draft_tables, to_yaml
from tests.builders import UNSENT, Record, envelope, record, wrapped
from tests.cli import said
from tests.type_vectors import base64_of

LONG = "number of more than 15 digits"
FIVE = "8401d6ba-8e2d-4a41-a3c4-1e7a5f1c2f3b"


def guessed(*texts: str) -> Guess:
    values = ColumnProfile()
    for text in texts:
        values.see(loads(text))
    return guess_type(values)


@pytest.mark.parametrize(
    ("texts", "type_", "remark"),
    [
        (["1", "null", "-7"], "bigint", ""),
        (["1", "1.5"], "double", "or decimal_number(18,1)"),
        (["1.5", '"NaN"'], "double", "or decimal_number(18,1)"),
        (["1.5", "999999999999999"], "double", "or decimal_number(18,1)"),
        (
            ["1.5", "9007199254740993"],
            None,
            "bigint and double: kept as exact text; or double, decimal_number(18,1)",
        ),
        (["1e-7"], "double", "or decimal_number(18,7)"),
        (["true"], "boolean", ""),
        (["20454", "9681"], "bigint", "or date (2026-01-01)"),
        (["20454", "7"], "bigint", ""),
        (["1767225600000"], "bigint", "or timestamp (2026-01-01 00:00:00)"),
        (["1767225600000001"], "bigint", "or micro_timestamp (2026-01-01 00:00:00.000001)"),
        (["1767225600000000000"], "bigint", "or nano_timestamp (2026-01-01 00:00:00)"),
        (['"12.50"', '"-1.5"'], "string", "or decimal_string(18,2)"),
        (['"12.50"', '"twelve"'], "string", ""),
        ([f'"1.{"0" * 38}"'], "string", ""),
        (['"2026-01-01T00:00:00Z"', '"2026-01-01T00:00:00.5+01:00"'], "string", "or zoned_timestamp"),
        (['"2026-01-01"'], "string", "or iso_date"),
        ([f'"{FIVE}"'], "string", "or uuid"),
        (['"{\\"a\\": 1}"'], "string", "or json"),
        (['"BNI="', '"AYag"'], "string", "or decimal(18,?) of the digits 1234, bytes"),
        (['"BNI="', base64_of(-(10**30))], "string", "or decimal(31,?) of the digits 1234, bytes"),
        (['"BNI="', base64_of(10**38)], "string", ""),
        (['"Ship"', '"Boat"'], "string", ""),
        ([], None, "NULL in all records"),
        (["null"], None, "NULL in all records"),
        (["1", '"x"'], None, "bigint and string: kept as exact text"),
        (['{"a": 1}'], None, "object: kept as exact text"),
        (["[1]"], None, "list: kept as exact text"),
        (["12345678901234567890"], None, f"{LONG}: kept as exact text"),
        (["0.1234567890123456"], None, f"{LONG}: kept as exact text; or double, decimal_number(18,16)"),
    ],
)
def test_a_guess_holds_all_values_and_offers_the_rest(texts: list[str], type_: str | None, remark: str) -> None:
    """Y14: no number or text becomes a decimal, a date or a time by itself; what they may be is named."""
    assert guessed(*texts) == Guess(type_, remark)
    for offered in re.findall(r"\w+(?:\(\d+,\d+\))?", remark.partition("or ")[2].split(" (")[0]):
        if "?" not in remark:
            parse_type(offered)


def drafted(*records: Record) -> str:
    each = [[None if text is None else text.encode() for text in (it.key, it.value)] for it in records]
    return to_yaml(
        draft_tables(Told(it.topic, 0, it.offset, None, *texts) for it, texts in zip(records, each, strict=True)),
        "a test",
    )


def order(key: Any, after: dict[str, Any], op: str = "c") -> Record:
    return record("s.shop.orders", 0, key, envelope(op, after))


def test_a_draft_is_a_declaration_with_remarks() -> None:
    """Columns of the key, of both images and of all records, in their order; odd names are quoted, nothing that a row
    says is told, and what was not sent tells nothing.
    """
    first = order({"id": 1}, {"id": 1, "total": "12.50", "yes": True, "who: me": "secret", "note": UNSENT})
    second = order({"id": 1}, {"id": 1, "total": None, "note": None, "more": {"a": 1}}, "u")
    text = drafted(first, second)
    assert yaml.safe_load(text) == {
        "tables": {
            "shop.orders": {
                "columns": {"id": "bigint", "total": "string", "yes": "boolean", "who: me": "string"},
            }
        }
    }
    assert text.splitlines()[2:] == [
        "tables:",
        "  shop.orders: # 2 records",
        "    columns:",
        "      id: bigint",
        "      total: string # or decimal_string(18,2)",
        "      'yes': boolean",
        "      'who: me': string",
        "      # note: # NULL in all records",
        "      # more: # object: kept as exact text",
    ]


def test_what_records_carry_is_not_drafted() -> None:
    """Y3: a schema block decides, so there is nothing to declare; a table without keys is told of."""
    fields = [{"type": "int32", "field": "id"}]
    block = {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": fields}, {"field": "op"}]}
    of_key = {"type": "struct", "fields": fields}
    carrying = record(
        "s.shop.lines", 0, wrapped({"id": 1}, of_key), wrapped(envelope("c", {"id": 1}, table="shop.lines"), block)
    )
    text = drafted(order(None, {"v": 1}), carrying)
    assert text.splitlines()[2:] == [
        "tables:",
        "  shop.lines: {} # 1 records, which carry their types",
        "  shop.orders: # 1 records",
        "    # keys: [] # some have no key that names columns: list what identifies a row, or: append_only: true",
        "    columns:",
        "      v: bigint",
    ]


@pytest.mark.parametrize("key", ["K-1", '"K-1"', "17", "{}", "[1]"])
def test_a_key_that_names_no_column_is_none_of_the_table(key: str) -> None:
    """C1: a text, as other producers write it, is no column `key`; silver asks for `keys` of the table."""
    text = drafted(record("s.shop.orders", 0, key, envelope("c", {"id": 1})))
    assert yaml.safe_load(text)["tables"]["shop.orders"]["columns"] == {"id": "bigint"}
    assert "# keys: []" in text


@pytest.mark.parametrize("name", ["x" * 130, "two\nlines"])
def test_a_draft_is_yaml_whatever_a_column_is_called(name: str) -> None:
    """Y14: a name as long as a key of YAML may not be without quotes, or of two lines, also in a remark."""
    text = drafted(order({"id": 1}, {"id": 1, name: 2, name + "?": None}))
    assert yaml.safe_load(text)["tables"]["shop.orders"]["columns"] == {"id": "bigint", name: "bigint"}


def test_the_command_reads_files(tmp_path: Path) -> None:
    """Standard output is the file to declare with; `--json` is the same for programs; no table is no error."""
    events = tmp_path / "events.jsonl"
    told = {"topic": "s.shop.orders", "partition": 0, "offset": 0, "key": '{"id": 1}'}
    lines = [{**told, "offset": at, "payload": json.dumps(envelope("c", {"id": 1, "v": at}))} for at in (0, 20454)]
    events.write_text("".join(json.dumps(each) + "\n" for each in lines))
    assert yaml.safe_load(said("schema", "infer", str(events)))["tables"]["shop.orders"]["columns"]["v"] == "bigint"
    [found] = json.loads(said("schema", "infer", str(events), "--limit", "1", "--json"))
    assert (found["table"], found["records"], len(found["columns"])) == ("shop.orders", 1, 2)
    events.write_text("")
    assert yaml.safe_load(said("schema", "infer", str(events))) == {"tables": {}}


@pytest.mark.spark
def test_what_is_drafted_holds_what_it_was_drafted_from(spark: SparkSession, recorded: Path, tmp_path: Path) -> None:
    """Every recorded value fits the type that was guessed for its column; U+0000 is refused in any text."""
    events = recorded / "hostile_pg.pgstruct.jsonl.gz"
    declared, lake = tmp_path / "declare.yaml", ("--lake", str(tmp_path / "lake"))
    declared.write_text(said("schema", "infer", str(events)))
    said("run", "--recorded", str(events), "--declare", str(declared), *lake)
    reasons = {each["reason"] for each in json.loads(said("dead-letters", "list", "--json", *lake))}
    assert reasons <= {"nul_character"}
