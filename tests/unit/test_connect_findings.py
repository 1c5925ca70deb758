"""What Connect's validation answers, made readable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from replicator.connect.validation import Finding, parse_findings


def entry(
    name: str, errors: Iterable[str] = (), recommended: Iterable[str] = (), documentation: str = "", **value: Any
) -> dict[str, Any]:
    """One entry of an answer, as Connect writes it."""
    return {
        "definition": {"name": name, "documentation": documentation},
        "value": {"name": name, "errors": list(errors), "recommended_values": list(recommended), **value},
    }


def test_an_error_says_the_key_what_is_wrong_and_what_there_is_to_choose_from() -> None:
    """One line per error, without the value, which may be a secret."""
    told = {
        "configs": [
            entry(
                "decimal.handling.mode",
                ["The 'decimal.handling.mode' value is invalid: Value must be one of precise, double, string"],
                ["precise", "double", "string"],
            ),
            entry("poll.interval.ms", ["Invalid value topsecret for configuration poll.interval.ms: Not a number"]),
            entry("topic.prefix"),
        ]
    }
    found = list(parse_findings(told, ["topic.prefix"]))
    assert found == [
        Finding(
            "decimal.handling.mode",
            "Value must be one of precise, double, string",
            "One of precise, double, string.",
        ),
        Finding("poll.interval.ms", "Not a number"),
    ]


def test_without_choices_the_first_sentence_of_the_documentation_helps() -> None:
    """Without markup, and no longer than a line."""
    told = {
        "configs": [
            entry("a", ["bad"], documentation="The <b>first</b> one.\nAnd more."),
            entry("b", ["bad"], documentation="word " * 100),
        ]
    }
    first, second = parse_findings(told, [])
    assert first.fix == "The first one."
    assert len(second.fix) < 170
    assert second.fix.endswith("…")


def test_a_key_that_no_plugin_reads_is_a_warning_with_the_nearest_one() -> None:
    """It would be taken without a word and do nothing; what is passed on behind the plugin is left alone."""
    unseen = {"definition": {"name": "lob.enabled"}, "value": None}
    unlisted = {"definition": None, "value": {"name": "internal.one", "errors": []}}
    told = {"configs": [entry("schema.include.list"), entry("snapshot.mode"), unseen, unlisted]}
    config = [
        "snapshot.moed",
        "lob.enabled",
        "internal.one",
        "transforms.unwrap.type",
        "schema.history.internal.kafka.topic",
        "xyzzy",
    ]
    near, far = parse_findings(told, config)
    assert (near.key, near.fix, near.refused) == ("snapshot.moed", "Did you mean snapshot.mode?", False)
    assert (far.key, far.fix, far.refused) == ("xyzzy", "", False)


@pytest.mark.parametrize(
    "key",
    [
        "binary.handling.mode",
        "field.name.adjustment.mode",
        "read.only",
        "topic.delimiter",
        "topic.heartbeat.prefix",
        "topic.transaction",
    ],
)
def test_a_key_that_a_connector_reads_without_listing_it_is_no_finding(key: str) -> None:
    """Each was seen to have its effect with MariaDB's connector, of which the warning said that it has none."""
    assert list(parse_findings({"configs": [entry("decimal.handling.mode")]}, [key])) == []


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("database.server.name", "topic.prefix"),
        ("database.history.kafka.topic", "schema.history.internal.kafka.topic"),
        (
            "database.history.store.only.monitored.tables.ddl",
            "schema.history.internal.store.only.captured.tables.ddl",
        ),
        ("table.whitelist", "table.include.list"),
        ("column.blacklist", "column.exclude.list"),
        ("toasted.value.placeholder", "unavailable.value.placeholder"),
        ("sanitize.field.names", "field.name.adjustment.mode"),
        ("transforms.unwrap.drop.tombstones", "transforms.unwrap.delete.tombstone.handling.mode"),
        ("transforms.flat.delete.handling.mode", "transforms.flat.delete.tombstone.handling.mode"),
    ],
)
def test_a_key_that_debezium_has_renamed_or_removed_is_told_by_its_new_name(old: str, now: str) -> None:
    """Trap 8: the nearest spelling of ``database.server.name`` is ``database.hostname``, which nobody meant; behind a
    transform nothing was told at all. A plugin that still knows the key is one of before, and right.
    """
    told = {"configs": [entry("database.hostname"), entry("database.server.id"), entry("table.exclude.list")]}
    [finding] = parse_findings(told, [old])
    assert (finding.key, finding.refused) == (old, False)
    assert finding.fix == f"Newer versions of Debezium use {now} instead."
    assert list(parse_findings({"configs": [entry(old)]}, [old])) == []
