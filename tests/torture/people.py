"""A table that is masked and filtered on its way, and the feed of it: as configuration, and as Python tells them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

from replicator.transforms.table_transform.hashing import digest

HASH_KEY = "the key of hashed columns"
TOPIC = "cdm.people"
TABLE = """  shop.people:
    keys: [id]
    columns: {id: int, name: string, nick: string, points: int}
    transform: {derive: {twice: points * 2}, where: points > 3, hash: [nick], mask: [name]}
"""
FEED = f"""
topic: {TOPIC}
table: shop/shop.people
select: {{person: id, nick: nick, twice: twice}}
where: twice < 16
tombstones: true
"""
_MASKED = {"Lu": "X", "Ll": "x", "Nd": "n"}

Row = dict[str, Any]


def at_rest(row: Row) -> Row | None:
    """What silver has of a row of the source; None of one that is filtered."""
    if row["points"] <= 3:
        return None
    name = "".join(_MASKED.get(unicodedata.category(letter), letter) for letter in row["name"])
    return row | {"name": name, "nick": digest(HASH_KEY, row["nick"]), "twice": row["points"] * 2}


def shown(row: Row) -> Row | None:
    """What others may know of a row of the source; None: nothing."""
    kept = at_rest(row)
    if kept is None or kept["twice"] >= 16:
        return None
    return {"person": kept["id"], "nick": kept["nick"], "twice": kept["twice"]}


def unlike_told(sent: Iterable[tuple[str | None, str | None]], rows: Iterable[Row]) -> list[str]:
    """What a consumer has otherwise who reads keys and values as docs/canonical.md says."""
    kept: dict[int, tuple[str, Row | None]] = {}
    contents: dict[str, set[str]] = {}
    for _, value in sent:
        event = json.loads(value) if value is not None else None  # a tombstone says what the delete before it has said
        if event is None:
            continue
        contents.setdefault(event["id"], set()).add(str(value))
        key, sequence = event["key"]["person"], event["source"]["sequence"]
        if key not in kept or sequence >= kept[key][0]:
            kept[key] = sequence, event["after"]
    has = {key: row for key, (_, row) in kept.items() if row is not None}
    wanted = {told["person"]: told for told in map(shown, rows) if told is not None}
    found = [] if has == wanted else [f"consumers of {TOPIC} have {has}, and others shall see {wanted}"]
    return found + [f"the event {name} has {len(told)} contents" for name, told in contents.items() if len(told) > 1]
