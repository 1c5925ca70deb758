"""``Control``: every implementation keeps the same promises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from replicator.formats.control import JsonControl, MemoryControl
from replicator.protocols import Control

pytestmark = pytest.mark.spark


@pytest.fixture(params=[MemoryControl, JsonControl])
def control(request, spark) -> Control:
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
