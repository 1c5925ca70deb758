"""Packages for EMR: the same bytes twice, nothing that should stay at home, and their way to S3 and back."""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from replicator import settings
from replicator.aws import archive, package, s3_folder
from replicator.aws.manifest import MANIFEST, Manifest
from replicator.config import databasekeys, declarekeys, settingkeys
from replicator.errors import ConfigError, Unreachable

ROOT = Path(__file__).parents[2]
ARTIFACTS = "s3://artifacts/replicator"


def pip(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """Leaves what pip leaves: a wheel, or installed packages with their scripts."""
    if arguments[0] == "wheel":
        assert variables["SOURCE_DATE_EPOCH"] == "315532800"
        assert (Path(arguments[-1]) / "replicator/__init__.py").is_file()
        (Path(arguments[arguments.index("--wheel-dir") + 1]) / "lakehouse_replicator-1-py3-none-any.whl").write_bytes(
            b"w"
        )
        return
    target = Path(arguments[arguments.index("--target") + 1])
    for name in ("boto3/__init__.py", "bin/script"):
        (target / name).parent.mkdir(parents=True)
        (target / name).write_text(name, encoding="utf-8")


def content(tmp_path: Path, **variables: str) -> package.PackageInputs:
    jar = tmp_path / "org.postgresql_postgresql-42.7.14.jar"
    jar.write_bytes(b"jar")
    return package.PackageInputs(ROOT, ROOT / "conf/aws", "aws", variables, [jar])


def build(tmp_path: Path, name: str = "out", **variables: str) -> tuple[Path, Manifest]:
    to = tmp_path / name
    return to, package.build(content(tmp_path, **variables), to, pip, lambda _: None)


def unpacked(file: Path) -> dict[str, str]:
    with tarfile.open(file) as found:
        return {each.name: found.extractfile(each).read().decode() for each in found if each.isfile()}


def test_an_archive_is_the_same_whenever_and_by_whomever_it_is_made(tmp_path: Path) -> None:
    """Times, modes, owners and the order of a folder are not in it; whether a file may be run is."""
    for name, umask in (("a", 0o022), ("b", 0o077)):
        old = os.umask(umask)
        names = ["x/two.txt", "one.txt", "x/run.sh"]
        for each in names if name == "a" else reversed(names):
            file = tmp_path / name / each
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(each, encoding="utf-8")
        (tmp_path / name / "x/run.sh").chmod(0o755 if name == "a" else 0o700)
        os.umask(old)
    os.utime(tmp_path / "b/one.txt", (1, 1))
    for name in "ab":
        archive.pack(tmp_path / name, tmp_path / f"{name}.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.gz") as made:
        assert [(each.name, oct(each.mode)) for each in made] == [
            ("one.txt", "0o644"),
            ("x/run.sh", "0o755"),
            ("x/two.txt", "0o644"),
        ]


def test_a_package_is_the_same_bytes_twice(tmp_path: Path) -> None:
    """And has wheel, jobs, configuration, packages, JARs and what starts a machine of a cluster."""
    (one, first), (two, second) = build(tmp_path, "one"), build(tmp_path, "two")
    assert archive.checksums(one) == archive.checksums(two)
    assert first.id == second.id
    assert sorted(first.files) == [
        "bootstrap.sh",
        "conf.tar.gz",
        "dependencies.tar.gz",
        "jars/org.postgresql_postgresql-42.7.14.jar",
        "jobs/bronze.py",
        "jobs/canonical.py",
        "jobs/gold.py",
        "jobs/publish.py",
        "jobs/silver.py",
        "lakehouse_replicator-1-py3-none-any.whl",
    ]
    assert list(unpacked(one / "dependencies.tar.gz")) == ["boto3/__init__.py"]


def test_a_changed_file_is_another_package(tmp_path: Path) -> None:
    """Its name is made of what is in it."""
    assert build(tmp_path, "one")[1].id != build(tmp_path, "two", LAKE="s3a://other/lake")[1].id


def test_variables_become_values_and_secrets_stay_references(tmp_path: Path) -> None:
    """A job has none of the variables of whoever packs; what sounds like a secret is not even looked at."""
    asked = package.referenced_variables(ROOT / "conf/aws", "aws")
    assert {"LAKE", "KAFKA_BOOTSTRAP", "DATABASE_HOST"} <= asked
    assert not {"WAREHOUSE_PASSWORD", "DEBEZIUM_PASSWORD"} & asked
    to, _ = build(tmp_path, LAKE="s3a://mine/lake", KAFKA_BOOTSTRAP="b-1.x:9098,b-2.x:9098")
    files = unpacked(to / "conf.tar.gz")
    assert "root: s3a://mine/lake\n" in files["aws.yaml"]
    assert "bootstrap_servers: b-1.x:9098,b-2.x:9098\n" in files["aws.yaml"]
    assert "${WAREHOUSE_PASSWORD:-}" in files["aws.yaml"]
    with pytest.raises(ConfigError, match=r"\$LAKE"):
        build(tmp_path, "odd", LAKE="s3a://mine/lake\nother: key")


SECRETS = {
    "base.yaml": """
connect: {url: "${URL}", user: "${USER_NAME}", password: "${CONNECT_OF_X}"}
targets:
  warehouse: {host: "${HOST}", password: "${OF_WAREHOUSE:-}", options: {sslkey: /x, sslpassword: "${A}"}}
""",
    "aws.yaml": """
kafka: {bootstrap_servers: ["${B1}", "${B2}"], options: {sasl.jaas.config: "x ${B}", ssl.keystore.key: "${C}"}}
s3: {access_key: "${D}", secret_key: "${E}", region: "${REGION}"}
spark: {spark.hadoop.fs.x.secret: "${F}", spark.url: "jdbc:x://h?user=me&password=${G}", spark.proxy: "//me:${H}@h"}
aws: {jobs: {publish: {secrets: {X_PWD: "${STACK}-publish:password"}}}}
catalog: {database: "${SHOP_DB_PASS}", a: "${db_pass}", b: "${WAREHOUSE_PWD}", c: "${JAAS}", d: "${PASSENGERS} ${I}"}
""",
    "sources/shop.yaml": """
hash_key: ${I}
database: {host: "${HOST}", password: "${J}"} # ${ONLY_SAID}
connector: {host: "${HOST}", password: "${env:K}", options: {database.ssl.keystore.password: "${L}"}}
""",
}


def test_a_variable_in_the_default_of_another_is_filled_in(tmp_path: Path) -> None:
    """It is asked for as any other, a secret as little, and where the outer one is known nothing of it is left."""
    (tmp_path / "aws.yaml").write_text("a: ${A:-${B:-b}}/x\npassword: ${C:-${D}}\n", encoding="utf-8")
    assert package.referenced_variables(tmp_path, "aws") == {"A", "B"}
    for values, told in (({"A": "1"}, "1/x"), ({"B": "2"}, "${A:-2}/x"), ({}, "${A:-${B:-b}}/x")):
        package.pack_configuration(tmp_path, "aws", tmp_path / "conf.tar.gz", values)
        assert unpacked(tmp_path / "conf.tar.gz")["aws.yaml"] == f"a: {told}\npassword: ${{C:-${{D}}}}\n"


@pytest.mark.parametrize(
    "value", ["analysts", "0123", "012345678901", "null", "on", "12:30:45", "2020-01-01", "*x", "@x", "=", "a:", "1.0"]
)
def test_a_value_is_read_from_the_package_as_from_its_variable(tmp_path: Path, value: str) -> None:
    """A text, whatever YAML would take it for; a number where one is wanted."""
    (tmp_path / "aws.yaml").write_text(
        "athena:\n  workgroup: ${WG}  # of ${WG}\n  database: x ${WG} it's\n"
        "  output: 's3://a/${WG}'\nsilver:\n  tables_at_once: ${AT_ONCE}\n",
        encoding="utf-8",
    )
    variables = {"WG": value, "AT_ONCE": "2"}
    package.pack_configuration(tmp_path, "aws", tmp_path / "conf.tar.gz", variables)
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed/aws.yaml").write_text(unpacked(tmp_path / "conf.tar.gz")["aws.yaml"], encoding="utf-8")
    read, packed = settings.load(tmp_path, "aws", variables), settings.load(tmp_path / "packed", "aws", {})
    assert (packed.athena, packed.silver) == (read.athena, read.silver)
    assert packed.athena.workgroup == value


def test_a_variable_that_fills_a_secret_is_one_whatever_it_is_called(tmp_path: Path) -> None:
    """By the key, by what stands around it, or by its name; ``secrets`` of a job are names, and no secrets."""
    for name, told in SECRETS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(told, encoding="utf-8")
    plain = {"URL", "USER_NAME", "HOST", "B1", "B2", "REGION", "STACK", "PASSENGERS"}
    assert package.referenced_variables(tmp_path, "aws") == plain


def test_no_key_of_ours_for_a_secret_is_filled_in(tmp_path: Path) -> None:
    """Whatever is kept as one in memory."""
    models: list[Any] = [settingkeys.TargetKeys, settingkeys.ConnectKeys, settingkeys.S3Keys, settingkeys.AthenaKeys]
    models += [settingkeys.CatalogKeys, databasekeys.DatabaseKeys, declarekeys.DeclareKeys]
    keys = {
        name for each in models for name, field in each.model_fields.items() if "SecretStr" in str(field.annotation)
    }
    assert {"password", "hash_key", "secret_key"} <= keys
    told = "".join(f"{key}: ${{V{at}}}\n" for at, key in enumerate(keys))
    (tmp_path / "base.yaml").write_text(told, encoding="utf-8")
    assert package.referenced_variables(tmp_path, "aws") == set()


def test_other_environments_stay_at_home(tmp_path: Path) -> None:
    """local.yaml has passwords of throw-away databases, prod.yaml perhaps others."""
    package.pack_configuration(ROOT / "conf", "demo", tmp_path / "conf.tar.gz", {})
    names = set(unpacked(tmp_path / "conf.tar.gz"))
    assert {"base.yaml", "demo.yaml", "sources/dbserver1.yaml", "models/fact_orders.sql"} <= names
    assert not {"local.yaml", "northwind/local.yaml"} & names


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    """Only an older package is removed; and only a checkout can be packed."""
    to, _ = build(tmp_path)
    (to / "jobs/old.py").write_text("", encoding="utf-8")
    again, packed = build(tmp_path)
    assert (to, "jobs/old.py" in packed.files) == (again, False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match="not from a package"):
        package.build(content(tmp_path), tmp_path / "mine", pip, lambda _: None)
    with pytest.raises(ConfigError, match=r"pyproject\.toml"):
        package.build(package.PackageInputs(tmp_path, tmp_path, "aws", {}, []), tmp_path / "new", pip, lambda _: None)


@pytest.mark.parametrize(
    "files",
    [
        ["pyproject.toml", "jobs/bronze.py", "replicator/__init__.py"],
        ["conf/base.yaml", "jobs/bronze.py", "jobs/silver.py"],
        ["jobs/mine.py"],
        ["jobs/bronze.py", "manifest.json", "lakehouse_replicator-1-py3-none-any.whl", "notes.txt"],
        ["a-1-py3-none-any.whl", "b-1-py3-none-any.whl"],
        ["jars/my.jar"],
        ["bootstrap.sh"],
        ["manifest.json"],
    ],
)
def test_a_folder_of_jobs_is_no_package(tmp_path: Path, files: list[str]) -> None:
    """A checkout has jobs, and so has what `init` makes; a folder of wheels has wheels: none is removed."""
    to = tmp_path / "mine"
    for name in files:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="not from a package"):
        package.build(content(tmp_path), to, pip, lambda _: None)
    assert [name for name in files if not (to / name).is_file()] == []


def test_what_a_package_that_broke_off_has_left_makes_room(tmp_path: Path) -> None:
    """Its jobs' folder comes first, the wheel behind it, and the list of all last; a link to the folder stays one."""
    (tmp_path / "out/jobs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    build(tmp_path, "link")
    (tmp_path / "out" / MANIFEST).unlink()
    to, packed = build(tmp_path, "link")
    assert to.is_symlink()
    assert {*packed.files, MANIFEST} == set(archive.checksums(tmp_path / "out"))
    for name in ("file", MANIFEST):
        (tmp_path / name).write_text("", encoding="utf-8")
        with pytest.raises(ConfigError, match="not from a package"):
            build(tmp_path, name)
        assert (tmp_path / name).is_file()


def test_a_pip_that_fails_is_told_with_its_last_word() -> None:
    """A network that is not there is a matter of trying again."""
    with pytest.raises(Unreachable, match=r"pip failed: .*no-such-command"):
        package.run_pip(["no-such-command"], {})


def test_a_manifest_that_was_changed_is_refused(tmp_path: Path) -> None:
    """Its id is made of what it lists."""
    _, packed = build(tmp_path)
    assert Manifest.told(packed.text(), "x") == packed
    with pytest.raises(ConfigError, match="by hand"):
        Manifest.told(packed.text().replace("jobs/gold.py", "jobs/evil.py"), "x")
    with pytest.raises(ConfigError, match="not a package manifest"):
        Manifest.told("[]", "x")


def test_what_emr_runs_is_what_was_tested() -> None:
    """Each package of the lock for EMR has the version of the lock that tests run with."""

    def versions(name: str) -> set[str]:
        text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        return set(re.findall(r"^([\w.-]+==[^\s;]+)", text, re.MULTILINE))

    emr = versions("emr.lock")
    assert not {each.split("==")[0] for each in emr} & {"pyspark", "py4j"}
    assert emr - versions("dev.lock") == set()
    assert len(emr) > 15


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3_folder.S3Folder]:
    """A place on S3 as moto keeps it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="artifacts")
        yield s3_folder.S3Folder(ARTIFACTS, "us-east-1")


def test_a_package_goes_to_s3_and_is_the_current_one(bucket: s3_folder.S3Folder, tmp_path: Path) -> None:
    """A second time nothing of it is sent; another one has a folder of its own, and both stay."""
    to, packed = build(tmp_path)
    sent: list[str] = []
    assert s3_folder.upload(to, packed, bucket, sent.append) == f"{ARTIFACTS}/{packed.id}"
    assert sent == [*sorted(packed.files), MANIFEST]
    assert s3_folder.select_package(bucket, None) == (packed, f"{ARTIFACTS}/{packed.id}")
    sent.clear()
    s3_folder.upload(to, packed, bucket, sent.append)
    assert sent == []
    other_folder, other = build(tmp_path, "other", LAKE="s3a://other/lake")
    s3_folder.upload(other_folder, other, bucket, sent.append)
    assert s3_folder.select_package(bucket, None)[0].id == other.id
    assert s3_folder.select_package(bucket, packed.id)[0].id == packed.id


def test_a_package_that_is_not_there_is_told(bucket: s3_folder.S3Folder) -> None:
    """With what to do about it."""
    for wanted, told in ((None, "there is no package"), ("0123456789ab", "package 0123456789ab does not exist")):
        with pytest.raises(ConfigError, match=told):
            s3_folder.select_package(bucket, wanted)


def test_half_an_upload_is_no_package(bucket: s3_folder.S3Folder, tmp_path: Path) -> None:
    """The manifest comes last: whoever dies before leaves the current package as it was, and may begin again."""
    to, packed = build(tmp_path)

    def die(name: str) -> None:
        if name == MANIFEST:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        s3_folder.upload(to, packed, bucket, die)
    with pytest.raises(ConfigError, match=r"package .* does not exist"):
        s3_folder.select_package(bucket, packed.id)
    s3_folder.upload(to, packed, bucket, lambda _: None)
    assert s3_folder.select_package(bucket, None)[0] == packed
