"""conf/*.yaml becomes one frozen value, or one error that lists everything wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pydantic
import pytest

from replicator import settings
from replicator.config import settingkeys, sourcefile, topicnames
from replicator.config.yamlfile import Problems, leaves, read
from replicator.errors import ConfigError
from replicator.spec import Column

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def conf(tmp_path: Path) -> Callable[..., settings.Settings]:
    """A folder with an empty base and an environment ``dev``; returns a function that writes and loads."""

    def load(
        dev: str = "", base: str = "", environment: Mapping[str, str] | None = None, **files: str
    ) -> settings.Settings:
        folder = tmp_path / "conf"
        for name, text in {"base.yaml": base, "dev.yaml": dev, **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return settings.load(folder, "dev", environment or {})

    return load


def refusal(load: Callable[..., settings.Settings], *arguments: Any, **files: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(*arguments, **files)
    return str(caught.value)


@pytest.mark.parametrize("env", ["local", "demo"])
def test_the_shipped_environments_load_with_no_variable_set(env: str) -> None:
    """Every example configuration loads as it is."""
    loaded = settings.load(CONF, env, {})
    assert [source.name for source in loaded.sources] == ["dbserver1"]
    assert {model.name for model in loaded.models} == {"dim_customers", "dim_products", "fact_orders"}
    assert loaded.target("warehouse").database == "postgres"


def test_the_configuration_of_the_outbox_loads_with_no_variable_set() -> None:
    """Silver in Hudi by customer and order, found by its key alone; order items need no target."""
    loaded = settings.load(CONF / "northwind", "local", {})
    [table] = loaded.source("demo").tables
    assert (table.table, table.keys, table.outbox.mode) == ("datalake.cdc_events", ("order_id",), "current")
    assert (table.format, table.partition_by) == ("hudi", ("customer_id", "order_id"))
    assert table.deletes == "rewrite-with-tombstone"
    assert [(model.name, model.target) for model in loaded.models] == [("order_items", None)]


def test_base_yaml_holds_every_key_with_its_default() -> None:
    """base.yaml is the documentation of the keys: it names all of them and changes nothing."""
    document = read(CONF / "base.yaml", problems := Problems())
    assert problems.found == []
    assert settingkeys.Keys.model_validate(document.values) == settingkeys.Keys()
    named = {path for path, _ in leaves(document.values)}
    known = {path for path, _ in leaves(settingkeys.Keys().model_dump())}
    assert named == known


def test_an_environment_is_laid_over_base_key_by_key(conf: Callable[..., settings.Settings]) -> None:
    """Mappings merge, everything else is replaced."""
    loaded = conf(
        "bronze: {trigger_seconds: 9}\nspark: {b: 2}", base="bronze: {max_offsets_per_trigger: 5}\nspark: {a: true}"
    )
    assert (loaded.bronze.trigger_seconds, loaded.bronze.max_offsets_per_trigger) == (9, 5)
    assert loaded.spark == {"a": "true", "b": "2"}


def test_an_unknown_key_is_refused_with_file_line_and_the_nearest_spelling(
    conf: Callable[..., settings.Settings],
) -> None:
    """A typo is no silent default."""
    said = refusal(conf, "bronze:\n  triger_seconds: 3\n")
    assert "dev.yaml:2: unknown key 'bronze.triger_seconds'; did you mean 'trigger_seconds'?" in said


def test_an_unknown_key_of_a_target_is_refused_too(conf: Callable[..., settings.Settings]) -> None:
    """The nearest spelling is looked up where the key stands, also below a free name."""
    target = "targets:\n  w: {host: h, database: d, user: u, pasword: x}\n"
    assert "unknown key 'targets.w.pasword'; did you mean 'password'?" in refusal(conf, target)


@pytest.mark.parametrize(
    ("dev", "said"),
    [
        ("kafka: {bootstrap_servers: [a:9092, b:9092]}\n", "kafka.bootstrap_servers: must be one string, not a list"),
        ("kafka: {bootstrap_servers: }\n", "kafka.bootstrap_servers: must be a string, but there is no value"),
        ("kafka: {bootstrap_servers: 9092}\n", "another type: put it in quotes"),
        ("kafka: {bootstrap_servers: {a: 9092}}\n", "must be a string, not a mapping of keys to values"),
        ("spark: {a: }\n", "spark.a: must be a string, but there is no value"),
    ],
)
def test_what_is_no_text_is_told_by_what_it_is(conf: Callable[..., settings.Settings], dev: str, said: str) -> None:
    """Quotes help where YAML made a number of it, and nowhere else."""
    assert said in refusal(conf, dev)


def test_a_type_that_is_no_text_is_told_by_what_stands_there(conf: Callable[..., settings.Settings]) -> None:
    """A column may be a mapping, so its own value stands in the way of its type."""
    source = "name: s\ntables: {a.b: {columns: {x: 5, y: }}}\n"
    said = refusal(conf, **{"sources/s.yaml": source})
    assert "columns.x.type: must be a string, which YAML reads as another type: put it in quotes" in said
    assert "columns.y.type: must be a string, but there is no value" in said


def test_a_table_in_a_format_that_the_session_has_not_is_refused_before_anything_starts(
    conf: Callable[..., settings.Settings],
) -> None:
    """Without Hudi's JAR and extension its incremental reads would find nothing, and say nothing."""
    table = {"sources/s.yaml": "name: s\ntables: {a.b: {format: hudi}}\n"}
    told = "a.b is kept in hudi: set `formats: [delta, hudi]` in base.yaml or the environment's file"
    assert told in refusal(conf, "", **table)
    assert conf("formats: [delta, hudi]\n", **table).sources[0].declaration("a.b").format == "hudi"
    assert "give [delta, hudi]" in refusal(conf, "formats: [hudi]\n")
    # what is wrong elsewhere in the same file does not take the formats away
    assert "is kept in hudi" not in refusal(conf, "formats: [delta, hudi]\nlaek: {root: /x}\n", **table)


def test_a_table_is_kept_in_one_format_or_in_two(conf: Callable[..., settings.Settings]) -> None:
    """The first is the table's, the others have copies of it."""
    twin = {"sources/s.yaml": "name: s\ntables: {a.b: {format: [hudi, delta], table_type: merge_on_read}}\n"}
    declared = conf("formats: [delta, hudi]\n", **twin).sources[0].declaration("a.b")
    assert (declared.format, declared.twins, declared.formats) == ("hudi", ("delta",), ("hudi", "delta"))
    assert "a.b is kept in hudi" in refusal(conf, "", **twin)
    twice = {"sources/s.yaml": "name: s\ntables: {a.b: {format: [delta, delta]}}\n"}
    assert "format contains 'delta' twice" in refusal(conf, "", **twice)


def test_a_source_may_say_where_its_own_database_is(conf: Callable[..., settings.Settings]) -> None:
    """For verify: the usual port of its kind, TLS unless said otherwise, the password in no text."""
    text = "name: s\ndatabase: {kind: mariadb, host: h, user: u, password: '${P}'}\n"
    login = conf(environment={"P": "canary"}, **{"sources/s.yaml": text}).sources[0].database
    assert (login.port, login.sslmode, login.password) == (3306, "verify-full", "canary")
    shown = {line.key: line.value for line in conf(environment={"P": "canary"}, **{"sources/s.yaml": text}).describe()}
    assert shown["sources.s.database.password"] == "***"
    assert "canary" not in str(shown) + str(login)
    nameless = {"sources/s.yaml": "name: s\ndatabase: {kind: postgresql, host: h, user: u}\n"}
    assert "give dbname: which database" in refusal(conf, "", **nameless)
    named = {"sources/s.yaml": "name: s\ndatabase: {kind: mariadb, host: h, user: u, dbname: a}\n"}
    assert "dbname is for PostgreSQL and Oracle, not for mariadb" in refusal(conf, "", **named)
    strange = {"sources/s.yaml": "name: s\ndatabase: {kind: db2, hots: h, user: u}\n"}
    said = refusal(conf, "", **strange)
    assert "database.kind" in said
    assert "unknown key 'database.hots'; did you mean 'host'?" in said


def test_a_lease_lasts_some_seconds_or_is_off(conf: Callable[..., settings.Settings]) -> None:
    """YAML takes `off` for false; a lease that no renewal could keep is none."""
    for told, seconds in {"": 30, "lease: 45 seconds": 45, "lease: 2 minutes": 120, "lease: off": None}.items():
        assert conf(f"lake: {{{told}}}\n").lake.lease == seconds
    assert "6 seconds or longer" in refusal(conf, "lake: {lease: 5 seconds}\n")
    for wrong in ("soon", "30", "30s"):
        assert "such as `30 seconds`" in refusal(conf, f"lake: {{lease: {wrong}}}\n")


def test_how_long_versions_are_kept_is_a_duration(conf: Callable[..., settings.Settings]) -> None:
    """As everywhere: a number with its unit."""
    kept = conf("maintenance: {keep: 2 days, every: 1 hour}\n").maintenance
    assert (kept.keep, kept.every) == (172_800, 3_600)
    for wrong in ("keep: 2", "keep: off", "keep: false", "every: no", "keep: on"):
        assert "such as `30 days`" in refusal(conf, f"maintenance: {{{wrong}}}\n")
    assert conf("maintenance: {keep: 0, every: null}\n").maintenance.keep == 0


def test_all_problems_are_told_at_once(conf: Callable[..., settings.Settings]) -> None:
    """One run tells everything: of the keys, the variables and the files beside them."""
    dev = "dead_letter: {max_share: many}\nlake: {root: '${NOWHERE}'}\ncolour: red\n"
    said = refusal(conf, dev, **{"sources/s.yaml": "name: s\ntabels: {}\n"})
    assert "4 problems" in said
    for part in ("dead_letter.max_share", "NOWHERE", "unknown key 'colour'", "did you mean 'tables'?"):
        assert part in said


def test_a_model_of_a_source_whose_file_is_wrong_is_not_told_that_there_is_none(
    conf: Callable[..., settings.Settings],
) -> None:
    """What follows from another mistake is no second one."""
    model = "key: [id]\ninputs: {t: s/d.t}\ncolumns: [{name: id, type: int}]\n"
    files = {"models/m.sql": "SELECT id FROM {t}", "models/m.yaml": model}
    said = refusal(conf, **files, **{"sources/s.yaml": "name: s\ntabels: {}\n"})
    assert "did you mean 'tables'?" in said
    assert "does not exist" not in said
    assert "source 's' does not exist" in refusal(conf, **files, **{"sources/s.yaml": "name: other\n"})


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}\n"])
def test_a_file_that_says_nothing_is_refused(conf: Callable[..., settings.Settings], text: str) -> None:
    """Its source, model or feed would be missing without a word; what is laid over others may be empty."""
    said = refusal(conf, **{"sources/s.yaml": text})
    assert said.endswith("/sources/s.yaml: the file is empty: fill it, or remove it")
    model = {"models/m.yaml": text, "models/m.sql": "SELECT 1 AS a", "canonical/f.yaml": text}
    said = refusal(conf, **{"sources/s.yaml": "name: s\n"}, **model)
    assert [f"{name}.yaml: the file is empty" in said for name in ("m", "f", "dev", "base")] == [1, 1, 0, 0]


def test_a_missing_variable_names_file_line_and_key(conf: Callable[..., settings.Settings]) -> None:
    """A variable without default must be set."""
    said = refusal(conf, "kafka:\n  bootstrap_servers: ${BROKERS}\n")
    assert "dev.yaml:2: kafka.bootstrap_servers needs the environment variable BROKERS, which is not set" in said


def test_variables_fill_values_and_defaults_stand_in(conf: Callable[..., settings.Settings]) -> None:
    """``${VAR}``, ``${VAR:-default}`` (also for an empty variable), and ``$${`` for the characters themselves."""
    dev = "spark: {a: '${A}-${B:-b}', b: '${EMPTY:-full}', c: '$${A}'}"
    assert conf(dev, environment={"A": "x: ${B}", "EMPTY": ""}).spark == {"a": "x: ${B}-b", "b": "full", "c": "${A}"}


@pytest.mark.parametrize(
    ("written", "environment", "filled"),
    [
        ("${A:-${B:-b:9092}}", {}, "b:9092"),
        ("${A:-${B:-b:9092}}", {"A": "a:1"}, "a:1"),
        ("${A:-${B:-b:9092}}/x", {"B": "${A}"}, "${A}/x"),
        ("${A:-${B:-${C:-c}}}", {"C": "d"}, "d"),
        ('${A:-{"x": {}}}', {}, '{"x": {}}'),
        ('${A:-{"x": {}}}', {"A": "y"}, "y"),
        ("${A:-$${env:X}}", {}, "${env:X}"),
        ("${A:-${env:X}}", {"A": "y"}, "y"),
        ("{${A:-x}}", {}, "{x}"),
    ],
)
def test_a_default_may_hold_braces_and_other_variables(
    conf: Callable[..., settings.Settings], written: str, environment: dict[str, str], filled: str
) -> None:
    """Braces go in pairs: neither is the default cut at the first one, nor does the rest of it follow the value."""
    assert conf(f"spark: {{a: '{written}'}}", environment=environment).spark == {"a": filled}


def test_a_default_without_its_brace_and_a_variable_in_one_are_told(conf: Callable[..., settings.Settings]) -> None:
    """What cannot be meant is no value; a variable in a default is needed where the default is."""
    assert "dev.yaml:2: spark.a: the braces of ${A:- are unbalanced" in refusal(conf, "spark:\n  a: '${A:-{x}'")
    assert "spark.a needs the environment variable B" in refusal(conf, "spark: {a: '${A:-${B}}'}")
    assert conf("spark: {a: '${A:-${B}}'}", environment={"A": "x"}).spark == {"a": "x"}


@pytest.mark.parametrize(
    "written", ["${env:KEY}", "${KEY:hunter2}", "${KEY-hunter2}", "${KEY", "${}", "${A:-${env:KEY}}"]
)
def test_what_is_no_variable_is_no_value(conf: Callable[..., settings.Settings], written: str) -> None:
    """As written it would be the key of hashed columns, a password or a folder; what follows may be a secret."""
    said = refusal(conf, **{"sources/s.yaml": f"name: s\nhash_key: '{written}'\n"})
    assert "sources/s.yaml:2: hash_key: ${" in said
    assert "begins no variable: write ${NAME}, ${NAME:-default}, or $${ for a literal ${" in said
    assert "hunter2" not in said
    assert "lake.root: ${LAKE: begins no variable" in refusal(conf, "lake: {root: '${LAKE:./lake}'}")


def test_kafka_connect_and_spark_have_variables_of_their_own(conf: Callable[..., settings.Settings]) -> None:
    """Below ``connector`` and ``spark`` they stay as they are."""
    connector = "{kind: oracle, host: h, user: u, database: d, password: '${env:P}', config: {a: '${file:/x:y}'}}"
    made = conf("spark: {a: '${system:user.home}'}", **{"sources/s.yaml": f"name: s\nconnector: {connector}\n"})
    [source] = made.sources
    assert made.spark == {"a": "${system:user.home}"}
    assert source.connector is not None
    assert (source.connector.password, source.connector.config) == ("${env:P}", {"a": "${file:/x:y}"})


def test_a_variable_of_an_overridden_value_need_not_exist(conf: Callable[..., settings.Settings]) -> None:
    """Only what counts is filled in."""
    assert conf("spark: {a: x}", base="spark: {a: '${NOWHERE}'}").spark == {"a": "x"}


def test_every_value_shows_where_it_came_from(conf: Callable[..., settings.Settings]) -> None:
    """``config show`` tells file and line, and the variable that filled it."""
    shown = {
        s.key: s
        for s in conf(
            "lake:\n  root: ${R:-/x}\n", base="\ndead_letter:\n  max_share: 0.5\n", environment={"R": "/lake"}
        ).describe()
    }
    assert shown["lake.root"].value == "/lake"
    assert shown["lake.root"].origin.endswith("dev.yaml:2 ($R)")
    assert shown["dead_letter.max_share"].origin.endswith("base.yaml:3")
    assert shown["bronze.trigger_seconds"].origin == "default"
    assert shown["formats"].value == "[delta]"  # as one writes it


def test_no_secret_is_shown_or_told(conf: Callable[..., settings.Settings]) -> None:
    """Passwords and keys appear neither in ``config show``, nor in the text of the value, nor in an error."""
    dev = """
targets: {w: {host: h, database: d, user: u, password: canary-1, options: {}}}
s3: {endpoint: http://x, access_key: canary-2, secret_key: canary-3}
spark:
  spark.hadoop.fs.s3a.secret.key: canary-4
  spark.driver.extraJavaOptions: -Dhttps.proxyHost=p -Djavax.net.ssl.trustStorePassword=canary-7 -Xss4m
  spark.hadoop.javax.jdo.option.ConnectionURL: jdbc:postgresql://h/d?user=u&password=canary-8
aws: {jobs: {silver: {spark: {spark.hadoop.fs.s3a.secret.key: canary-9}, secrets: {WAREHOUSE_PASSWORD: "shop:key"}}}}
kafka:
  options:
    sasl.jaas.config: >-
      org.apache.kafka.common.security.scram.ScramLoginModule required
      username="u" password="canary-5";
    ssl.key.password: canary-6
"""
    loaded = conf(dev, **{"sources/s.yaml": "name: s\n"})
    shown = " ".join(f"{s.key} {s.value}" for s in loaded.describe())
    assert "canary" not in shown
    assert "-Dhttps.proxyHost=p -Djavax.net.ssl.trustStorePassword=*** -Xss4m" in shown
    assert "jdbc:postgresql://h/d?user=u&password=***" in shown
    assert "WAREHOUSE_PASSWORD shop:key" in shown  # whose name it is, which is no secret
    assert "canary" not in repr(loaded.targets) + repr(loaded.s3) + repr(loaded.sources)
    assert "canary" not in refusal(conf, dev.replace("password: canary-1", "password: [canary-1]"))


@pytest.mark.parametrize(
    ("root", "made"),
    [
        ("s3a://b/p/", "s3a://b/p"),
        ("s3a://b", "s3a://b"),
        ("file:///data/lake", "file:///data/lake"),
        ("file:/data/lake/", "file:///data/lake"),
        ("hdfs:///lake", "hdfs:///lake"),
        ("/data/a:b", "/data/a:b"),
        ("s3a:/b/p", None),
        ("s3a://", None),
        ("s3a:///p", None),
        ("file://lake", None),
        ("file://", None),
        ("s3://b/p", None),
        ("S3A://b/p", None),
    ],
)
def test_an_address_that_names_no_place_is_no_folder_of_that_name(
    conf: Callable[..., settings.Settings], root: str, made: str | None
) -> None:
    """A slash too few, or a variable for the bucket that is empty, makes no folder ``s3a:`` where one happens to be."""
    if made is None:
        assert "dev.yaml:1: lake.root: a lake must be a local directory, s3a://bucket" in refusal(
            conf, f"lake: {{root: '{root}'}}"
        )
    else:
        assert conf(f"lake: {{root: '{root}'}}").lake.root == made


@pytest.mark.parametrize("root", ["s3a://b/a#1", "s3a://b/a?x", "file:///a/b#1"])
def test_an_address_that_only_hadoop_reads_to_its_end_is_refused(
    conf: Callable[..., settings.Settings], root: str
) -> None:
    """What reads without Spark would look at the place before the mark, where another lake may be."""
    assert f"lake.root: a lake's address must not contain '{'#' if '#' in root else '?'}'" in refusal(
        conf, f"lake: {{root: '{root}'}}"
    )


def test_a_lake_with_tables_in_hudi_is_one_by_its_address_too(tmp_path: Path) -> None:
    """Without a configuration the formats are those that lie there, also below ``file://``."""
    (tmp_path / "silver/shop/sales.orders/.hoodie").mkdir(parents=True)
    for root in (str(tmp_path), f"file://{tmp_path}", f"file:{tmp_path}"):
        assert settings.bare(root).formats == ("delta", "hudi")
    assert settings.bare(f"file://{tmp_path}/silver").formats == ("delta",)


def test_settings_cannot_be_changed(conf: Callable[..., settings.Settings]) -> None:
    """A value that everybody holds is nobody's to change."""
    with pytest.raises(pydantic.ValidationError):
        conf().env = "other"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dev.yaml", "lake: {root: 's3a://me:hunter2@bucket/p'}\n"),
        ("dev.yaml", "s3: {endpoint: 'http://me:hunter2@minio:9000'}\n"),
        ("dev.yaml", "catalog: {endpoint: 'http://me:hunter2@moto:5000'}\n"),
        ("sources/s.yaml", "{name: s, objects: 's3a://me:hunter2@bucket/p'}\n"),
    ],
)
def test_an_address_with_a_password_is_refused(conf: Callable[..., settings.Settings], name: str, text: str) -> None:
    """Every message about the lake or a store names its address."""
    said = refusal(conf, **({"dev": text} if name == "dev.yaml" else {name: text}))
    assert f"{name}:1: " in said
    assert "an address is printed and must contain no password" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("written", ["*hunter2", "!hunter2", "!!int hunter2", "!!timestamp hunter2", "!!bool hunter2"])
def test_a_password_that_yaml_cannot_read_is_not_shown(conf: Callable[..., settings.Settings], written: str) -> None:
    """The place and the way out are; some of the parser's own messages repeat the value, others are no messages."""
    said = refusal(conf, f"targets:\n  w:\n    password: {written}\n")
    assert "dev.yaml:3: invalid YAML: " in said
    assert "put a text in quotes" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: [1,\nb: 2\n", "invalid YAML"),
        ("- a\n- b\n", "must hold a mapping"),
        ("lake: {root: a}\nlake: {root: b}\n", "dev.yaml:2: the key 'lake' is declared twice"),
        ("lake: {root: 'gs://x'}\n", "dev.yaml:1: lake.root: a lake must be"),
        ("lake: s3a://x\n", "dev.yaml:1: lake: must be a mapping of keys to values"),
        ("formats: delta\n", "dev.yaml:1: formats: must be a list"),
        ("targets: {t: {user: 3}}\n", "targets.t.user: must be a string"),
        ("targets: {t: {port: x}}\n", "targets.t.port: must be a whole number"),
        ("targets: {t: {port: on}}\n", "targets.t.port: must be a whole number"),
        ("dead_letter: {max_share: off}\n", "dead_letter.max_share: must be a number"),
        ("aws: {jobs: {silver: {driver_cores: on}}}\n", "aws.jobs.silver.driver_cores: must be a whole number"),
        ("aws: {application: a, cluster: j-1}\n", "aws: give either application or cluster"),
        ("athena: {output: 's3a://b/x'}\n", "results must go to s3://bucket/prefix/"),
        ("a: !!python/object/apply:os.system [ls]\n", "invalid YAML"),
        ("a: &a [*a]\n", "invalid YAML"),
        ("a: b\x00c\n", "cannot be read"),
        ("connect: {url: 'localhost:8083'}\n", "dev.yaml:1: connect.url: an address must be http://host:port"),
        ("connect: {url: localhost}\n", "connect.url: an address must be"),
        ("connect: {url: 'http://'}\n", "connect.url: an address must be"),
        ("connect: {url: 'http://local host:8083'}\n", "connect.url: an address must be"),
        ("connect: {url: 'http://localhost:99999'}\n", "connect.url: port out of range"),
        ("connect: {url: 'http://localhost:${PORT:-x}'}\n", "connect.url: port could not be cast"),
        ("kafka: {options: {group.id: mine}}\n", "'group.id' is not allowed"),
        ("spark: {driver.memory: 4g}\n", "dev.yaml:1: spark: 'driver.memory' is no setting of Spark"),
        ("aws: {jobs: {gold: {spark: {master: yarn}}}}\n", "would be ignored; did you mean 'spark.master'?"),
        ("bronze: {trigger_seconds: .inf}\n", "bronze.trigger_seconds: must be less than or equal to 86400"),
        (
            "kafka: {options: {sasl.jaas.config: 'com.sun.security.auth.module.JndiLoginModule required;'}}\n",
            "must be one entry",
        ),
    ],
)
def test_bad_yaml_is_one_clear_sentence(conf: Callable[..., settings.Settings], text: str, part: str) -> None:
    """Whatever a file holds, the answer is a ConfigError."""
    assert part in refusal(conf, text)


def test_a_part_that_is_laid_over_another_may_be_used_again(conf: Callable[..., settings.Settings]) -> None:
    """A key that it says anew is no key that is there twice, however often the part is met by an alias."""
    dev = """
aws:
  jobs:
    bronze: &one {minutes: 5, executors: 3}
    silver: &two
      <<: *one
      minutes: 9
    gold: *two
    publish: {<<: *two, executors: 1}
"""
    jobs = conf(dev).aws.jobs
    told = {stage: (job.minutes, job.executors) for stage, job in jobs.items()}
    assert told == {"bronze": (5, 3), "silver": (9, 3), "gold": (9, 3), "publish": (9, 1)}
    assert "dev.yaml:9: the key 'executors' is declared twice" in refusal(
        conf,
        dev.replace("{<<: *two, executors: 1}", "{<<: *two}").replace("*two\n", "{executors: 1,\n     executors: 2}\n"),
    )


def test_a_missing_environment_names_the_nearest(conf: Callable[..., settings.Settings], tmp_path: Path) -> None:
    """``--env devv`` is told that there is ``dev``."""
    conf()
    with pytest.raises(ConfigError, match="did you mean 'dev'"):
        settings.load(tmp_path / "conf", "devv", {})
    with pytest.raises(ConfigError, match=r"configuration folder .* does not exist"):
        settings.load(tmp_path / "nowhere", "dev", {})
    with pytest.raises(ConfigError, match=r"configuration folder .* is a file\. Give --conf DIR"):
        settings.load(tmp_path / "conf/dev.yaml", "dev", {})


def test_a_file_that_nobody_would_read_is_told_and_one_that_an_editor_left_is_none(
    conf: Callable[..., settings.Settings], tmp_path: Path
) -> None:
    """A name is read by its ending in small letters; the lock that Emacs keeps beside a file that is being changed
    leads nowhere. A source may begin with a dot, as a topic may.
    """
    folder = tmp_path / "conf/sources"
    folder.mkdir(parents=True)
    (folder / ".#shop.yaml").symlink_to("somebody@host.4711")
    assert conf().sources == ()
    (folder / ".shop.yaml").write_text("name: .shop\n", encoding="utf-8")
    assert [each.name for each in conf().sources] == [".shop"]
    for name in ("shop.YAML", "shop.Yml"):
        (folder / name).write_text("name: shop\n", encoding="utf-8")
        assert f"{name}: this file is not read: rename it to shop.yaml" in refusal(conf)
        (folder / name).unlink()


def test_a_folder_that_cannot_be_looked_into_is_none_that_is_empty(
    conf: Callable[..., settings.Settings], tmp_path: Path
) -> None:
    """A run without sources would do nothing, and say nothing: a file, or a link that leads nowhere, is told."""
    conf()
    at = tmp_path / "conf/sources"
    at.write_text("name: shop\n", encoding="utf-8")
    assert "conf/sources: the folder cannot be read: Not a directory" in refusal(conf)
    at.unlink()
    at.symlink_to(tmp_path / "nowhere")
    assert "conf/sources: the folder cannot be read: No such file" in refusal(conf)
    at.unlink()
    assert conf().sources == ()


def test_what_nobody_may_look_at_is_a_mistake_of_the_configuration(
    conf: Callable[..., settings.Settings], tmp_path: Path
) -> None:
    """Whatever the system says of a name; and an environment that ends with ``.yml`` is told to be called otherwise."""
    conf()
    for folder, env in ((tmp_path / "conf", "x" * 300), (tmp_path / ("x" * 300), "dev")):
        with pytest.raises(ConfigError, match=r"the configuration cannot be read: File name too long \[.*xxx"):
            settings.load(folder, env, {})
    (tmp_path / "conf/prod.yml").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"prod\.yml: this file is not read: rename it to prod\.yaml"):
        settings.load(tmp_path / "conf", "prod", {})


def test_a_missing_environment_says_what_fixes_it(conf: Callable[..., settings.Settings], tmp_path: Path) -> None:
    """Also where there is no other one to name; done as it says, it is there."""
    conf()
    (tmp_path / "conf/dev.yaml").unlink()
    with pytest.raises(ConfigError, match=r"no file .*conf/local.yaml") as caught:
        settings.load(tmp_path / "conf", "local", {})
    assert caught.value.fix == "Give --env NAME, or create that file: it overrides base.yaml and may be empty."
    (tmp_path / "conf/local.yaml").touch()
    assert settings.load(tmp_path / "conf", "local", {}).env == "local"


def test_the_cache_is_where_the_environment_says() -> None:
    """REPLICATOR_CACHE, else below XDG_CACHE_HOME, else below ~/.cache."""
    assert settings.cache_dir({"REPLICATOR_CACHE": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c")
    assert settings.cache_dir({"XDG_CACHE_HOME": "/x"}) == Path("/x/replicator")
    assert settings.cache_dir({}) == Path.home() / ".cache" / "replicator"
    with pytest.raises(ConfigError, match=r"there is no home directory\. Set REPLICATOR_CACHE"):
        settings.cache_dir({"REPLICATOR_CACHE": "~nobody-of-that-name/c"})


def test_a_source_takes_shared_servers_and_says_its_own(conf: Callable[..., settings.Settings]) -> None:
    """The key kafka holds for all sources; a source's own file beats it."""
    loaded = conf(
        "kafka: {bootstrap_servers: 'a:1', options: {client.id: shared}}",
        **{
            "sources/one.yaml": "name: one\n",
            "sources/two.yaml": "name: two\nbootstrap_servers: b:2\noptions: {client.id: own}\n",
        },
    )
    assert [(s.bootstrap_servers, s.options["client.id"]) for s in loaded.sources] == [
        ("a:1", "shared"),
        ("b:2", "own"),
    ]


def test_topics_default_to_the_prefix_and_include_narrows_them() -> None:
    """The topics of a connector are ``<prefix>.<table>``; a dot is a dot."""
    assert topicnames.topic_pattern("my.shop") == "my[.]shop[.].*"
    assert topicnames.topic_pattern("s", ("db.a", "db.b c")) == "s[.](?:db[.]a|db[.]b_c)"


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"sources/a.yaml": "name: S\n", "sources/b.yaml": "name: s\n"}, "already"),
        ({"sources/a.yaml": "name: s\n", "sources/b.yaml": "name: s.x\n"}, "include those of 's.x'"),
        ({"sources/a.yaml": "tables: {}\n"}, "'name' is missing"),
        ({"sources/a.yml": "name: s\n"}, "a.yml: this file is not read: rename it to a.yaml"),
        ({"base.yml": ""}, "base.yml: this file is not read: rename it to base.yaml"),
        ({"sources/a.yaml": "name: s\ncompacted_topic: maybe\n"}, "compacted_topic: must be true or false"),
        ({"sources/a.yaml": "name: s\ntopics: x\ninclude: [d.t]\n"}, "not both"),
        ({"sources/a.yaml": "name: s\ntables: {orders: {}}\n"}, "<database or schema>.<table>"),
        ({"sources/a.yaml": "name: s\ninclude: [d.*]\n"}, "a.yaml:2: include.0: 'd.*' is no table"),
        ({"sources/a.yaml": "name: s\nexclude: [d.t, d.audit_*]\n"}, "exclude.1: 'd.audit_*' is no table"),
        ({"sources/a.yaml": "name: s\nmask_before_bronze: {d.*: {drop: [c]}}\n"}, "'d.*' is no table"),
        ({"sources/a.yaml": "name: s\ntables: {d.*: {truncate: fail}}\n"}, "'d.*' is no table"),
        ({"sources/a.yaml": "name: s\ntables:\n  d.t: {}\n  d.T: {}\n"}, "'d.t' and 'd.T'"),
        (
            {"sources/a.yaml": "name: s\ntables:\n  d.t:\n    columns:\n      id: intt\n"},
            "a.yaml:5: tables.d.t.columns.id.type: unknown type 'intt'",
        ),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {columns: {id: int, ID: int}}}\n"}, "'id' and 'ID'"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {columns: {id: int}, keys: [idd]}}\n"}, "did you mean 'id'"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {truncate: maybe}}\n"}, "truncate"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {schema_changes: maybe}}\n"}, "schema_changes"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {stored_as_scd_type: 3}}\n"}, "stored_as_scd_type"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {purge_after: 30}}\n"}, "such as `30 days`"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {purge_after: off}}\n"}, "such as `30 days`"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {purge_after: -1 days}}\n"}, "such as `30 days`"),
        ({"sources/a.yaml": "name: s\ntables: {d.t: {purge_after: 0}}\n"}, "accept_refused_replays: true"),
    ],
)
def test_a_wrong_source_is_refused(conf: Callable[..., settings.Settings], files: dict[str, str], part: str) -> None:
    """What would be read wrongly is refused before anything is read."""
    assert part in refusal(conf, **files)


def test_nothing_is_said_of_the_length_of_a_hash_key_that_is_not_set(conf: Callable[..., settings.Settings]) -> None:
    """One mistake is one problem: the variable that is missing."""
    told = refusal(conf, **{"sources/a.yaml": "name: s\nhash_key: ${NOT_SET_ANYWHERE}\n"})
    assert "a.yaml:2: hash_key needs the environment variable NOT_SET_ANYWHERE" in told
    assert "guessed" not in told


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("", None),
        ("purge_after: 30 days", 2_592_000),
        ("purge_after: 1 week", 604_800),
        ("purge_after: 90minutes", 5_400),
        ("purge_after: 0, accept_refused_replays: true", 0),
    ],
)
def test_a_time_after_which_deleted_rows_go(
    conf: Callable[..., settings.Settings], told: str, seconds: int | None
) -> None:
    """In words; 0 only for who says that nothing will come again; without it they stay."""
    [source] = conf(**{"sources/a.yaml": f"name: s\ntables: {{d.t: {{{told}}}}}\n"}).sources
    assert source.declaration("d.t").purge_after == seconds


COLUMNS = "columns: {id: int, total: 'decimal(10,2)', n: {type: bigint, unsigned: true}}, keys: [id]"
LISTED = """
source: s
tables:
  d.t:
    keys: [id]
    columns:
    - {name: id, type: int}
    - {name: total, type: 'decimal(10,2)'}
    - {name: n, type: bigint, unsigned: true}
"""


@pytest.mark.parametrize(
    "text",
    [f"tables: {{d.t: {{{COLUMNS}}}}}", f"name: s\ninclude: [d.t]\ntables: {{d.t: {{{COLUMNS}}}}}", LISTED],
    ids=["bare", "source file", "listed"],
)
def test_a_declare_file_is_read_in_every_notation(tmp_path: Path, text: str) -> None:
    """``--declare`` takes bare tables, tables of a source, or a whole source file (types.md Y13)."""
    (tmp_path / "d.yaml").write_text(text, encoding="utf-8")
    (declared,) = sourcefile.load_declarations(tmp_path / "d.yaml")
    assert (declared.table, declared.keys) == ("d.t", ("id",))
    assert declared.columns == (
        Column("id", "int"),
        Column("total", "decimal(10,2)"),
        Column("n", "bigint", unsigned=True),
    )


def test_a_wrong_declare_file_names_file_and_line(tmp_path: Path) -> None:
    """A declaration that nobody can follow is refused with its place."""
    (tmp_path / "d.yaml").write_text("tables:\n  d.t:\n    colums: {id: int}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"d\.yaml:3: unknown key 'tables\.d\.t\.colums'; did you mean 'columns'"):
        sourcefile.load_declarations(tmp_path / "d.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        sourcefile.load_declarations(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    "pattern", [r"s[.]\p{Lower}+[.].*", "s[.](orders", "*", "(?P<a>s)[.].*", "s[.]a{,3}", "s(?#c)[.].*"]
)
def test_topics_that_not_both_clients_of_kafka_understand_are_refused(
    conf: Callable[..., settings.Settings], pattern: str
) -> None:
    """Spark asks by Java's expressions, `status`, `tail` and masks by Python's: a run would end in the midst."""
    told = refusal(conf, **{"sources/s.yaml": f"name: s\ntopics: '{pattern}'\n"})
    assert "s.yaml:2: topics: not a regular expression that both Java and Python accept" in told


def test_all_tables_but_some_are_read(conf: Callable[..., settings.Settings]) -> None:
    """An excluded table has no topic that is read, whatever others are called."""
    [source] = conf(**{"sources/s.yaml": "name: s\nexclude: [shop.audit, shop.a$b]\n"}).sources
    topics: tuple[str, ...] = ("s.shop.orders", "s.shop.audit_log", "s.shop.audit", "s.shop.a_b")
    assert [bool(re.fullmatch(source.topics, topic)) for topic in topics] == [True, True, False, False]
    assert [topicnames.includes_table(source, table) for table in ("shop.orders", "shop.audit")] == [True, False]
    topics = ("s.crm.shop.audit", "s.crm.shop.orders", "s.shop.audit.x")  # SQL Server's have the database as well
    assert [bool(re.fullmatch(source.topics, topic)) for topic in topics] == [False, True, True]
    assert "topics or exclude" in refusal(conf, **{"sources/s.yaml": "name: s\nexclude: [a.b]\ntopics: x\n"})
    assert "not both" in refusal(conf, **{"sources/s.yaml": "name: s\nexclude: [a.b]\ninclude: [a.c]\n"})


@pytest.mark.parametrize(
    ("kind", "told", "read", "not_read"),
    [
        ("", "include: [dbo.orders]", "s.dbo.orders s.crm.dbo.orders s.erp.dbo.orders", "s.dbo.lines s.dbo.orders.x"),
        ("sqlserver", "include: [dbo.orders]", "s.crm.dbo.orders", "s.crm.dbo.lines s.crm.x.dbo.orders"),
        ("sqlserver", "include: [crm.dbo.orders]", "s.crm.dbo.orders", "s.erp.dbo.orders"),
        ("sqlserver", "exclude: [dbo.audit]", "s.crm.dbo.orders", "s.crm.dbo.audit s.erp.dbo.audit"),
        ("sqlserver", "exclude: [crm.dbo.audit]", "s.erp.dbo.audit s.crm.dbo.orders", "s.crm.dbo.audit"),
        ("mariadb", "include: [dbo.orders]", "s.dbo.orders", "s.crm.dbo.orders"),
    ],
)
def test_a_table_is_named_without_the_database_that_its_topic_may_have(
    conf: Callable[..., settings.Settings], kind: str, told: str, read: str, not_read: str
) -> None:
    """SQL Server's topics are ``<prefix>.<database>.<schema>.<table>``; with its database a table is that one's."""
    database = f"database: {{kind: {kind}, host: h, user: u}}\n" if kind else ""
    [source] = conf(**{"sources/s.yaml": f"name: s\n{told}\n{database}"}).sources
    assert [topic for topic in (*read.split(), *not_read.split()) if source.matches(topic)] == read.split()
    assert [topicnames.includes_table(source, table) for table in ("dbo.orders", "dbo.x")] == [
        True,
        told.startswith("exclude"),
    ]


def test_two_sources_whose_names_begin_alike_read_no_topic_together(conf: Callable[..., settings.Settings]) -> None:
    """What one includes may be the other's, where the second part of a topic may be a database."""
    files = {"sources/s.yaml": "name: s\ninclude: [db.orders]\n", "sources/e.yaml": "name: s.eu\n"}
    assert "'s' include those of 's.eu': set its `kind`" in refusal(conf, **files)
    database = "database: {kind: mariadb, host: h, user: u}\n"
    assert len(conf(**files | {"sources/s.yaml": files["sources/s.yaml"] + database}).sources) == 2
    assert len(conf(**files | {"sources/e.yaml": "name: s.eu\ninclude: [db.lines]\n"}).sources) == 2
    assert "give include" in refusal(conf, **files | {"sources/s.yaml": "name: s\n"})


def test_shards_are_declared_with_the_column_that_tells_them_apart(conf: Callable[..., settings.Settings]) -> None:
    """Their keys are equal; and a TRUNCATE of one must not empty the others."""
    file = "name: s\ntopics: s.*\ntables:\n  shop.orders: {shards: 'shop_[0-9]+[.]orders', "
    [source] = conf(**{"sources/s.yaml": file + "shard_column: shard, truncate: fail}\n"}).sources
    [table] = source.tables
    assert (table.shards, table.transform and table.transform.shard) == ("shop_[0-9]+[.]orders", "shard")
    assert "must be given together" in refusal(conf, **{"sources/s.yaml": file + "truncate: fail}\n"})
    assert "would empty them all" in refusal(conf, **{"sources/s.yaml": file + "shard_column: shard}\n"})


@pytest.mark.parametrize("conf", ["conf", "conf/northwind", "conf/star"])
def test_the_local_stack_is_the_catalog_of_each_shipped_configuration(conf: str) -> None:
    """``catalog sync --env local`` without it asks AWS: it ends for want of a region, or changes an account."""
    endpoint = "http://127.0.0.1:9123"
    catalog = settings.load(CONF.parent / conf, "local", {"S3_ENDPOINT": endpoint}).catalog
    assert (catalog.endpoint, catalog.region) == (endpoint, "us-east-1")
