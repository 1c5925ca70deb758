"""What a column may be declared as, by its definition at the source."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replicator.databases.column_definitions import candidate_types, narrow_to_mode
from replicator.debezium.handling_modes import HandlingModes
from replicator.debezium.jsontext import loads
from replicator.debezium.type_confirmation import confirm_type
from replicator.debezium.type_guesses import ColumnProfile, Guess
from replicator.debezium.type_parser import parse_type
from replicator.operate.drafts import draft_tables
from replicator.sources import kcat_files

STAMPS = ("timestamp", "micro_timestamp", "nano_timestamp", "iso_timestamp", "structured_timestamp")


@pytest.mark.parametrize(
    ("kind", "definition", "forms"),
    [
        ("postgresql", "integer", ("int",)),
        ("postgresql", "numeric(10,2)", ("decimal(10,2)", "decimal_string(10,2)", "decimal_number(10,2)", "double")),
        ("postgresql", "numeric", ("variable_decimal", "variable_decimal_string", "double")),
        ("postgresql", "timestamp(3) without time zone", STAMPS),
        ("postgresql", "timestamp without time zone", (STAMPS[1], STAMPS[0], *STAMPS[2:])),
        ("postgresql", "timestamp with time zone", ("zoned_timestamp", "structured_zoned_timestamp")),
        ("postgresql", "character varying(20)", ("string",)),
        ("postgresql", "bytea", ("bytes", "bytes_hex", "bytes_base64url")),
        ("postgresql", "uuid[]", ("array<uuid>",)),
        ("postgresql", "numeric(4,1)[]", tuple(f"array<{it}>" for it in candidate_types("postgresql", "numeric(4,1)"))),
        ("postgresql", "h.mood", ()),
        ("postgresql", "public.hstore", ("json", "map")),
        ("postgresql", "public.ltree[]", ("array<ltree>",)),
        ("postgresql", "citext", ("string",)),
        ("postgresql", "bit", ("boolean",)),
        ("postgresql", "bit varying(5)", ("bits(5)",)),
        ("postgresql", "bit varying", ("bits(2147483647)",)),
        ("mariadb", "int(11)", ("int",)),
        ("mariadb", "int(10) unsigned", ("bigint",)),
        ("mariadb", "bigint(20) unsigned", ("bigint unsigned", "decimal(20,0)", "decimal_string(20,0)")),
        ("mariadb", "tinyint(1)", ("smallint", "boolean")),
        ("mysql", "tinyint(1)", ("boolean", "smallint")),
        ("mariadb", "datetime", STAMPS),
        ("mariadb", "timestamp(6)", ("zoned_timestamp", "structured_zoned_timestamp")),
        ("mariadb", "enum('a','b,c')", ("enum",)),
        ("mariadb", "set('x','y')", ("enum_set",)),
        ("mariadb", "decimal(10,2) unsigned", candidate_types("postgresql", "numeric(10,2)")),
        ("mariadb", "mediumblob", ("bytes", "bytes_hex", "bytes_base64url")),
    ],
)
def test_a_definition_means_what_debezium_may_send_for_it(kind: str, definition: str, forms: tuple[str, ...]) -> None:
    """types.md section 2: the default first, and each of them can be declared."""
    assert candidate_types(kind, definition) == forms
    for form in forms:
        parse_type(form)


@pytest.mark.parametrize(
    ("definition", "texts", "type_"),
    [
        ("numeric(10,2)", [], "decimal(10,2)"),
        ("numeric(10,2)", ['"AYag"'], "decimal(10,2)"),
        ("numeric(10,2)", ['"12.50"', '"7"'], "decimal_string(10,2)"),
        ("numeric(10,2)", ["12.50", "7"], "decimal_number(10,2)"),
        ("numeric", ['{"scale": 1, "value": "Dw=="}'], "variable_decimal"),
        ("numeric", ['"1.5"'], "variable_decimal_string"),
        ("timestamp without time zone", ["1767225600000001"], "micro_timestamp"),
        ("timestamp without time zone", ["1767225600000"], "timestamp"),
        ("timestamp without time zone", ["0", "1767225600000", "1767225600001"], "timestamp"),
        ("timestamp without time zone", ["-62135596800000000"], "micro_timestamp"),
        ("timestamp without time zone", ['"2026-01-01T00:00:00Z"'], "iso_timestamp"),
        ("bytea", ['""'], "bytes"),
        ("bytea", ['"3q2+7w=="'], "bytes"),
        ("bytea", ['"deadbeef"', '""'], "bytes_hex"),
        ("bytea", ['"3q2-7w=="'], "bytes_base64url"),
        ("bytea[]", ['["deadbeef"]', "[]"], "array<bytes_hex>"),
        ("bytea[]", ['["3q2+7w=="]', '["deadbeef"]'], "array<bytes>"),
        ("boolean", ["0", "1"], "boolean"),
    ],
)
def test_values_choose_between_what_a_definition_may_mean(definition: str, texts: list[str], type_: str) -> None:
    """The settings of the connector show in how it writes; without a value they are its defaults."""
    values = ColumnProfile()
    for text in texts:
        values.see(loads(text))
    found = confirm_type(values, candidate_types("postgresql", definition), definition)
    assert found == Guess(type_, f"{definition} at the source")


@pytest.mark.parametrize(
    ("definition", "mode", "number", "type_"),
    [
        ("timestamp without time zone", "adaptive", -631152000000000, "micro_timestamp"),
        ("timestamp without time zone", "connect", -631152000000, "timestamp"),
        ("timestamp(0) without time zone", "adaptive", -631152000000, "timestamp"),
        ("timestamp(0) without time zone", "microseconds", -631152000000000, "micro_timestamp"),
        ("timestamp(0) without time zone", "nanoseconds", -631152000000000000, "nano_timestamp"),
        ("timestamp(0) without time zone[]", "nanoseconds", [-631152000000000000], "array<nano_timestamp>"),
        ("time(3) without time zone", "adaptive", 500, "time"),
        ("time(3) without time zone", "adaptive_time_microseconds", 500_000, "micro_time"),
        ("time without time zone", "connect", 500, "time"),
        ("date", "microseconds", 20454, "date"),
        ("integer", "connect", 7, "int"),
    ],
)
def test_a_known_mode_tells_the_unit_of_dates_and_times(definition: str, mode: str, number: Any, type_: str) -> None:
    """What is before 1990 does not: it was drafted in the unit of the default mode, and read as another time."""
    values = ColumnProfile()
    values.see(loads(json.dumps(number)))
    forms = narrow_to_mode(candidate_types("postgresql", definition), HandlingModes(times=mode))
    assert confirm_type(values, forms, definition) == Guess(type_, f"{definition} at the source")


def test_values_that_no_definition_means_stay_what_they_are() -> None:
    """A column that has changed its type since, and one of a type that nobody knows."""
    values = ColumnProfile()
    values.see("twelve")
    assert confirm_type(values, ("int",), "integer") == Guess(
        "string", "integer at the source, which these values do not match"
    )
    assert confirm_type(values, (), "h.mood") == Guess("string", "h.mood at the source")


TYPES = {
    "types_maria.mtprecise": ("mariadb", "typelab.types", {
        "bu": "bigint unsigned", "dec_10_2": "decimal(10,2)", "dtm": "timestamp", "dtm6": "micro_timestamp",
        "ts": "zoned_timestamp", "ti": "micro_time", "dt": "date", "bl": "bytes", "e": "enum", "st": "enum_set",
    }),
    "types_maria.mtstring": ("mariadb", "typelab.types", {
        "bu": "decimal(20,0)", "dec_10_2": "decimal_string(10,2)", "dtm": "iso_timestamp", "dt": "iso_date",
        "bl": "bytes_hex",
    }),
    "hostile_pg.pgprecise": ("postgresql", "h.types", {
        "n_p_s": "decimal(10,2)", "n_free": "variable_decimal", "ts6": "micro_timestamp", "iv": "micro_duration",
        "by": "bytes", "bt5": "bits(5)", "an": "array<decimal(10,2)>", "hs": "json",
    }),
    "hostile_pg.pgnano": ("postgresql", "h.types", {
        "n_p_s": "decimal_string(10,2)", "ts6": "nano_timestamp", "tm": "nano_time", "tm0": "nano_time",
        "an": "array<decimal_string(10,2)>",
    }),
    "hostile_pg.pgdouble": ("postgresql", "h.types", {"n_free": "double", "r8": "double"}),
}  # fmt: skip


@pytest.mark.parametrize("recording", TYPES)
def test_a_draft_knows_the_settings_of_real_connectors(recorded: Path, recording: str) -> None:
    """With the definitions that the server printed, the types are those of the modes in which it was recorded."""
    kind, table, expected = TYPES[recording]
    with gzip.open(recorded / f"{recording.partition('.')[0]}.truth.json.gz", "rt", encoding="utf-8") as file:
        final = json.load(file)["final"]
    defined = {name: {column["name"]: column["type"] for column in told["columns"]} for name, told in final.items()}
    found = draft_tables(
        kcat_files.read_records(recorded / f"{recording}.jsonl.gz"), kind, lambda name: defined.get(name, {})
    )
    [draft] = [each for each in found if each.table == table]
    assert {name: draft.columns[name].type for name in expected} == expected
