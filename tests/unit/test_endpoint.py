"""Whether a service listens, told in seconds."""

from __future__ import annotations

import socket

import pytest

from replicator.endpoint import must_answer, one_must_answer
from replicator.errors import ConfigError, Unreachable


def test_a_service_that_listens_answers() -> None:
    """A connection is enough."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        must_answer(f"http://127.0.0.1:{server.getsockname()[1]}", "it", "")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "127.0.0.1:9", "http://"])
def test_what_does_not_listen_is_out_of_reach_and_named(url: str) -> None:
    """By the address as it stands in the configuration."""
    with pytest.raises(Unreachable, match="the store does not answer") as raised:
        must_answer(url, "the store", "Start it.")
    assert url in str(raised.value)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://x:y", "127.0.0.1:99999", "http://[x"])
def test_what_is_no_address_is_a_matter_of_configuration(url: str) -> None:
    """To try again would not help."""
    with pytest.raises(ConfigError, match=r"this is no address of the store") as raised:
        must_answer(url, "the store", "Mend it.")
    assert url in str(raised.value)


def test_of_several_addresses_one_that_answers_is_enough() -> None:
    """Kafka's way: the others are told of by whoever answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        one_must_answer(f"127.0.0.1:9, {here}", "it", "")
        one_must_answer(f"{here},127.0.0.1:9", "it", "")
        one_must_answer(f"{here},", "it", "")
    with pytest.raises(Unreachable, match="it does not answer") as raised:
        one_must_answer("127.0.0.1:9,127.0.0.1:10", "it", "")
    assert raised.value.where == "127.0.0.1:9,127.0.0.1:10"


@pytest.mark.parametrize("addresses", ["nohost", "127.0.0.1:9,nohost", "127.0.0.1:", ", "])
def test_an_address_of_several_says_its_port(addresses: str) -> None:
    """No usual one is meant where a list of brokers lacks it."""
    with pytest.raises(ConfigError, match=r"this is no address of Kafka: '.*' is not host:port") as raised:
        one_must_answer(addresses, "Kafka", "Mend it.")
    assert raised.value.where == addresses
