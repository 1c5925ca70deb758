"""Names of objects, what is new among them, and the layout that our stand-in for a sink writes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from infra import landing
from infra.landing import Bucket, Folder, Record, store
from replicator import landing_objects
from replicator.config.sourcefile import load_sources
from replicator.config.yamlfile import Problems
from replicator.errors import ConfigError
from replicator.landing_objects import KnownObject, LandingObject, Plan

TOPIC = "demo.datalake.cdc_events"


def at(offset: int, folder: str = "k=1", size: int = 10, modified: int = 5) -> LandingObject:
    found = landing_objects.parse(f"s3a://b/p/{folder}/{TOPIC}(0_{offset}).json", size, modified)
    assert found is not None
    return found


def seen(*objects: LandingObject) -> dict[landing_objects.ObjectKey, KnownObject]:
    return {each.place: KnownObject(each.path, each.size, each.modified) for each in objects}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (f"{TOPIC}(0_457).json", (TOPIC, 0, 457)),
        (f"{TOPIC}(11_000000000457).json", (TOPIC, 11, 457)),
        (f"{TOPIC}(0_457_1637955964124_1637955964999).json", (TOPIC, 0, 457)),
        (f"{TOPIC}(0_457).json.gz", (TOPIC, 0, 457)),
        ("a-b_c(2_0).json", ("a-b_c", 2, 0)),
        (f"{TOPIC}(0_{(1 << 43) - 1}).json", (TOPIC, 0, (1 << 43) - 1)),
        (f"{TOPIC}(0_{1 << 43}).json", None),
        (f"{TOPIC}(0_457).avro", None),
        (f"{TOPIC}(0_457).json.tmp", None),
        (f"{TOPIC}(0).json", None),
        ("000457.json", None),
        (f"{TOPIC}(0_-1).json", None),
        (f"{TOPIC}(٣_1).json", None),
        ("(0_1).json", None),
    ],
)
def test_a_name_says_topic_partition_and_the_last_records_offset(name: str, place: object) -> None:
    """In whatever folders it lies; other names are no object's."""
    for folders in ("", "customer_id=ALFKI/order_id=10702/", "customer_id=/order_id=1/", "a b%20(1_2).json/"):
        found = landing_objects.parse(f"s3a://bucket/{folders}{name}", 1, 2)
        assert (found and found.place) == place


def test_a_line_is_told_as_editors_tell_it() -> None:
    """Path and number from 1; records from Kafka are no lines, whatever headers they have."""

    def told(**headers: bytes | None) -> str | None:
        return landing_objects.locate_line([{"key": key, "value": value} for key, value in headers.items()])

    assert told(object=b"s3a://b/\xc3\xa9(0_1).json", line=b"2", size=b"9") == "s3a://b/é(0_1).json:3"
    assert (told(object=b"x"), told(line=b"1"), told(object=b"x", line=None), landing_objects.locate_line(None)) == (
        None,
    ) * 4


def test_what_is_new_is_a_difference_and_not_what_is_greater() -> None:
    """An object of another folder may come later with a smaller offset."""
    old, late, next_ = at(9), at(3, "k=2"), at(12)
    assert landing_objects.plan([next_, old, late], seen(old)) == Plan(new=(late, next_))
    assert landing_objects.plan([old], seen(old, late)) == Plan()  # what has gone from the store stays in bronze


def test_an_object_that_changed_after_it_was_read_is_never_new() -> None:
    """Bronze keeps what it read; that the store says something else now is told apart."""
    grown, touched = at(1, size=11), at(2, modified=6)
    found = landing_objects.plan([grown, touched], seen(at(1), at(2)))
    assert found == Plan(replaced=(grown,), touched=(touched,))


def test_one_record_lies_in_one_object() -> None:
    """Of two objects with one place the first is taken, of one seen before none."""
    one, other = at(1, "k=1"), at(1, "k=2")
    assert landing_objects.plan([other, one], {}) == Plan(new=(one,), twins=(other,))
    assert landing_objects.plan([other, one], seen(one)) == Plan(twins=(other,))


def test_another_object_at_a_known_place_holds_other_records() -> None:
    """A copy is as large as what was read, or packed; another size says that offsets began again (promise D)."""
    one, other = at(1, "k=1"), at(1, "k=2", size=11)
    packed = replace(one, path=f"{one.path}.gz", size=7)
    assert landing_objects.plan([other, one, packed], {}) == Plan((one,), twins=(packed,), clashing=(other,))
    assert landing_objects.plan([other, packed], seen(one)) == Plan(twins=(packed,), clashing=(other,))


def test_an_object_without_a_byte_waits_for_some() -> None:
    """It is no object yet; one that lost its bytes was replaced."""
    empty = at(1, size=0)
    assert landing_objects.plan([empty], {}) == Plan(empty=(empty,))
    assert landing_objects.plan([empty], seen(at(1))) == Plan(replaced=(empty,))


def test_batches_are_bounded_in_objects_and_bytes() -> None:
    """A single object larger than a batch is a batch of its own; nothing is left out, nothing changes its place."""
    objects = [at(offset, size=size) for offset, size in enumerate((10, 10, 10, 70, 10, 10))]
    sizes = [[each.size for each in batch] for batch in landing_objects.batches(objects, 2, 50)]
    assert sizes == [[10, 10], [10], [70], [10, 10]]
    assert list(landing_objects.batches([], 2, 50)) == []


def record(offset: int, order: int, customer: object = "A", **more: object) -> Record:
    return Record(TOPIC, 0, offset, json.dumps({"order_id": order, "customer_id": customer, **more}))


def test_the_stand_in_names_an_object_by_its_last_record() -> None:
    """Full at the count of a folder; the rest when the records end; payloads without wrapper, and no nulls."""
    wrapped = Record(TOPIC, 0, 5, json.dumps({"schema": {}, "payload": {"order_id": 2, "customer_id": None}}))
    records = [record(0, 1), record(1, 2, "B/b"), record(2, 1), Record(TOPIC, 0, 3, None), record(4, 1), wrapped]
    made = list(landing.objects(records, ("customer_id", "order_id"), {}, flush_count=2))
    assert [each.name for each in made] == [
        f"customer_id=A/order_id=1/{TOPIC}(0_2).json",
        f"customer_id=B-b/order_id=2/{TOPIC}(0_1).json",
        f"customer_id=A/order_id=1/{TOPIC}(0_4).json",
        f"customer_id={landing.NO_VALUE}/order_id=2/{TOPIC}(0_5).json",
    ]
    assert made[0].text == f"{records[0].value}\n{records[2].value}\n"
    assert json.loads(made[3].text) == {"order_id": 2, "customer_id": None}


def test_the_stand_in_goes_on_behind_what_it_landed(tmp_path: Path) -> None:
    """Every record is in one object, wherever a run ended."""
    store, records = Folder(tmp_path), [record(n, n % 3) for n in range(20)]
    for end in (0, 7, 8, 20, 20):
        landing.land(records[:end], store, ("order_id",), flush_count=4)
    files = sorted(tmp_path.rglob("*.json"))
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(each.value or "" for each in records)
    assert all(landing_objects.parse(str(file), 1, 1) for file in files)


def test_what_a_killed_stand_in_left_and_another_topics_objects_say_nothing_of_a_topic(tmp_path: Path) -> None:
    """An object that never got its name is not landed, and offsets of one topic are none of another's."""
    store, records = Folder(tmp_path), [record(n, 1) for n in range(4)]
    (tmp_path / "order_id=1").mkdir()
    (tmp_path / "order_id=1" / f".{TOPIC}(0_3).json").write_text("half of")
    landing.land([replace(each, topic="demo.other") for each in records], store, ("order_id",))
    landing.land(records, store, ("order_id",))
    assert (tmp_path / "order_id=1" / f"{TOPIC}(0_3).json").read_text().count("\n") == 4


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("objects: s3a://b/p/\nbootstrap_servers: k:9092", "not both"),
        ("objects: s3a://b/p\noptions: {client.id: x}", "not both"),
        ("objects: s3a://b/p\ncompacted_topic: true", "no nulls"),
        ("objects: s3a://b/p\ntables: {a.b: {deletes: tombstone}}", "no nulls"),
        ("objects: ''", "objects"),
    ],
)
def test_a_source_in_objects_has_nothing_of_kafkas(tmp_path: Path, text: str, part: str) -> None:
    """Where its records come from is said once."""
    (tmp_path / "s.yaml").write_text(f"name: s\n{text}\n")
    problems = Problems()
    load_sources(tmp_path, "", {}, {}, problems)
    with pytest.raises(ConfigError, match=part):
        problems.raise_if_any()


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    """What a reader copies out of docs/objects.md loads."""
    page = (Path(__file__).parents[2] / "docs/objects.md").read_text(encoding="utf-8")
    (tmp_path / "s.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    problems = Problems()
    [(source, _)] = load_sources(tmp_path, "", {}, {}, problems)
    problems.raise_if_any()
    assert (source.objects, source.declaration("datalake.cdc_events").keys) == (
        "s3a://bucket/cdc-events-local",
        ("order_id",),
    )


def test_a_source_in_objects_takes_a_folder_of_any_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local one is made absolute, since the JVM may stand elsewhere; `include` narrows by topics all the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("name: a\nobjects: s3a://b/p/\ninclude: [x.y]\n")
    (tmp_path / "b.yaml").write_text("name: b\nobjects: landing\n")
    problems = Problems()
    (one, _), (other, _) = load_sources(tmp_path, "shared:9092", {}, {}, problems)
    problems.raise_if_any()
    assert (one.objects, one.topics) == ("s3a://b/p", "a[.](?:[^.]+[.])?(?:x[.]y)")
    assert other.objects == str(tmp_path / "landing")
    assert other.declaration("b.orders").deletes == "rewrite"


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_the_stand_in_takes_a_buckets_address_as_a_source_names_it(scheme: str) -> None:
    """With ``s3a:``, as docs/objects.md writes it, a local folder of that name got the objects, and all was reported as
    well.
    """
    place = store(
        f"{scheme}://lakehouse/landing/",
        {"S3_ENDPOINT": "http://127.0.0.1:9", "S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b"},
    )
    assert isinstance(place, Bucket)
    assert (place.bucket, place.prefix) == ("lakehouse", "landing")


def test_the_stand_in_makes_no_folder_of_another_stores_address() -> None:
    """Only a path without a scheme is a folder."""
    assert store("landed/here", {}) == Folder(Path("landed/here"))
    with pytest.raises(ConfigError, match="gs://"):
        store("gs://bucket/landing", {})
