"""A package as EMR has it: unpacked where nothing else of ours is, and a stage of it run by the words of its step."""

from __future__ import annotations

import gzip
import importlib.metadata
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from infra import landing
from replicator import jars
from replicator.aws import job, package, runtime
from replicator.config.awskeys import JobKeys
from replicator.jvm import class_archive, spark_home
from replicator.jvm.java import java_home
from replicator.jvm.jvm_options import SHORT_LIVED
from replicator.settings import cache_dir

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
LEFT_OUT = {"pyarrow", "pygments"}
"""Two thirds of the bytes, which no stage imports."""
CONF = {
    "emr.yaml": "runtime: emr\nlake:\n  root: ${LAKE}\n",
    "sources/demo.yaml": "name: demo\nobjects: ${LANDED}\ntables:\n  datalake.cdc_events:\n    keys: [order_id]\n",
}


def pip(arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """What pip does, without a network: it builds the wheel with this environment's backend; a locked package is
    taken from this environment, in the lock's version.
    """
    if arguments[0] == "wheel":
        package.run_pip(["wheel", "--no-build-isolation", *arguments[1:]], variables)
        return
    lock, target = (Path(arguments[arguments.index(flag) + 1]) for flag in ("--requirement", "--target"))
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE):
        found = importlib.metadata.distribution(name)
        assert found.version == version
        for file in found.files or () if name not in LEFT_OUT else ():
            if ".." not in file.parts and file.suffix != ".pyc":
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(found.locate_file(file)), target / file)


@dataclass(frozen=True)
class Machine:
    """A machine of EMR below ``root``, as far as a step needs it: a Python without any package, the runtime's Delta
    under the names that EMR has for it, and an empty folder for the driver.
    """

    root: Path
    folder: Path

    def start(self, step: Mapping[str, Sequence[str]], beside: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
        """The driver of a step, as the cluster's manager starts it: variables set, archives unpacked under their names
        into a folder that nothing else is in. ``beside`` are JARs that somebody adds. All it says comes by stdout.
        """
        words = [re.sub(r"(^|[=,])/usr/", rf"\1{self.root}/usr/", word) for word in step["Args"]]
        told = dict(word.split("=", 1) for flag, word in itertools.pairwise(words) if flag == "--conf")
        self._unpack(told.pop("spark.archives"))
        told["spark.jars"] = ",".join([told["spark.jars"], *map(str, beside)])
        prefix = "spark.yarn.appMasterEnv."
        variables = {key.removeprefix(prefix): value for key, value in told.items() if key.startswith(prefix)}
        flags = [
            word for key, value in told.items() if not key.startswith(prefix) for word in ("--conf", f"{key}={value}")
        ]
        begin = next(at for at, word in enumerate(words) if word.endswith(".py"))
        return self._submit([*flags, *words[begin:]], variables)

    def _unpack(self, archives: str) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for file, _, name in (each.partition("#") for each in archives.split(",")):
            with tarfile.open(file) as archive:
                archive.extractall(self.folder / name, filter="data")

    def _submit(self, words: Sequence[str], variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        home, java = spark_home.bundled(), java_home(os.environ.get("JAVA_HOME"))
        archive = class_archive.java_options(SHORT_LIVED, class_archive.archive_path(java))
        own = {"SPARK_HOME": str(home), "JAVA_HOME": str(java), "SPARK_SUBMIT_OPTS": f"{SHORT_LIVED} {archive}"}
        own |= {"PATH": os.environ["PATH"], "HOME": str(self.root)}
        command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", *words]
        return subprocess.run(
            command, cwd=self.folder, env={**own, **variables}, capture_output=True, text=True, check=False
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With the Delta that we test in the place of EMR's, which are links to files that tell their version."""
    if f"python{sys.version_info[0]}.{sys.version_info[1]}" != runtime.PYTHON:
        pytest.skip(f"packages are for {runtime.PYTHON}")
    machine = Machine(tmp_path / "machine", tmp_path / "container")
    venv.create(machine.root / "usr", symlinks=True)
    for ours, theirs in zip(delta(), runtime.jars(["delta"]), strict=True):
        place = machine.root / theirs.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ours, versioned(place))
        place.symlink_to(versioned(place))
    return machine


def versioned(place: Path) -> Path:
    """What a link of EMR's leads to."""
    return place.with_name(f"{place.stem}-3.3.0-amzn-0.jar")


def delta() -> list[Path]:
    """Our JARs of Delta, in the cache."""
    lock = jars.load_lock("3.5")
    return jars.locate({each: lock[each] for each in lock if each.startswith("io.delta:")}, cache_dir())


def landed(recorded: Path, folder: Path) -> list[str]:
    """The recorded outbox as objects of a folder; the lines that they hold."""
    with gzip.open(recorded / "northwind.demo.jsonl.gz", "rt", encoding="utf-8") as file:
        told = [json.loads(each) for each in file]
    records = [landing.Record(r["topic"], r["partition"], r["offset"], r["payload"]) for r in told]
    folder.mkdir()
    every = list(landing.objects(records, (), {}, flush_count=100))
    for each in every:
        (folder / Path(each.name).name).write_text(each.text, encoding="utf-8")
    return [line for each in every for line in each.text.splitlines()]


def class_path(events: Path) -> list[str]:
    """The JARs that a driver had, by what it wrote down of itself."""
    [log] = events.iterdir()
    told = (json.loads(line) for line in log.read_text(encoding="utf-8").splitlines())
    return list(next(each for each in told if each["Event"] == "SparkListenerEnvironmentUpdate")["Classpath Entries"])


def test_a_stage_runs_out_of_what_was_packed_with_the_runtimes_own_delta_alone(
    recorded: Path, machine: Machine, tmp_path: Path
) -> None:
    """Wheel, packages, configuration and JARs of the archives are all that it needs; a Delta of ours on its class path
    is refused with exit code 2 before there is a table.
    """
    for name, text in CONF.items():
        (tmp_path / "conf" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "conf" / name).write_text(text, encoding="utf-8")
    lines = landed(recorded, tmp_path / "landed")
    values = {"LAKE": str(tmp_path / "lake"), "LANDED": str(tmp_path / "landed")}
    theirs = jars.locate(runtime.missing_jars(jars.load_lock("3.5", ["hudi"])), cache_dir())
    packed = package.build(
        package.PackageInputs(ROOT, tmp_path / "conf", "emr", values, theirs), tmp_path / "s3", pip, lambda _: None
    )
    [wheel] = (tmp_path / "s3").glob("*.whl")
    ours = [each for each in (ROOT / "replicator").rglob("*.*") if each.suffix != ".pyc"]
    assert {each.relative_to(ROOT).as_posix() for each in ours} <= set(zipfile.ZipFile(wheel).namelist())
    (tmp_path / "events").mkdir()
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": (tmp_path / "events").as_uri()}
    keys = JobKeys(driver_memory="1g", spark=logged)
    step = job.step(job.Job("bronze", packed, str(tmp_path / "s3"), keys=keys))["HadoopJarStep"]

    refused = machine.start(step, delta())
    [said] = [line for line in refused.stdout.splitlines() if line.startswith("error: ")]
    assert "uses the runtime's own Delta and Hudi, but other JARs were given: io.delta_delta-spark" in said
    assert refused.returncode == 2
    assert not (tmp_path / "lake" / "bronze").exists()

    done = machine.start(step)
    assert done.returncode == 0, done.stdout[-3000:]
    bronze = DeltaTable(str(tmp_path / "lake" / "bronze" / "demo")).to_pyarrow_table(columns=["value"])
    assert sorted(bronze["value"].to_pylist()) == sorted(lines)
    found = {Path(each).name for each in class_path(tmp_path / "events")}
    theirs_alone = {versioned(Path(each)).name for each in runtime.jars(["delta"])}
    assert theirs_alone | {Path(each).name for each in packed.jars} <= found
    assert {each for each in found if "delta-" in each or "hudi-" in each} == theirs_alone
