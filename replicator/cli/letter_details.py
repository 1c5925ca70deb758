"""Details of dead letters, as ``dead-letters show`` and ``list --rows`` print them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from replicator import landing_objects
from replicator.debezium import reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import Row, SparkSession

    from replicator.operate.dead_letters import LetterDetails, LetterFilter
    from replicator.stages.refinement import Refinement


def rows(
    spark: SparkSession, sources: Iterable[Refinement], choice: LetterFilter, *, dropped: bool, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """Return the selected dead letters, or with ``dropped`` the dropped ones: at most ``limit`` per source, oldest
    first; and whether a source has more.
    """
    found = [_rows(spark, source, choice, dropped=dropped, limit=limit + 1) for source in sources]
    return [row for each in found for row in each[:limit]], any(len(each) > limit for each in found)


def _rows(
    spark: SparkSession, source: Refinement, choice: LetterFilter, *, dropped: bool, limit: int
) -> list[dict[str, Any]]:
    from replicator.operate.dead_letters import load_letters, positions

    order = ("first_seen", "topic", "partition", "offset")
    found = choice.select(load_letters(spark, source, dropped=dropped)).orderBy(*order).limit(limit).collect()
    places = positions(spark, source, found)
    return [
        {"source": source.source.name, **row.asDict(), "position": place}
        for row, place in zip(found, places, strict=True)
    ]


def describe(found: LetterDetails) -> dict[str, Any]:
    """Return the fields of a record by name: its location, why it could not be applied, and its contents, with JSON
    decoded.
    """
    record, letter = found.record, found.letter or found.dropped
    shown: dict[str, Any] = {
        "source": found.source,
        **{name: record[name] for name in ("topic", "partition", "offset")},
        "line": landing_objects.locate_line(record["headers"]),
        "timestamp": _text(record["timestamp"]),
    }
    if letter is None:
        shown["reason"] = "none: not a dead letter"
    else:
        words = reasons.describe(letter["reason"])
        shown |= {name: letter[name] for name in ("table", "reason", "detail")}
        shown |= {"meaning": words.meaning, "fix": words.fix, "seq": letter["seq"]}
        shown["position"] = found.position
        shown["first_seen"] = _text(letter["first_seen"])
    if found.letter is None and found.dropped is not None:
        shown["dropped_at"] = _text(found.dropped["dropped_at"])
    return shown | _raw(record)


def _raw(record: Row) -> dict[str, Any]:
    headers = [{"key": h["key"], "value": _json(_utf8(h["value"]))} for h in record["headers"] or ()]
    shown = {"key": _json(record["key"]), "headers": headers or None, "value": _json(record["value"])}
    broken = record["undecodable"]
    if broken is not None:
        shown |= {f"{name}_hex": None if broken[name] is None else broken[name].hex() for name in ("key", "value")}
    return shown


def _json(text: str | None) -> Any:
    """Decode JSON where it can be printed again unchanged; return any other text as it is."""
    try:
        found = None if text is None else json.loads(text, parse_float=_exact_float, object_pairs_hook=_unique_pairs)
        # printing nests it deeper than this, and a lone surrogate cannot be encoded
        json.dumps([[[[[[[[found]]]]]]]], indent=2, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return text
    return found


def _exact_float(digits: str) -> float:
    if repr(float(digits)) != digits:
        raise ValueError
    return float(digits)


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _utf8(raw: bytes | None) -> str | None:
    return None if raw is None else bytes(raw).decode("utf-8", "replace")


def format_lines(shown: Mapping[str, Any]) -> Iterator[str]:
    """Format the fields as lines for people; NULL fields are left out."""
    for name, value in shown.items():
        if value is not None:
            yield f"{name}: {value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)}"


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
