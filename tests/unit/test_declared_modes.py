"""The connector's modes decide how plainly declared columns are written (types.md Y13, section 2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from replicator.config import sourcefile
from replicator.debezium import known_losses
from replicator.debezium.event_reader import EventReader, KafkaRecord
from replicator.errors import ConfigError
from replicator.spec import SourceSpec

PLAIN = "n: 'decimal(10,0)', v: variable_decimal, ns: 'decimal(9,2)[]', b: bytes, at: datetime(6), day: date, t: time"
EXPLICIT = "n: 'decimal_base64(10,0)', b: bytes_base64, at: micro_timestamp, k: 'decimal_number(9,2)', i: int"
CONNECTOR = "connector: {kind: postgresql, host: h, user: u, database: d, tables: [d.t]"


def told(folder: Path, modes: str, columns: str = PLAIN) -> SourceSpec:
    """A source whose file says something of its connector's modes."""
    path = folder / "s.yaml"
    path.write_text(f"name: s\n{modes}\ntables:\n  d.t: {{columns: {{{columns}}}}}\n", encoding="utf-8")
    return sourcefile.load_declare_file(path)


def types(source: SourceSpec) -> list[str]:
    """The types that are read by."""
    return [column.type for column in source.declaration("d.t").columns]


BYTES = ["decimal(10,0)", "variable_decimal", "decimal(9,2)[]"]
DOUBLES = ["double", "double", "array<double>"]
TEXTS = ["decimal_string(10,0)", "variable_decimal_string", "array<decimal_string(9,2)>"]


@pytest.mark.parametrize(
    ("modes", "meant"),
    [
        ("", ["decimal(10,0)", "variable_decimal", "decimal(9,2)[]", "bytes", "datetime(6)", "date", "time"]),
        ("decimal_handling_mode: string", [*TEXTS, "bytes", "datetime(6)", "date", "time"]),
        ("decimal_handling_mode: double", [*DOUBLES, "bytes", "datetime(6)", "date", "time"]),
        ("binary_handling_mode: base64", [*BYTES, "bytes_base64", "datetime(6)", "date", "time"]),
        ("binary_handling_mode: hex", [*BYTES, "bytes_hex", "datetime(6)", "date", "time"]),
        ("time_precision_mode: isostring", [*BYTES, "bytes", "iso_timestamp", "iso_date", "iso_time"]),
        ("time_precision_mode: connect", [*BYTES, "bytes", "timestamp", "date", "time"]),
        ("time_precision_mode: microseconds", [*BYTES, "bytes", "datetime(6)", "date", "micro_time"]),
        ("time_precision_mode: nanoseconds", [*BYTES, "bytes", "nano_timestamp", "date", "nano_time"]),
        (f"{CONNECTOR}, schemas: false}}", [*TEXTS, "bytes", "datetime(6)", "date", "time"]),
        (f"{CONNECTOR}, schemas: false, config: {{decimal.handling.mode: precise, binary.handling.mode: HEX}}}}",
         [*BYTES, "bytes_hex", "datetime(6)", "date", "time"]),
        (f"{CONNECTOR}}}\ndecimal_handling_mode: precise", [*BYTES, "bytes", "datetime(6)", "date", "time"]),
        ("connector: {kind: mariadb, host: h, user: u, server_id: 7, tables: [d.t]}",
         [*BYTES, "bytes", "datetime(6)", "date", "micro_time"]),
    ],
)  # fmt: skip
def test_plain_types_are_written_as_the_connector_is_told_to(tmp_path: Path, modes: str, meant: list[str]) -> None:
    """Y13: by the source's own keys, by its connector's ``config``, by what that kind of connector does by default."""
    assert types(told(tmp_path, modes)) == meant


def test_what_names_its_form_has_it_in_every_mode(tmp_path: Path) -> None:
    """Y13: one column may be written otherwise, by a converter of its own."""
    modes = "decimal_handling_mode: double\nbinary_handling_mode: hex\ntime_precision_mode: isostring"
    read = EventReader(told(tmp_path, modes, EXPLICIT)).event(
        KafkaRecord("s.d.t", 0, 0, None, None, b'{"op":"c","source":{"db":"d","table":"t"},"after":{"i":1}}')
    )
    assert [str(each) for each in read.types.values()] == [
        "decimal(10,0)",
        "bytes_base64",
        "micro_timestamp",
        "decimal_number(9,2)",
        "int",
    ]


def test_a_decimal_of_mode_string_is_no_base64(tmp_path: Path) -> None:
    """Its 1234 is 1234, and not the -2658824 that it would be in base64."""
    reader = EventReader(told(tmp_path, f"{CONNECTOR}, config: {{decimal.handling.mode: string}}}}"))
    row = b'{"op":"c","source":{"schema":"d","table":"t"},"after":{"n":"1234"}}'
    event = reader.event(KafkaRecord("s.d.t", 0, 0, None, None, row))
    assert str(event.types["n"]) == "decimal_string(10,0)"
    assert event.after == {"n": "1234"}


@pytest.mark.parametrize(
    ("modes", "part"),
    [
        ("decimal_handling_mode: strings", "decimal_handling_mode"),
        (f"{CONNECTOR}, config: {{time.precision.mode: micros}}}}", "time.precision.mode is 'micros'"),
        (f"{CONNECTOR}}}\ndecimal_handling_mode: string", "of the source is string, but precise of its connector"),
    ],
)
def test_modes_that_none_has_and_that_contradict_are_refused(tmp_path: Path, modes: str, part: str) -> None:
    """A source's own key is for a connector that no file describes, or says the same."""
    with pytest.raises(ConfigError) as caught:
        told(tmp_path, modes)
    assert part in str(caught.value)


def test_payloads_of_the_event_router_are_no_column_of_the_connectors(tmp_path: Path) -> None:
    """They are the record's own bytes, in whichever mode."""
    modes = "binary_handling_mode: hex\noutbox: router"
    source = told(tmp_path, modes, "payload: bytes")
    assert types(source) == ["bytes"]


@pytest.mark.parametrize(
    ("modes", "warned"),
    [
        ("", ["n", "a"]),
        ("decimal_handling_mode: string", []),
        (f"{CONNECTOR}, schemas: false, config: {{decimal.handling.mode: precise}}}}", ["n", "a"]),
        (f"{CONNECTOR}, schemas: false}}", []),
        (f"{CONNECTOR}}}", []),
    ],
)
def test_decimals_whose_scale_no_record_tells_are_listed(tmp_path: Path, modes: str, warned: list[str]) -> None:
    """Z1.1: bytes of 12.50 at a scale of 2 are 1.250 at one of 3, and nothing tells that it was changed."""
    source = told(
        tmp_path, modes, "n: 'decimal(10,2)', a: 'decimal(9,3)[]', s: 'decimal_string(9,2)', v: variable_decimal"
    )
    lines = list(known_losses.describe(source))
    assert [line.split(" is ")[0].rpartition(".")[2] for line in lines] == warned
    assert all("do not show a change of its scale" in line for line in lines)


def test_what_modes_lose_is_told(tmp_path: Path) -> None:
    """Y6: whether the connector's block or the source's own key says the mode."""
    assert list(known_losses.describe(told(tmp_path, "decimal_handling_mode: double", "n: double"))) == [
        "s: decimal.handling.mode is double: decimals keep about 15 digits"
    ]
