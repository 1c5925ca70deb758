"""Objects written by a sink connector: the meaning of their names, and the places of their lines.

``<folders>/<topic>(<partition>_<offset>).json`` holds records of one topic and partition, one JSON text per line; its
folders are the values by which the sink divides records, and ``offset`` is that of the object's last record. Newer
releases of the sinks may add two times after the offset, and ``.gz``.

The offsets of the other lines are not recorded anywhere, so a line's *place* is made of the object's offset and the
line's number. No record is in two objects, so places are unique, and the object's offset alone identifies the object.
Within a folder, places increase as Kafka's offsets do; across folders they need not, since an object waits for its last
record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LINE_BITS = 20
"""The number of lower bits of a place that hold the line's number."""

MAX_LINES = 1 << LINE_BITS
"""An exclusive upper limit of the number of lines of an object."""

OBJECT, LINE, SIZE = "object", "line", "size"
"""Headers of a bronze record that was a line: the object's path, the line's number from 0, the object's
size in bytes.
"""

_NAME = re.compile(r"([\w.-]+)\((\d{1,9})_(\d{1,18})(?:_\d+_\d+)?\)\.json(?:\.gz)?", re.ASCII)
_GZIP_SUFFIX = ".gz"
_MAX_OFFSET = 1 << (63 - LINE_BITS)

ObjectKey = tuple[str, int, int]
"""Topic, partition and offset of an object's last record; unique per object."""


@dataclass(frozen=True)
class LandingObject:
    """One object: its full path, ``size`` in bytes, ``modified`` in milliseconds since 1970, UTC."""

    path: str
    topic: str
    partition: int
    offset: int
    size: int
    modified: int

    @property
    def place(self) -> ObjectKey:
        """The key that identifies it."""
        return self.topic, self.partition, self.offset


@dataclass(frozen=True)
class KnownObject:
    """What bronze records of an ingested object."""

    path: str
    size: int
    modified: int


@dataclass(frozen=True)
class Plan:
    """How the objects of a listing are handled: ``new`` objects in the order of their places; objects ``replaced`` by
    others of another size since they were read, or ``touched`` (written again with the same size); ``twins`` have the
    place of another object, of which they may be a copy; ``clashing`` ones have such a place, too, but another size.
    ``empty`` ones have no bytes.
    """

    new: tuple[LandingObject, ...] = ()
    replaced: tuple[LandingObject, ...] = ()
    touched: tuple[LandingObject, ...] = ()
    twins: tuple[LandingObject, ...] = ()
    clashing: tuple[LandingObject, ...] = ()
    empty: tuple[LandingObject, ...] = field(default=())


def parse(path: str, size: int, modified: int) -> LandingObject | None:
    """Return the object at that path; None if its name is not one that a sink gives."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    if match is None or int(match[3]) >= _MAX_OFFSET:
        return None
    return LandingObject(path, match[1], int(match[2]), int(match[3]), size, modified)


def locate_line(headers: Iterable[Any] | None) -> str | None:
    """Return ``path:number`` (from 1) of a record by its headers (``key`` and ``value`` in bytes); None for one from
    Kafka.
    """
    values = {
        header["key"]: bytes(header["value"] or b"") for header in headers or () if header["key"] in (OBJECT, LINE)
    }
    if set(values) != {OBJECT, LINE} or not values[LINE].isdigit():
        return None
    return f"{values[OBJECT].decode('utf-8', 'replace')}:{int(values[LINE]) + 1}"


def plan(objects: Iterable[LandingObject], seen: Mapping[ObjectKey, KnownObject]) -> Plan:
    """Classify the listed objects, given those that bronze has.

    The difference is computed by places, never by a greatest offset: an object of another folder may come later and
    have a smaller one.
    """
    new: dict[ObjectKey, LandingObject] = {}
    others: dict[str, list[LandingObject]] = {"replaced": [], "touched": [], "twins": [], "clashing": [], "empty": []}
    for each in sorted(objects, key=lambda o: (o.place, o.path)):
        kind = _classify(each, seen.get(each.place), new)
        if kind is None:
            new[each.place] = each
        elif kind:
            others[kind].append(each)
    return Plan(tuple(new.values()), **{kind: tuple(found) for kind, found in others.items()})


def _classify(each: LandingObject, known: KnownObject | None, new: Mapping[ObjectKey, LandingObject]) -> str | None:
    """The plan's list for an object; '' for one that bronze has unchanged, None for a new one."""
    if known is not None and known.path == each.path:
        if known.size != each.size:
            return "replaced"
        return "" if known.modified == each.modified else "touched"
    if each.size == 0:
        return "empty"
    first = known or new.get(each.place)
    if first is None:
        return None
    return "twins" if _may_be_copy(each, first) else "clashing"


def _may_be_copy(each: LandingObject, other: KnownObject | LandingObject) -> bool:
    """Whether an object may have the same content as another: it was moved, copied, compressed or decompressed."""
    return each.size == other.size or each.path.endswith(_GZIP_SUFFIX) != other.path.endswith(_GZIP_SUFFIX)


def batches(objects: Sequence[LandingObject], limit: int, size: int) -> Iterator[list[LandingObject]]:
    """Yield the objects in their order, in batches of at most ``limit`` objects and ``size`` bytes, but of at least one
    object.
    """
    batch: list[LandingObject] = []
    batch_bytes = 0
    for each in objects:
        if batch and (len(batch) == limit or batch_bytes + each.size > size):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(each)
        batch_bytes += each.size
    if batch:
        yield batch
