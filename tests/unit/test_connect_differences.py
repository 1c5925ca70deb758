"""What would have to change so that the connectors that run are those of the files."""

from __future__ import annotations

import pytest

from replicator.connect.configuration import CLASSES
from replicator.connect.differences import Change, Step, changes, steps

MARIADB = {"connector.class": CLASSES["mariadb"], "topic.prefix": "a"}
SINK = {"connector.class": "io.example.S3Sink", "topics": "a"}


def test_each_side_alone_and_both_together() -> None:
    """Created, updated, left as it is, left alone; Connect's own ``name`` is no difference."""
    wanted = {"new": MARIADB, "same": MARIADB, "other": {**MARIADB, "tasks.max": "1"}}
    running = {"same": {**MARIADB, "name": "same"}, "other": {**MARIADB, "poll": "5"}, "theirs": SINK}
    told = {step.connector: step for step in steps(wanted, running)}
    assert {name: step.action for name, step in told.items()} == {
        "new": "create",
        "other": "update",
        "same": "unchanged",
        "theirs": "foreign",
    }
    assert told["other"].changes == (Change("poll", "5", None), Change("tasks.max", None, "1"))
    assert [change.key for change in told["new"].changes] == ["connector.class", "topic.prefix"]


@pytest.mark.parametrize(("prune", "actions"), [(False, ["foreign", "foreign"]), (True, ["delete", "foreign"])])
def test_only_connectors_that_a_file_could_describe_are_pruned(prune: bool, actions: list[str]) -> None:
    """A sink of another team stays, whatever is asked."""
    assert [step.action for step in steps({}, {"gone": MARIADB, "sink": SINK}, prune=prune)] == actions


def test_a_secret_that_runs_in_plain_text_is_masked_and_replaced() -> None:
    """What somebody registered by hand."""
    [change] = changes({"database.password": "${env:P}"}, {"database.password": "topsecret", "name": "x"})
    assert change == Change("database.password", "***", "${env:P}")


def test_nothing_is_a_set_too() -> None:
    """No files and no connectors: nothing to do."""
    assert list(steps({}, {})) == []
    assert list(steps({"a": MARIADB}, {"a": MARIADB})) == [Step("a", "unchanged")]
