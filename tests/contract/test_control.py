"""``Control``: every implementation keeps the same promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from pyspark.sql import SparkSession

from replicator import failpoints
from replicator.catalog.control_reader import StoredControlReader
from replicator.catalog.store import Store
from replicator.controlrow import select_fields
from replicator.errors import NoControlRow, Unreachable
from replicator.failpoints import Killed, parse
from replicator.formats import control as controls
from replicator.formats.control import JsonControl, MemoryControl
from replicator.protocols import Control

pytestmark = pytest.mark.spark


@pytest.fixture(params=[MemoryControl, JsonControl])
def control(request: pytest.FixtureRequest, spark: SparkSession) -> Control:
    made: Callable[..., Control] = request.param
    return made(spark) if made is JsonControl else made()


def test_an_object_is_kept_replaced_and_forgotten(control: Control, tmp_path: Path) -> None:
    """The last write counts, whole."""
    path = f"{tmp_path}/kept/a.json"
    assert control.get(path) is None
    control.put(path, {"a": 1, "é": [None]})
    control.put(path, {"b": "ü"})
    assert control.get(path) == {"b": "ü"}
    control.remove(path)
    control.remove(path)
    assert control.get(path) is None


def test_the_objects_of_a_folder_are_listed_without_those_below(control: Control, tmp_path: Path) -> None:
    """Sorted; a folder that nobody wrote to has none."""
    assert control.under(f"{tmp_path}/kept") == ()
    for name in ("b", "a", "below/c"):
        control.put(f"{tmp_path}/kept/{name}.json", {})
    assert control.under(f"{tmp_path}/kept") == ("a", "b")


@pytest.mark.parametrize("told", ["", '{"a": ', "null", "[]", "5"])
def test_what_is_no_object_is_named(spark: SparkSession, tmp_path: Path, told: str) -> None:
    """By who reads it with a JVM and who does without: the source or the table stops, and the others go on."""
    path = tmp_path / "a.json"
    path.write_text(told)
    store = Store(str(tmp_path))
    for facts in (JsonControl(spark), StoredControlReader(store, store.files())):
        with pytest.raises(NoControlRow, match=r"not a JSON object \[.*a\.json\]"):
            facts.get(str(path))


def test_a_row_that_was_put_back_beside_the_checksum_of_another_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """Who copies the file that is named sees no hidden one: it is told what is to be removed, and then it is read."""
    path, control = tmp_path / "a.json", JsonControl(spark)
    control.put(str(path), {"one": 1})
    path.write_text('{"one": 2}')
    with pytest.raises(NoControlRow, match=r"does not match its checksum \[.*a\.json\].*delete \.a\.json\.crc next to"):
        control.get(str(path))
    (tmp_path / ".a.json.crc").unlink()
    assert control.get(str(path)) == {"one": 2}


@dataclass
class Noted:
    """What some row tells."""

    name: str
    also: dict[str, Any] = field(default_factory=dict)


def test_what_a_row_lacks_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """Another version may have written it: a name that is asked for is not taken for something else's."""
    path, store = f"{tmp_path}/a.json", Store(str(tmp_path))
    JsonControl(spark).put(path, {"one": 1, "each": [{"two": 2}]})
    for facts in (JsonControl(spark), StoredControlReader(store, store.files())):
        row: Any = facts.get(path)
        assert row == {"one": 1, "each": [{"two": 2}]}
        assert row.get("other") is None
        with pytest.raises(NoControlRow, match=r"has no 'other' \[.*a\.json\]"):
            row["other"]
        with pytest.raises(NoControlRow, match=r"has no 'name' \[.*a\.json\]"):
            row["each"][0]["name"]
        assert asdict(Noted("x", row)) == {"name": "x", "also": row}
        with pytest.raises(NoControlRow, match="has no 'name'"):
            select_fields(Noted, row)


def test_a_writer_that_dies_again_and_again_leaves_a_whole_object_or_none(spark: SparkSession, tmp_path: Path) -> None:
    """A JSON file, whatever the order of deaths: what was there is read, or what was to come, and so it is without a
    JVM; the next write counts.
    """
    control, store = JsonControl(spark), Store(str(tmp_path))
    facts = StoredControlReader(store, store.files())
    for number, deaths in enumerate(product(("control.row_begun", "control.row_beside"), repeat=3)):
        path = f"{tmp_path}/kept/{number}.json"
        known: list[dict[str, int] | None] = [None]
        for value, point in enumerate(deaths):
            with failpoints.watched(parse(f"{point}:raise:1")), pytest.raises(Killed):
                control.put(path, {"value": value})
            known.append({"value": value})
            found = JsonControl(spark).get(path)
            assert facts.get(path) == found
            assert found == (known[-1] if point == "control.row_beside" else known[-2]), deaths[: value + 1]
            known[-1] = found
            assert (str(number) in control.under(f"{tmp_path}/kept")) == (found is not None)
            assert facts.under(f"{tmp_path}/kept") == control.under(f"{tmp_path}/kept")
        control.put(path, {"value": "last"})
        assert JsonControl(spark).get(path) == {"value": "last"}
        with failpoints.watched(parse("control.row_beside:raise:1")), pytest.raises(Killed):
            control.put(path, {"value": "more"})
        control.remove(path)
        assert JsonControl(spark).get(path) is None


def test_files_of_a_disk_are_listed_as_hadoop_lists_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their names, at any depth, behind links, without Hadoop's own checksums; no program runs for each."""
    (tmp_path / "t" / "k=ü %20" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for name in ("a b", ".a b.crc", "_hidden", "k=ü %20/100%", "k=ü %20/deep/+#;", "../elsewhere/linked"):
        (tmp_path / "t" / name).write_text(name)
    (tmp_path / "t" / "link").symlink_to(tmp_path / "elsewhere")
    on_disk = controls.list_files(spark, str(tmp_path / "t")), controls.usage(spark, f"file://{tmp_path}/t/")
    monkeypatch.setattr(controls, "_LOCAL", "nowhere:")
    by_hadoop = controls.list_files(spark, str(tmp_path / "t")), controls.usage(spark, f"file://{tmp_path}/t/")
    assert [sorted(on_disk[0]), on_disk[1]] == [sorted(by_hadoop[0]), by_hadoop[1]]
    assert {path for path, _ in on_disk[0]} == {"a b", "_hidden", "k=ü %20/100%", "k=ü %20/deep/+#;", "link/linked"}
    with pytest.raises(Unreachable):
        controls.list_files(spark, str(tmp_path / "not there"))


@pytest.mark.parametrize(
    "seen", [(True,), (False, True), (False, False)], ids=["deleted", "moved there", "moved there between two looks"]
)
def test_a_row_that_is_replaced_meanwhile_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: tuple[bool, ...]
) -> None:
    """Between the look for a file and its opening a writer may have deleted it and not yet moved the new one there, or
    have moved that one.
    """
    rows, path = JsonControl(spark), str(tmp_path / "row.json")
    rows.put(path, {"version": 1})
    if seen[0]:
        Path(path).rename(f"{path}.new")
    answers, real = iter(seen), controls.exists
    monkeypatch.setattr(controls, "exists", lambda spark, path: next(answers, real(spark, path)))
    assert rows.get(path) == {"version": 1}


def test_a_row_whose_checksum_is_yet_to_be_moved_beside_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop moves a file of a local disk and its checksum one after the other; one that never fits is damage."""
    rows, path, checksum = JsonControl(spark), str(tmp_path / "row.json"), tmp_path / ".row.json.crc"
    rows.put(path, {"version": 1})
    old = checksum.read_bytes()
    rows.put(path, {"version": 22})
    new = checksum.read_bytes()
    checksum.write_bytes(old)
    with pytest.raises(NoControlRow, match="checksum"):
        rows.get(path)
    later = Timer(0.1, lambda: checksum.write_bytes(new))
    later.start()
    assert rows.get(path) == {"version": 22}
    later.join()
