"""``targets`` of the configuration: a kind is a line of the registry."""

from __future__ import annotations

import pytest

from replicator import registry, targets
from replicator.config.settingkeys import TargetKeys
from replicator.errors import ConfigError
from replicator.protocols import Sink
from replicator.sinks.memory import MemorySink


def keys(**more: object) -> TargetKeys:
    return TargetKeys.model_validate({"host": "h", "database": "d", "user": "u", "password": "hunter2"} | more)


@pytest.mark.parametrize("kind", registry.CLASSES["sink"])
def test_every_kind_of_the_registry_is_made_from_the_same_keys(kind: str) -> None:
    """A new kind needs its module and its line: what makes targets names none."""
    made = targets.sink("warehouse", keys(kind=kind))
    assert all(callable(getattr(made, name)) for name in vars(Sink) if not name.startswith("_"))


class Elsewhere(MemorySink):
    """A kind that nothing of the package knows."""


def test_a_new_kind_is_its_module_and_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line in the registry the configuration may name it; without, the nearest spelling is told."""
    with pytest.raises(ConfigError, match="there is no sink 'elsewhere'"):
        targets.sink("warehouse", keys(kind="elsewhere"))
    monkeypatch.setitem(registry.CLASSES["sink"], "elsewhere", f"{__name__}:Elsewhere")
    assert isinstance(targets.sink("warehouse", keys(kind="elsewhere")), Elsewhere)


@pytest.mark.parametrize("wrong", [{"kind": "postgre"}, {"host": "h/x"}, {"options": {"socketFactory": "x"}}])
def test_what_a_kind_refuses_is_told_with_the_targets_name(wrong: dict[str, object]) -> None:
    """A spelling, a host that is none, an option that is not allowed; never the password."""
    with pytest.raises(ConfigError) as caught:
        targets.sink("warehouse", keys(**wrong))
    assert caught.value.where == "targets.warehouse"
    assert "hunter2" not in str(caught.value)
