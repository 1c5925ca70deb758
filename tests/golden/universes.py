"""Many independent copies of a recorded stream in one table: each has its own order, batches and repetitions.

A batch of silver costs seconds and its rows cost nothing, so a *universe* is a copy of the stream whose records have
one more key column, ``universe``, in key, images, headers and schema blocks, and a partition of their own with the
offsets that they had. Two batches then hold every way in which a stream may come (debezium.md P1 to P6, P8, P12):

- ``whole``: in order, in one batch;
- ``alone``: for each record, first all before it, then it by itself; what comes after it never does. Where the second
  state of one such universe is the first state of the next, one record per batch ends as one batch does, by induction;
- ``shuffled``: the dice say in which batch a record comes;
- ``replayed``: a tail of the stream again and once more, with new offsets (1 2 3 2 3 2 3);
- ``compacted``: without tombstones;
- ``last``: only the last record of each key, as a compacted topic keeps it;
- ``snapshot``: rows as they stand between two transactions, read again in the middle of the stream.

A truncate is about the whole table: a universe of a stream with one is a table of its own.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from replicator.spec import Column, Declaration
from tests.builders import UNSENT

COLUMN = "universe"
BATCHES = 2
WHOLE = "whole"
_PARTITIONS = 4
_TOMBSTONES = (None, "null")

Record = dict[str, Any]
Records = Sequence[Record]
Image = dict[str, Any]


@dataclass(frozen=True)
class Universe:
    """One copy of a stream."""

    kind: str
    name: str
    batches: tuple[Records, ...]


@dataclass(frozen=True)
class Sizes:
    """At most so many universes of each kind."""

    whole: int
    alone: int
    shuffled: int
    replayed: int
    snapshots: int
    compacted: int


EVERY = Sizes(whole=1, alone=sys.maxsize, shuffled=6, replayed=6, snapshots=4, compacted=2)
FEW = Sizes(whole=0, alone=0, shuffled=1, replayed=1, snapshots=0, compacted=0)
"""For universes that cost a table each: of what is replayed the first batch is the whole."""


def universes(stream: Records, seed: int, sizes: Sizes) -> list[Universe]:
    """The copies of the records of one topic."""
    dice, end = random.Random(seed), len(stream)
    streamed = _first_streamed(stream)
    return [
        *(_alone(stream, at) for at in _spread(range(end), sizes.alone)),
        *(_shuffled(stream, number, dice) for number in range(sizes.shuffled)),
        *(_replayed(stream, at) for at in _spread(range(streamed, end), sizes.replayed)),
        *(_read_again(stream, at) for at in _spread(list(_quiet(stream, streamed)), sizes.snapshots)),
        *[_compacted(stream), *_last_of_keys(stream)][: sizes.compacted],
        *[Universe(WHOLE, WHOLE, (stream, []))][: sizes.whole],
    ]


def truncates(stream: Records) -> list[int]:
    """Which of the records empty the table."""
    return [at for at, record in enumerate(stream) if (_body(record) or {}).get("op") == "t"]


def batches(copies: Sequence[Universe], placed: Callable[[Record, int], Record]) -> list[list[Record]]:
    """The records of all universes, batch by batch; ``placed`` puts a record into the universe of a number."""
    return [
        [placed(record, number) for number, copy in enumerate(copies) for record in copy.batches[at]]
        for at in range(BATCHES)
    ]


def keyed(record: Record, number: int) -> Record:
    """A record of the universe of this number: the same partition of each stream becomes one of its own."""
    headers = [
        json_with(text, number) if at % 2 and name in ("__debezium.oldkey", "__debezium.newkey") else text
        for at, (name, text) in enumerate(pairwise(["", *record["headers"]]))
    ]
    return record | {
        "partition": number * _PARTITIONS + record["partition"],
        "headers": headers,
        "key": None if record["key"] is None else json_with(record["key"], number),
        "payload": record["payload"] if record["payload"] in _TOMBSTONES else _value_with(record["payload"], number),
    }


def key_names(record: Record) -> list[str]:
    """The columns of a record's key."""
    told = json.loads(record["key"])
    return list(told["payload"] if "schema" in told and "payload" in told else told)


def parted(record: Record, number: int) -> Record:
    """A record of the table that is the universe of this number."""
    told = record | {"topic": parted_name(record["topic"], number)}
    if record["payload"] in _TOMBSTONES:
        return told
    value = json.loads(record["payload"])
    value["source"]["table"] = parted_name(value["source"]["table"], number)
    return told | {"payload": _compact(value)}


def parted_name(table: str, number: int) -> str:
    """The table that is the universe of this number."""
    return f"{table}_{number}"


def declared(declaration: Declaration) -> Declaration:
    """What a user would declare of the table with the column."""
    columns = declaration.columns
    return replace(declaration, columns=(*columns, Column(COLUMN, "int"))) if columns else declaration


def json_with(text: str, number: int) -> str:
    """A key, or a row that is no envelope, with the column; inside a converter's wrapper too."""
    told = json.loads(text)
    wrapped = "schema" in told and "payload" in told
    (told["payload"] if wrapped else told)[COLUMN] = number
    if wrapped and told["schema"] is not None:
        told["schema"]["fields"].append(_FIELD)
    return _compact(told)


_FIELD = {"type": "int32", "optional": False, "field": COLUMN}


def _value_with(text: str, number: int) -> str:
    told = json.loads(text)
    wrapped = "schema" in told and "payload" in told
    body, schema = (told["payload"], told["schema"]) if wrapped else (told, None)
    if "op" not in body:
        return json_with(text, number)
    for image in ("before", "after"):
        if body.get(image) is not None:
            body[image][COLUMN] = number
        if schema is not None:
            next(field for field in schema["fields"] if field["field"] == image)["fields"].append(_FIELD)
    return _compact(told)


def _compact(told: Any) -> str:
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def _alone(stream: Records, at: int) -> Universe:
    return Universe("alone", f"record {at} alone", (stream[:at], stream[at : at + 1]))


def _shuffled(stream: Records, number: int, dice: random.Random) -> Universe:
    """In any order, but records of a key that rows came to and left in one transaction stay in the order of their
    batches: which row left it (C5) is told by those before, and Kafka keeps them in one partition.
    """
    contested = _contested(stream)
    newest: dict[str, int] = {}
    parts: list[list[Record]] = [[] for _ in range(BATCHES)]
    for record in stream:
        batch = dice.randrange(BATCHES)
        if record["key"] in contested:
            batch = newest[record["key"]] = max(batch, newest.get(record["key"], 0))
        parts[batch].append(record)
    return Universe("shuffled", f"shuffled {number}", tuple(dice.sample(part, len(part)) for part in parts))


def _contested(stream: Records) -> set[str]:
    """Keys that one transaction gave a row and took one from."""
    return {departure["key"] for departure in stream for arrival in stream if _is_left_by(arrival, departure)}


def _is_left_by(arrival: Record, departure: Record) -> bool:
    moved = "__debezium.oldkey" in arrival["headers"] and "__debezium.newkey" in departure["headers"]
    same_key = arrival["key"] == departure["key"] and arrival["offset"] < departure["offset"]
    return moved and same_key and _transaction(arrival) == _transaction(departure)


def _replayed(stream: Records, at: int) -> Universe:
    again = [_moved(stream[at:], times * (stream[-1]["offset"] + 1)) for times in (1, 2)]
    return Universe("replayed", f"again from record {at}", (stream, [*again[0], *again[1]]))


def _read_again(stream: Records, at: int) -> Universe:
    """The snapshot comes behind record ``at``, and the rest in a batch of its own."""
    rows = _snapshot(stream[: at + 1])
    rest = _moved(stream[at + 1 :], len(rows))
    return Universe("snapshot", f"read again behind record {at}", ([*stream[: at + 1], *rows], rest))


def _compacted(stream: Records) -> Universe:
    rows = [record for record in stream if record["payload"] not in _TOMBSTONES]
    return Universe("compacted", "without tombstones", (rows, []))


def _last_of_keys(stream: Records) -> list[Universe]:
    """None where two rows had one key in the midst of a transaction: the last record is that of the row that left."""
    if _contested(stream):
        return []
    last = {record["key"]: record for record in stream}
    kept = [record for record in stream if last[record["key"]] is record]
    return [Universe("last", "the last of each key", (kept, []))]


def _moved(records: Records, by: int) -> list[Record]:
    return [record | {"offset": record["offset"] + by} for record in records]


def _spread(found: Sequence[int], most: int) -> list[int]:
    """At most so many of them, evenly, the last one always."""
    if len(found) <= most:
        return list(found)
    return sorted({found[-1 - round(part * (len(found) - 1) / max(most - 1, 1))] for part in range(most)})


def _body(record: Record) -> dict[str, Any] | None:
    if record["payload"] in _TOMBSTONES:
        return None
    told = json.loads(record["payload"])
    return dict(told["payload"] if "payload" in told and "schema" in told else told)


def _first_streamed(stream: Records) -> int:
    """Behind the initial snapshot: a connector that dies in it begins it anew instead of repeating its tail."""
    bodies = [_body(record) for record in stream]
    initial = [at for at, body in enumerate(bodies) if body is not None and _is_initial(body)]
    return initial[-1] + 1 if initial else 0


def _is_initial(body: dict[str, Any]) -> bool:
    is_read = "r" in (body.get("op"), body.get("__op"))
    return is_read and body.get("source", {}).get("snapshot") != "incremental"


def _transaction(record: Record) -> object:
    source = (_body(record) or {}).get("source", {})
    return source.get("txId") or source.get("gtid")


def _quiet(stream: Records, streamed: int) -> Iterator[int]:
    """Records behind which a snapshot could read: the last of their transactions. Rows must be whole, and of the schema
    of the record (DDL does not rewrite them). Flattened records tell no transaction: none.
    """
    for at in range(streamed, len(stream)):
        nearest = next((r for r in reversed(stream[: at + 1]) if _body(r) is not None), None)
        after = stream[at + 1] if at + 1 < len(stream) else None
        if nearest is None or _transaction(nearest) is None:
            continue
        if after is not None and (_body(after) is None or _transaction(after) == _transaction(nearest)):
            continue
        if all(schema == _schema(nearest) for _, schema in _rows(stream[: at + 1]).values()):
            yield at


def _schema(record: Record) -> str:
    return _compact(json.loads(record["payload"]).get("schema"))


def _snapshot(stream: Records) -> list[Record]:
    """What an incremental snapshot would read behind these records (D6)."""
    pattern = next(r for r in reversed(stream) if _body(r) is not None)
    rows = []
    for at, (key, (image, _)) in enumerate(_rows(stream).items()):
        told = json.loads(pattern["payload"])
        body = told["payload"] if "payload" in told and "schema" in told else told
        body |= {"op": "r", "before": None, "after": image}
        body["source"] |= {"snapshot": "incremental"} | {n: None for n in ("txId", "lsn") if n in body["source"]}
        rows.append(
            pattern | {"key": key, "headers": [], "payload": _compact(told), "offset": stream[-1]["offset"] + 1 + at}
        )
    return rows


def _rows(stream: Records) -> dict[str, tuple[Image, str]]:
    """The rows that the database holds behind these records, by key, each with the schema that it was written in."""
    held: dict[str, tuple[Image, str]] = {}
    left: dict[str, tuple[Image, str]] = {}
    arrived: dict[str, object] = {}
    for record in stream:
        body, key = _body(record), record["key"]
        headers = dict(zip(record["headers"][::2], record["headers"][1::2], strict=True))
        if body is None:
            continue
        if body["op"] == "t":
            held.clear()
        elif body["op"] == "d":
            moved_in = arrived.get(key) == _transaction(record) and "__debezium.newkey" in headers
            if moved_in and _is_of_another(body["before"], held[key][0], key_names(record)):
                continue
            left[key] = held.pop(key, ({}, ""))
        else:
            old = headers.get("__debezium.oldkey")
            past = held.get(key) or left.get(old or "") or ({}, "")
            image = {c: past[0].get(c) if v == UNSENT else v for c, v in body["after"].items()}
            held[key] = (image, _schema(record))
            if old is not None:
                arrived[key] = _transaction(record)
    return held


def _is_of_another(before: Image, row: Image, keys: Sequence[str]) -> bool:
    """Whether a delete took away the key's former row (C5); filler in place of the image tells nothing (E9)."""
    is_whole = any(value not in (None, "", 0, False) for column, value in before.items() if column not in keys)
    return is_whole and before != row
