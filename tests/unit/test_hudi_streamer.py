"""The settings of Hudi's streaming tool, turned into a source's file that loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from replicator.cli import app
from replicator.config.hudi_streamer import translate
from replicator.config.sourcefile import load_sources
from replicator.config.yamlfile import Problems
from replicator.debezium.avro_columns import columns
from replicator.errors import ConfigError
from replicator.spec import SourceSpec
from tests.cli import said

PROPERTIES = """
# the outbox of the orders
hoodie.datasource.write.recordkey.field=order_id
hoodie.datasource.write.partitionpath.field = customer_id,order_id
hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.ComplexKeyGenerator
hoodie.datasource.write.hive_style_partitioning=true
hoodie.datasource.write.table.type=MERGE_ON_READ
hoodie.datasource.hive_sync.database=datalake
hoodie.upsert.shuffle.parallelism=2
hoodie.parquet.small.file.limit=134217728
hoodie.deltastreamer.source.dfs.root=s3://bucket/cdc-events/
hoodie.deltastreamer.schemaprovider.source.schema.file=s3://bucket/hudi/config/schema.avsc
hoodie.clean.automatic=false
bootstrap.servers=kafka:9092
security.protocol=SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="u" \\
    password="hidden";
auto.offset.reset=earliest
"""
SCHEMA = {
    "type": "record",
    "name": "cdc_events",
    "fields": [
        {"name": "order_id", "type": "int"},
        {"name": "customer_id", "type": "string"},
        {"name": "order_date", "type": ["null", {"type": "int", "connect.name": "io.debezium.time.Date"}]},
        {"name": "order_items", "type": ["null", {"type": "string", "connect.name": "io.debezium.data.Json"}]},
        {"name": "total", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
        {"name": "__lsn", "type": ["null", "long"]},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "orders.properties"
    made.write_text(PROPERTIES)
    return made


def loaded(folder: Path, text: str) -> SourceSpec:
    """What the printed file means to us."""
    (folder / "sources").mkdir()
    (folder / "sources" / "demo.yaml").write_text(text)
    problems = Problems()
    variables = {"SASL_JAAS_CONFIG": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u";'}
    [(spec, _)] = load_sources(folder / "sources", "", {}, variables, problems)
    problems.raise_if_any()
    return spec


def test_a_properties_file_becomes_a_sources_file(file: Path, tmp_path: Path) -> None:
    """Key, partitions, kind of table, broker and the schema beside it; the file loads as it was printed."""
    (tmp_path / "schema.avsc").write_text(json.dumps(SCHEMA))
    spec = loaded(tmp_path, said("import", "hudi-streamer", str(file), "--topic", "demo.datalake.cdc_events"))
    table = spec.declaration("datalake.cdc_events")
    assert (spec.name, spec.bootstrap_servers, spec.options["security.protocol"]) == ("demo", "kafka:9092", "SASL_SSL")
    assert (table.keys, table.partition_by) == (("order_id",), ("customer_id", "order_id"))
    assert (table.format, table.merge_on_read) == ("hudi", True)
    assert [(column.name, column.type) for column in table.columns] == [
        ("order_id", "int"), ("customer_id", "string"), ("order_date", "date"), ("order_items", "json"),
        ("total", "decimal(10,2)"),
    ]  # fmt: skip


def test_what_some_editors_begin_a_file_with_is_no_part_of_it(file: Path, tmp_path: Path) -> None:
    """With and without a byte order mark the properties and the schema say the same."""
    told = []
    for mark in ("", "\ufeff"):
        file.write_text(f"{mark}{PROPERTIES.lstrip()}", encoding="utf-8")
        (tmp_path / "schema.avsc").write_text(f"{mark}{json.dumps(SCHEMA)}", encoding="utf-8")
        done = CliRunner().invoke(app, ["import", "hudi-streamer", str(file), "--topic", "demo.datalake.cdc_events"])
        told.append((done.exit_code, done.stdout, done.stderr))
    assert told[0][0] == 0
    assert told[0] == told[1]


def test_what_has_no_equivalent_is_named_and_no_secret_is_printed(file: Path) -> None:
    """Nothing is dropped in silence."""
    done = CliRunner().invoke(app, ["import", "hudi-streamer", str(file), "--topic", "demo.datalake.cdc_events"])
    assert done.exit_code == 0
    lines = done.stderr.splitlines()
    untold = {line.split()[2].rstrip(":") for line in lines if line.startswith("NO EQUIVALENT")}
    assert untold == {
        "hoodie.datasource.hive_sync.database",
        "hoodie.streamer.source.dfs.root",
        "hoodie.streamer.schemaprovider.source.schema.file",
        "hoodie.clean.automatic",
    }
    assert "the schema was not found at this path, nor beside this file" in done.stderr
    told = {line.split()[2].rstrip(":") for line in lines if line.startswith("left out")}
    every = {line.split("=")[0].strip() for line in PROPERTIES.splitlines() if "=" in line and line[0].isalpha()}
    assert "hidden" not in done.output
    named = {name.replace("hoodie.streamer.", "hoodie.deltastreamer.") for name in told | untold}
    assert every - named == {
        "hoodie.datasource.write.recordkey.field",
        "hoodie.datasource.write.partitionpath.field",
        "hoodie.datasource.write.table.type",
        "bootstrap.servers",
        "security.protocol",
    }


def test_without_a_broker_the_objects_are_read(tmp_path: Path) -> None:
    """The tool's source of JSON files becomes a source in objects, under the scheme of Hadoop's client."""
    (tmp_path / "f").write_text(
        "hoodie.deltastreamer.source.dfs.root=s3://bucket/cdc-events/\n"
        "hoodie.datasource.write.recordkey.field=order_id\n"
    )
    spec = loaded(tmp_path, said("import", "hudi-streamer", str(tmp_path / "f"), "--topic", "demo.datalake.cdc_events"))
    assert (spec.objects, spec.declaration("datalake.cdc_events").keys) == ("s3a://bucket/cdc-events", ("order_id",))


def test_without_a_topic_of_debeziums_it_is_refused(file: Path) -> None:
    """Neither the file nor the call says where the events are."""
    for topic, sentence in ((), "no topic is given"), (("--topic", "orders"), "is not a Debezium topic"):
        with pytest.raises(ConfigError, match=sentence):
            said("import", "hudi-streamer", str(file), *topic)


def test_a_file_that_cannot_be_read_is_told_with_what_to_do(tmp_path: Path) -> None:
    """And not as the system writes it."""
    with pytest.raises(
        ConfigError, match=r"^the file cannot be read: No such file or directory .*absent[]] Check the path"
    ):
        said("import", "hudi-streamer", str(tmp_path / "absent"))
    (tmp_path / "odd").write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match=r"^the file is not UTF-8 text .*Save it as UTF-8"):
        said("import", "hudi-streamer", str(tmp_path / "odd"))


def test_properties_that_are_broken_are_told_with_how_to_fix_them(tmp_path: Path) -> None:
    """A path of Windows may look like an escape that is broken."""
    (tmp_path / "broken").write_text("a=C:\\users\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"^not a properties file: Invalid .* \[.*broken\] Escape each literal backslash"
    ):
        said("import", "hudi-streamer", str(tmp_path / "broken"), "--topic", "shop.sales.orders")


def test_avros_own_logical_types_are_no_plain_numbers() -> None:
    """A schema that no connector of Connect's wrote has dates and times by Avro's words for them."""
    told = {
        "a": ("int", "date"), "b": ("int", "time-millis"), "c": ("long", "time-micros"),
        "d": ("long", "timestamp-millis"), "e": ("long", "timestamp-micros"), "f": ("string", "uuid"),
    }  # fmt: skip
    fields = [{"name": k, "type": ["null", {"type": t, "logicalType": logical}]} for k, (t, logical) in told.items()]
    assert columns(json.dumps({"fields": fields})) == {
        "a": "date", "b": "time", "c": "micro_time", "d": "timestamp", "e": "micro_timestamp", "f": "uuid",
    }  # fmt: skip
    for kind in (
        {"type": "long", "logicalType": "timestamp-nanos"},
        {"type": "int", "logicalType": "timestamp-micros"},
    ):
        with pytest.raises(ConfigError, match="column x of the schema has the type"):
            columns(json.dumps({"fields": [{"name": "x", "type": kind}]}))


def test_bytes_lists_and_decimals_of_any_scale_are_declared_as_such() -> None:
    """Section 2 of types.md: what a declaration has a word for is no reason to refuse a whole schema."""
    amount = {"type": "record", "name": "V", "fields": [], "connect.name": "io.debezium.data.VariableScaleDecimal"}
    bits = {"type": "bytes", "connect.name": "io.debezium.data.Bits", "connect.parameters": {"length": "8"}}
    told = {"b": "bytes", "c": {"type": "array", "items": ["null", "string"]}, "d": amount, "e": bits}
    fields = [{"name": name, "type": ["null", kind]} for name, kind in told.items()]
    assert columns(json.dumps({"fields": fields})) == {
        "b": "bytes", "c": "array<string>", "d": "variable_decimal", "e": "bits(8)",
    }  # fmt: skip


def test_a_partition_that_is_made_of_a_value_is_named(tmp_path: Path) -> None:
    """Hudi's custom key generator names fields with what it makes of them: nothing here parts a table so."""
    fields = "hoodie.datasource.write.partitionpath.field"
    (tmp_path / "f").write_text(f"{fields}=customer_id,created:TIMESTAMP\n")
    done = CliRunner().invoke(app, ["import", "hudi-streamer", str(tmp_path / "f"), "--topic", "demo.datalake.cdc"])
    assert loaded(tmp_path, done.stdout).declaration("datalake.cdc").partition_by == ("customer_id",)
    assert f"NO EQUIVALENT {fields}: " in done.stderr
    assert "created:TIMESTAMP" in done.stderr


@pytest.mark.parametrize("schema", ["no json", '{"fields": 7}', '{"fields": [{"name": "x", "type": {"type": "map"}}]}'])
def test_a_schema_that_cannot_be_meant_is_refused(schema: str) -> None:
    """With a sentence, before anything is printed."""
    with pytest.raises(ConfigError):
        columns(schema)


def test_settings_that_no_source_has_are_named_and_not_printed(tmp_path: Path) -> None:
    """The file that is printed loads: without options of Kafka beside objects, an unknown kind of table, or a column
    that is listed twice.
    """
    settings = {
        "hoodie.streamer.source.kafka.topic": "demo.datalake.cdc_events",
        "hoodie.streamer.source.dfs.root": "s3://bucket/cdc-events",
        "hoodie.datasource.write.recordkey.field": "order_id,order_id",
        "hoodie.datasource.write.table.type": "FASTEST",
        "security.protocol": "SASL_SSL",
        "ssl.key.password": "hidden",
    }
    found = translate(settings)
    spec = loaded(tmp_path, yaml.safe_dump(dict(found.document)))
    assert (spec.objects, spec.options) == ("s3a://bucket/cdc-events", {})
    assert spec.declaration("datalake.cdc_events").keys == ("order_id",)
    assert found.untold.keys() == {"hoodie.datasource.write.table.type", "security.protocol", "ssl.key.password"}
    assert not found.same
