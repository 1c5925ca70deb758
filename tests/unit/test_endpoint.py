"""Whether a service listens, told in seconds."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from replicator.endpoint import check_any_reachable, check_reachable, check_responds
from replicator.errors import ConfigError, Unreachable


def test_a_service_that_listens_answers() -> None:
    """A connection is enough."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"http://127.0.0.1:{server.getsockname()[1]}", "it", "")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_takes_connections_and_hangs_does_not_answer(scheme: str) -> None:
    """A store whose disk is gone, a port that somebody else listens at: its clients would wait for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="the store accepts connections but sends nothing for 5 s") as raised:
            check_responds(url, "the store", "Start it.")
    assert time.monotonic() - begun < 10
    assert raised.value.where == url


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("word", [b"HTTP/1.1 403 Forbidden\r\n\r\n", b"?", b""])
def test_a_server_that_says_anything_answers(scheme: str, word: bytes) -> None:
    """What it refuses, or that it speaks no such protocol, its client tells better."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def say() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                connection.sendall(word)

        thread = threading.Thread(target=say)
        thread.start()
        check_responds(f"{scheme}://127.0.0.1:{server.getsockname()[1]}", "the store", "Start it.")
        thread.join()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "127.0.0.1:9", "http://"])
def test_what_does_not_listen_is_out_of_reach_and_named(url: str) -> None:
    """By the address as it stands in the configuration."""
    with pytest.raises(Unreachable, match="the store does not answer") as raised:
        check_reachable(url, "the store", "Start it.")
    assert url in str(raised.value)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://x:y", "127.0.0.1:99999", "http://[x"])
def test_what_is_no_address_is_a_matter_of_configuration(url: str) -> None:
    """To try again would not help."""
    with pytest.raises(ConfigError, match=r"not a valid address for the store") as raised:
        check_reachable(url, "the store", "Fix it.")
    assert url in str(raised.value)


def test_of_several_addresses_one_that_answers_is_enough() -> None:
    """Kafka's way: the others are told of by whoever answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        check_any_reachable(f"127.0.0.1:9, {here}", "it", "")
        check_any_reachable(f"{here},127.0.0.1:9", "it", "")
        check_any_reachable(f"{here},", "it", "")
    with pytest.raises(Unreachable, match="it does not answer") as raised:
        check_any_reachable("127.0.0.1:9,127.0.0.1:10", "it", "")
    assert raised.value.where == "127.0.0.1:9,127.0.0.1:10"


@pytest.mark.parametrize("addresses", ["nohost", "127.0.0.1:9,nohost", "127.0.0.1:", ", "])
def test_an_address_of_several_says_its_port(addresses: str) -> None:
    """No usual one is meant where a list of brokers lacks it."""
    with pytest.raises(ConfigError, match=r"not a valid address for Kafka: '.*' is not host:port") as raised:
        check_any_reachable(addresses, "Kafka", "Fix it.")
    assert raised.value.where == addresses
