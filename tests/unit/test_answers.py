"""An answer's rows as text, JSON and Parquet, in the way that Spark writes them."""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from replicator.catalog.arrow_texts import ArrowAnswer, column_texts, format_double
from replicator.cli import result_writer
from replicator.cli.options import RowFormat
from replicator.errors import ConfigError

NESTED = pa.struct([("x", pa.int32()), ("t", pa.timestamp("us", "UTC")), ("f", pa.float32())])
MOMENT = dt.datetime(2024, 5, 6, 7, 8, 9, 120000, dt.timezone.utc)
VALUES = [
    (pa.bool_(), True, "true", "true"),
    (pa.int64(), -(2**63), "-9223372036854775808", "-9223372036854775808"),
    (pa.decimal128(38, 4), Decimal("61728394506172835.0000"), "61728394506172835.0000", "61728394506172835.0000"),
    (pa.decimal128(20, 18), Decimal("0E-18"), "0.000000000000000000", "0E-18"),
    (pa.decimal128(20, 18), Decimal("1.000000000000000002"), "1.000000000000000002", "1.000000000000000002"),
    (pa.float32(), 0.1, "0.1", "0.1"),
    (pa.float64(), float("nan"), "NaN", '"NaN"'),
    (pa.float64(), float("-inf"), "-Infinity", '"-Infinity"'),
    (pa.date32(), -719_162, "0001-01-01", '"0001-01-01"'),
    (pa.timestamp("us", "UTC"), MOMENT, "2024-05-06 07:08:09.12", '"2024-05-06T07:08:09.120000Z"'),
    (pa.timestamp("us"), -62_135_596_800_000_000, "0001-01-01 00:00:00", '"0001-01-01T00:00:00.000000"'),
    (pa.timestamp("us"), 253_402_300_800_000_000, "10000-01-01 00:00:00", '"10000-01-01T00:00:00.000000"'),
    (pa.binary(), b"a\xff", "Yf8=", '"Yf8="'),
    (pa.string(), 'é "\n\U0001f600', 'é "\n\U0001f600', r'"é \"\n' + '\U0001f600"'),
    (pa.list_(pa.int32()), [1, None], "[1,null]", "[1,null]"),
    (pa.map_(pa.string(), pa.string()), [('a"', "1"), ("b", None)], r'{"a\"":"1","b":null}', r'{"a\"":"1","b":null}'),
    (
        NESTED,
        {"x": None, "t": MOMENT, "f": 0.1},
        '{"x":null,"t":"2024-05-06T07:08:09.120000Z","f":0.1}',
        '{"x":null,"t":"2024-05-06T07:08:09.120000Z","f":0.1}',
    ),
]


def answer(columns: dict[str, Any] | pa.Table, batch: int = 2) -> ArrowAnswer:
    """An answer of batches of two rows."""
    table = pa.table(columns) if isinstance(columns, dict) else columns
    return ArrowAnswer(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch)))


@pytest.mark.parametrize(("kind", "value", "text", "object_"), VALUES, ids=[str(case[0])[:30] for case in VALUES])
def test_a_value_is_written_as_spark_writes_it(kind: pa.DataType, value: Any, text: str, object_: str) -> None:
    """Every digit of numbers, times in UTC to the microsecond, in texts without zeros at their end."""
    column = pa.array([value, None], kind)
    assert column_texts(column) == [text, None]
    lines = list(answer({"v": column}).objects())
    assert lines == [f'{{"v":{object_}}}', '{"v":null}']
    json.loads(lines[0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((0, 1, 0), "INTERVAL '1 00:00:00' DAY TO SECOND"),
        ((0, -1, -4_500_000_000), "INTERVAL '-1 00:00:04.5' DAY TO SECOND"),
        ((0, 0, 90_061_000_001_000), "INTERVAL '1 01:01:01.000001' DAY TO SECOND"),
        ((0, 0, 0), "INTERVAL '0 00:00:00' DAY TO SECOND"),
        ((14, 0, 0), "INTERVAL '1-2' YEAR TO MONTH"),
        ((-1, 0, 0), "INTERVAL '-0-1' YEAR TO MONTH"),
        ((1, -3, 4_500_000_000), "1 months -3 days 4.5 seconds"),
        ((1, 1, 0), "1 months 1 days 0 seconds"),
    ],
)
def test_intervals_are_written_as_spark_writes_them(value: tuple[int, int, int], text: str) -> None:
    """The difference of two times is one; DuckDB has some that Spark has not."""
    column = pa.array([pa.MonthDayNano(value)], pa.month_day_nano_interval())
    assert column_texts(column) == [text]
    assert list(answer({"v": column}).objects()) == [json.dumps({"v": text}, separators=(",", ":"))]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (0.001, "0.001"), (1e-4, "1.0E-4"), (9999999.0, "9999999.0"),
        (1e7, "1.0E7"), (-123456789.5, "-1.234567895E8"), (1e16, "1.0E16"), (5e-324, "5.0E-324"),
        (2 / 3, "0.6666666666666666"),
    ],
)  # fmt: skip
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    """Plain between a thousandth and ten millions."""
    assert format_double(value) == text


def test_a_table_ends_with_the_limit_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """What was cut is told on stderr; what was not is not."""
    result_writer.write(answer({"a": list(range(5))}), RowFormat.csv, 3)
    cut = capsys.readouterr()
    assert (cut.out, "the first 3 rows" in cut.err) == ("a\n0\n1\n2\n", True)
    result_writer.write(answer({"a": list(range(5))}), RowFormat.csv, 5)
    assert capsys.readouterr() == ("a\n0\n1\n2\n3\n4\n", "")


def test_a_table_tells_every_character_and_obeys_none(capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal would be coloured or overwritten by the lake's texts; only their line breaks stay."""
    result_writer.write(answer({"a\r": ["\x1b[31mred\r\x08", "x\ny\t\x9b1m", None]}), RowFormat.table, None)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["a\\r", "\\x1b[31mred\\r\\x08", "x", "y\\t\\x9b1m", "NULL"]


def test_csv_tells_null_from_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty field is NULL; two columns may have one name."""
    table = pa.Table.from_arrays([pa.array([None, ""]), pa.array(['a"b', "c,d"])], names=["a", "a"])
    result_writer.write(answer(table), RowFormat.csv, None)
    assert capsys.readouterr().out == 'a,a\n,"a""b"\n"","c,d"\n'


def test_csv_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Every kind of line break inside of a name or a value is quoted: without, a reader finds more rows."""
    rows = [[f"a{mark}b", "x"] for mark in ("\r", "\n", "\r\n", ",", '"', "\x0b", "\u2028", " ")]
    table = pa.Table.from_pylist([{"n\rn": one, "m": other} for one, other in rows])
    result_writer.write(answer(table), RowFormat.csv, None, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["n\rn", "m"], *rows]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_json_is_one_array(capsys: pytest.CaptureFixture[str], count: int) -> None:
    """Also of no rows."""
    result_writer.write(answer({"a": pa.array(range(count), pa.int32())}), RowFormat.json, None)
    assert json.loads(capsys.readouterr().out) == [{"a": index} for index in range(count)]


@pytest.mark.parametrize(("most", "count"), [(None, 5), (3, 3), (4, 4), (5, 5), (0, 0)])
def test_parquet_keeps_the_types(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], most: int | None, count: int
) -> None:
    """As many rows as asked for, across batches; whether there are more is told."""
    file = tmp_path / "t.parquet"
    table = pa.table({"a": pa.array([Decimal(index) for index in range(5)], pa.decimal128(10, 2))})
    result_writer.write(answer(table), RowFormat.parquet, most, file)
    assert parquet.read_table(file) == table.slice(0, count)
    assert ("only the first" in capsys.readouterr().err) == (count < 5)
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_a_type_that_parquet_has_not_is_told(tmp_path: Path) -> None:
    """An interval is a mistake of the query, and no failure."""
    table = pa.table({"a": pa.array([pa.MonthDayNano([1, 2, 3])], pa.month_day_nano_interval())})
    with pytest.raises(ConfigError, match=r"Parquet has no such type.*CAST"):
        result_writer.write(answer(table), RowFormat.parquet, None, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    """What fails half-way leaves the old file and nothing beside it."""
    file = tmp_path / "t.csv"
    file.write_text("old")

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - the one above
        result_writer.write(
            ArrowAnswer(pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), broken())),
            RowFormat.csv,
            None,
            file,
        )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("t.csv", "old")]


@pytest.mark.parametrize(
    ("form", "output", "chosen"),
    [
        (None, None, RowFormat.table),
        (None, "a.CSV", RowFormat.csv),
        (None, "a.parquet", RowFormat.parquet),
        (RowFormat.json, "a.txt", RowFormat.json),
    ],
)
def test_the_suffix_of_a_file_tells_its_form(form: RowFormat | None, output: str | None, chosen: RowFormat) -> None:
    """Unless somebody says another; on stdout it is a table."""
    assert result_writer.resolve_format(form, None if output is None else Path(output)) is chosen


@pytest.mark.parametrize(("form", "output"), [(RowFormat.parquet, None), (None, "a.txt"), (RowFormat.table, "a.csv")])
def test_a_form_that_does_not_go_there_is_refused(form: RowFormat | None, output: str | None) -> None:
    """Parquet is no text, and a table no file."""
    with pytest.raises(ConfigError):
        result_writer.resolve_format(form, None if output is None else Path(output))


@pytest.mark.parametrize("form", [RowFormat.csv, RowFormat.parquet])
def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path, form: RowFormat) -> None:
    """A pipe, or a device such as /dev/null, stays what it is, and nobody is asked for rows."""
    pipe, link = tmp_path / "pipe", tmp_path / "stdout"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for output in (pipe, link):
        with pytest.raises(ConfigError, match="a device or a pipe"):
            result_writer.write(ArrowAnswer(_one_row()), form, None, output)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [pipe, link]


def test_a_link_stays_one_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    """Who keeps ``latest.csv`` pointing at a file elsewhere finds the rows there, also where that file is new."""
    (tmp_path / "kept").mkdir()
    link = tmp_path / "latest.csv"
    link.symlink_to(Path("kept/rows.csv"))
    for _ in range(2):
        result_writer.write(ArrowAnswer(_one_row()), RowFormat.csv, None, link)
        assert link.is_symlink()
        assert (tmp_path / "kept/rows.csv").read_text(encoding="utf-8") == "a\n1\n"
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["rows.csv"]


def _one_row() -> pa.RecordBatchReader:
    return pa.table({"a": [1]}).to_reader()


@pytest.mark.parametrize("form", [RowFormat.json, RowFormat.parquet])
def test_columns_of_one_name_are_refused_where_names_count(tmp_path: Path, form: RowFormat) -> None:
    """One of them would be lost to whoever reads it."""
    with pytest.raises(ConfigError, match="two columns are named 'a'"):
        result_writer.write(
            answer(pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])), form, None, tmp_path / "t"
        )


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With its path, before anything is read."""
    with pytest.raises(ConfigError, match="cannot be written"):
        result_writer.write(answer({"a": [1]}), RowFormat.csv, None, tmp_path / "no" / "t.csv")
