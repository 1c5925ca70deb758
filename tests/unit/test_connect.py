"""Kafka Connect without a server: connector files, shortened traces, nobody answering."""

from __future__ import annotations

import functools
import http.server
import socket
import threading

import pytest

from replicator.connect.rest import Connect
from replicator.connect.template import fill
from replicator.connect.told import shorten
from replicator.errors import ConfigError, Unreachable


def test_a_placeholder_without_a_value_is_named_with_its_place(tmp_path):
    """The message says which one, in which property, and which names are given."""
    file = tmp_path / "c.json"
    file.write_text('{"database.port": "${PORT}"}')
    with pytest.raises(ConfigError, match=r"\$\{PORT\} has no value .*c\.json: database\.port.* Given are: HOST"):
        fill(file, {"HOST": "h"})


def test_the_references_of_connect_itself_are_left_alone(tmp_path):
    """``${file:path:key}`` is resolved by the worker."""
    file = tmp_path / "c.json"
    file.write_text('{"database.password": "${file:/run/secrets:password}"}')
    assert fill(file, {}) == {"database.password": "${file:/run/secrets:password}"}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tasks.max": 1}', '{"a": {"b": "c"}}'])
def test_a_file_that_is_no_flat_object_of_texts_is_refused(tmp_path, content):
    """Connect takes texts only; nothing is guessed."""
    file = tmp_path / "c.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"c\.json"):
        fill(file, {})


def test_a_missing_file_is_a_configuration_error(tmp_path):
    """One sentence that names the file."""
    with pytest.raises(ConfigError, match=r"cannot be read.*absent\.json"):
        fill(tmp_path / "absent.json", {})


def test_a_java_trace_is_shortened_to_its_causes():
    """One line, outermost first, without frames and without repetition."""
    trace = (
        "org.apache.kafka.connect.errors.ConnectException: An exception occurred\n"
        "\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)\n"
        "Caused by: io.debezium.DebeziumException: cannot read\n"
        "\t... 5 more\n"
        "Caused by: java.net.ConnectException: Connection refused\n"
        "\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)\n"
    )
    assert shorten(trace) == (
        "org.apache.kafka.connect.errors.ConnectException: An exception occurred"
        " <- io.debezium.DebeziumException: cannot read <- java.net.ConnectException: Connection refused"
    )
    assert shorten("") == ""


def test_a_connect_that_nobody_answers_for_is_out_of_reach():
    """A closed port: one sentence with the address, and a retry may cure it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"does not answer .{address}") as raised:
            Connect(address).list()
    assert (raised.value.exit_code, raised.value.retry) == (3, True)


@pytest.mark.parametrize("path", ["/", "/absent"])
def test_another_server_at_the_address_is_a_configuration_error(tmp_path, path):
    """A folder listing with 200, or 404: no JSON comes from there, and no retry would change that."""
    (tmp_path / "connectors").write_text("<html>hello</html>")
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pytest.raises(ConfigError, match=r"no JSON"):
                Connect(f"http://127.0.0.1:{server.server_port}{path}").list()
        finally:
            server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *told: object) -> None:
        """Nothing on stderr."""
