"""``targets`` of the configuration: a kind is a line of the registry."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from replicator import registry, targets
from replicator.config.settingkeys import TargetKeys
from replicator.errors import ConfigError, Unreachable
from replicator.protocols import Sink
from replicator.sinks.memory import MemorySink
from replicator.spec import Model, Target


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
    with pytest.raises(ConfigError, match="sink 'elsewhere' does not exist"):
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


def test_who_only_looks_asks_a_silent_target_once_and_soon(caplog: pytest.LogCaptureFixture) -> None:
    """One that takes connections and says nothing, and one whose port is shut; `options` may say how long."""
    model = Model("m", "", {}, ("id",), (), target=Target("warehouse", "s", "m"))
    with socket.create_server(("127.0.0.1", 0)) as mute:
        at = keys(host="127.0.0.1", port=mute.getsockname()[1], sslmode="disable")
        began = time.monotonic()
        with pytest.raises(Unreachable, match="does not answer"):
            targets.sink("warehouse", at, brief=True).progress(model)
        assert time.monotonic() - began < 8
    with pytest.raises(Unreachable, match="does not answer"):
        targets.sink("warehouse", at, brief=True).progress(model)
    assert caplog.messages == []
    patient: Any = targets.sink("warehouse", at.model_copy(update={"options": {"connect_timeout": "9"}}), brief=True)
    assert patient._connection.options["connect_timeout"] == "9"
