"""Values that were not sent (debezium.md section E)."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from replicator.debezium.placeholder import Placeholder
from replicator.debezium.unavailable import is_unavailable, may_hold_placeholder
from tests.builders import exact_session, made

TEXT = "__debezium_unavailable_value"
BASE64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
UUID = "b68a35a7-17ad-35b3-af2a-ae46edb4545a"
CODES = [95, 95, 100, 101, 98, 101, 122, 105, 117, 109, 95, 117, 110, 97, 118, 97, 105, 108, 97, 98, 108, 101,
         95, 118, 97, 108, 117, 101]  # fmt: skip

# E2: the JSON value of a column, by its type.
SPELLINGS = {
    "text": TEXT,
    "bytes": BASE64,
    "text array": [TEXT],
    "bytes array": [BASE64],
    "integer array": CODES,
    "uuid array": [UUID],
    "map": {TEXT: TEXT},
    "map as json text": json.dumps({TEXT: TEXT}, separators=(",", ":")),
}
OTHERS = {
    "null": None,
    "inside a text": f"see {TEXT}",
    "two elements": [TEXT, TEXT],
    "one element more": [*CODES, 1],
    "one element less": CODES[:-1],
    "a bare uuid": UUID,
    "empty": "",
    "a number": 95,
    "other case": TEXT.upper(),
}


def test_every_spelling_is_derived_from_the_configured_value() -> None:
    """E1, E2: the literal, its base64, its codes, its name-based UUID, as scalars, arrays and maps."""
    text, encoded, *rest = Placeholder().spellings()
    assert (text, encoded) == (TEXT, BASE64)
    assert [json.loads(each) for each in rest] == [[TEXT], [BASE64], CODES, [UUID], {TEXT: TEXT}]


def test_a_placeholder_may_be_given_as_bytes() -> None:
    """`hex:` means bytes (E1)."""
    assert Placeholder("hex:4e2f41").spellings()[:2] == ("N/A", "Ti9B")
    assert Placeholder("hex:4e2f41").spellings() == Placeholder("N/A").spellings()


def test_bytes_that_are_sent_url_safe_have_the_placeholder_so() -> None:
    """E1, E2: `binary.handling.mode: base64-url-safe`, of a placeholder for which that is another text."""
    other = Placeholder("???>>>")
    assert other.spellings()[:3] == ("???>>>", "Pz8/Pj4+", "Pz8_Pj4-")
    assert {"Pz8/Pj4+", "Pz8_Pj4-"} < set(other.marks())


@pytest.mark.spark
def test_a_value_is_unavailable_in_its_spellings_only(spark: SparkSession) -> None:
    """The match is on the whole value, and a value that is not there is not unavailable (E6)."""
    cases = SPELLINGS | OTHERS
    records = [(name, json.dumps({"after": {"v": value}}, separators=(",", ":"))) for name, value in cases.items()]
    placeholder = Placeholder()
    seen = made(exact_session(spark), records, "name STRING, value STRING").select(
        "name",
        is_unavailable(F.from_json("value", "after STRUCT<v: STRING>")["after"]["v"], placeholder).alias("unsent"),
        may_hold_placeholder(F.col("value"), placeholder).alias("suspicious"),
    )
    rows = {row["name"]: row for row in seen.collect()}
    assert {name: row["unsent"] for name, row in rows.items()} == {name: name in SPELLINGS for name in cases}
    assert [name for name in SPELLINGS if not rows[name]["suspicious"]] == []
    assert not rows["null"]["suspicious"]


@pytest.mark.spark
@pytest.mark.parametrize("configured", ['<"n/a">', "n\\a", "n\ta"])
def test_a_placeholder_that_json_escapes_is_found_in_records(spark: SparkSession, configured: str) -> None:
    """E1: any text may be configured; in a record it stands as JSON writes it, in a map as text so twice."""
    placeholder = Placeholder(configured)
    values = [configured, [configured], json.dumps({configured: configured}, separators=(",", ":"))]
    told = [(json.dumps({"v": value}, separators=(",", ":"), ensure_ascii=False),) for value in values]
    found = made(exact_session(spark), told, "value STRING").where(may_hold_placeholder(F.col("value"), placeholder))
    assert found.count() == len(values)


@pytest.mark.spark
def test_a_record_without_value_holds_no_placeholder(spark: SparkSession) -> None:
    """The cheap first test never answers NULL."""
    row = made(exact_session(spark), [(None,)], "value STRING").select(
        may_hold_placeholder(F.col("value"), Placeholder())
    )
    assert row.first()[0] is False
