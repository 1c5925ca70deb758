"""The variables of the process: what is put there for clients and for child processes."""

from __future__ import annotations

from urllib.request import getproxies, proxy_bypass

import pytest

from replicator import environment

_PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("name", "told", "put"),
    [
        ("NO_PROXY", "", "localhost,127.0.0.1,::1"),
        ("no_proxy", "a.example, .b.example", "a.example,.b.example,localhost,127.0.0.1,::1"),
        ("NO_PROXY", "*", "*"),
    ],
)
def test_no_proxy_is_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch, name: str, told: str, put: str) -> None:
    """Whatever is told of a proxy, in either spelling; hosts that go without it already still do, and the Internet does
    not. Told twice it is the same.
    """
    for each in ("http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(each, "")
    monkeypatch.setenv("http_proxy", _PROXY)
    monkeypatch.setenv(name, told)
    environment.bypass_proxy_for_localhost()
    environment.bypass_proxy_for_localhost()
    assert getproxies()["http"] == _PROXY
    assert all(proxy_bypass(host) for host in ("127.0.0.1", "localhost", "::1", "localhost:9000"))
    assert bool(proxy_bypass("proxied.example")) is (told == "*")
    for each in ("no_proxy", "NO_PROXY"):
        assert environment.variable(each) == put
