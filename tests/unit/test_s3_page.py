"""docs/s3.md says what is so: its keys are known, its values are those that a session has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pyspark
import pytest

from replicator import settings
from replicator.config.settingkeys import Keys, S3Keys
from replicator.jvm import sparkconf
from tests import readme

PAGE = "docs/s3.md"
SIDE_BY_SIDE, BUSY = "MinIO and AWS side by side", "When the store is busy, or the network bad"
ONLY_IN_ITS_MANUAL = {"fs.s3a.directory.marker.retention": "delete"}
"""Hadoop's file of defaults does not have it."""


@pytest.fixture(scope="module")
def hadoop() -> dict[str, str]:
    """The defaults of the Hadoop that pyspark brings."""
    [jar] = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    with ZipFile(jar) as archive:
        properties = ET.fromstring(archive.read("core-default.xml"))  # noqa: S314 - of the locked environment
    told = {each.findtext("name", ""): (each.findtext("value") or "").strip() for each in properties}
    return told | ONLY_IN_ITS_MANUAL


def rows(section: str) -> Iterator[list[str]]:
    """The cells of each row of a section's table, without its head."""
    lines = [line for line in readme.sections(PAGE)[section] if line.startswith("|")]
    return ([cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:])


def test_every_key_side_by_side_is_one_that_there_is(hadoop: dict[str, str]) -> None:
    """Hadoop's, ours of ``s3`` and ``lake``; of others only Delta's log store, which is told to be untried."""
    named = [key for cells in rows(SIDE_BY_SIDE) for key in re.findall(r"`([a-z0-9]+(?:\.[\w.]+)+)`", cells[0])]
    ours = {f"s3.{key}" for key in S3Keys.model_fields} | {"lake.lease"}
    assert set(ours) <= set(named)
    theirs = [key for key in named if key not in ours]
    assert {key for key in theirs if key.startswith("fs.s3a.")} <= hadoop.keys()
    assert all(key.startswith(("fs.s3a.", "spark.delta.logStore.", "spark.io.delta.storage.")) for key in theirs)


def test_patience_is_told_as_it_is(hadoop: dict[str, str], tmp_path: Path) -> None:
    """Beside what Hadoop would do without us; and no setting of ours is left out."""
    keys = Keys.model_validate({"lake": {"root": "s3a://bucket/lake"}})
    conf = sparkconf.session_settings(settings.bare(str(tmp_path)).model_copy(update={"lake": keys.lake}), {})
    set_by_us = {key.removeprefix("spark.hadoop."): value for key, value in conf.items() if ".fs.s3a." in key}
    told = {f"fs.s3a.{cells[0].strip('`')}": cells[1:3] for cells in rows(BUSY)}
    assert set_by_us.keys() <= told.keys()
    assert {key: [set_by_us.get(key, hadoop[key]), hadoop[key]] for key in told} == told


def test_both_columns_are_configurations_that_load() -> None:
    """``conf/local.yaml`` names a server, ``conf/aws/aws.yaml`` leaves that to AWS's own chain; both are patient."""
    local = settings.load(readme.ROOT / "conf", "local", {})
    aws = settings.load(readme.ROOT / "conf" / "aws", "aws", {})
    assert (local.s3.endpoint, local.s3.path_style, local.lake.lease) == ("http://127.0.0.1:9000", True, 30)
    assert (aws.s3, aws.lake.lease) == (None, 30)
    for each in (local, aws):
        told = sparkconf.session_settings(each, {})
        assert each.lake.root.startswith("s3a://")
        assert told["spark.hadoop.fs.s3a.connection.maximum"] == "500"
