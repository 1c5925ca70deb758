"""Kafka Connect without a server: shortened traces, nobody answering."""

from __future__ import annotations

import functools
import http.server
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from replicator.connect.differences import Step
from replicator.connect.reconcile import reconcile
from replicator.connect.responses import shorten_trace
from replicator.connect.rest import Connect
from replicator.errors import ConfigError, Unreachable
from tests.stand_in_connect import running


def test_a_java_trace_is_shortened_to_its_causes() -> None:
    """One line, outermost first, without frames and without repetition."""
    trace = (
        "org.apache.kafka.connect.errors.ConnectException: An exception occurred\n"
        "\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)\n"
        "Caused by: io.debezium.DebeziumException: cannot read\n"
        "\t... 5 more\n"
        "Caused by: java.net.ConnectException: Connection refused\n"
        "\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)\n"
    )
    assert shorten_trace(trace) == (
        "org.apache.kafka.connect.errors.ConnectException: An exception occurred"
        " <- io.debezium.DebeziumException: cannot read <- java.net.ConnectException: Connection refused"
    )
    assert shorten_trace("") == ""


def test_of_a_long_cause_its_end_is_told_too() -> None:
    """Of a dropped slot Debezium tells the whole offset first, and then what is the matter."""
    begins, ends = "io.debezium.DebeziumException: trying to read from Offset [", "], but this is no longer available."
    told = shorten_trace(f"{begins}{'lsn=LSN{0/213FA50}, ' * 40}{ends}\n\tat io.debezium.Task.start(Task.java:1)")
    assert told.startswith(begins)
    assert told.endswith(ends)
    assert len(told) == 300


def test_a_connect_that_nobody_answers_for_is_out_of_reach() -> None:
    """A closed port: one sentence with the address, and a retry may cure it."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"does not answer .{address}") as raised:
            Connect(address).list()
    assert (raised.value.exit_code, raised.value.retry) == (3, True)


@pytest.mark.parametrize("path", ["/", "/absent"])
def test_another_server_at_the_address_is_a_configuration_error(tmp_path: Path, path: str) -> None:
    """A folder listing with 200, or 404: no JSON comes from there, and no retry would change that."""
    (tmp_path / "connectors").write_text("<html>hello</html>")
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pytest.raises(ConfigError, match=r"(not|no) JSON"):
                Connect(f"http://127.0.0.1:{server.server_port}{path}").list()
        finally:
            server.shutdown()


@pytest.mark.parametrize("text", ["null", '"ok"', '{"status": "ok"}', '{"offsets": [1]}'])
def test_a_server_that_answers_everything_in_json_is_no_connect_either(text: str) -> None:
    """Whatever it is asked, and as little a stack trace."""

    class Other(_Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        connect = Connect(f"http://127.0.0.1:{server.server_port}")
        try:
            for asked in (connect.list, connect.plugins, lambda: connect.status("x"), lambda: connect.offsets("x")):
                with pytest.raises(ConfigError, match="is not Kafka Connect: its response is JSON of another form"):
                    asked()
        finally:
            server.shutdown()


def test_a_plugin_that_looks_at_its_database_for_long_is_waited_for() -> None:
    """As long as it may take, by the validation and by the PUT, which validates once more; while the workers rebalance
    (409), Connect is asked again.
    """
    asked: list[str] = []

    class Slow(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            told = [{"class": "p.Slow", "type": "source"}] if self.command == "GET" else {"configs": []}
            is_refused = asked == ["GET /connector-plugins"]
            if self.command == "PUT":
                self.rfile.read(int(self.headers["content-length"]))
                time.sleep(0.6)
            body = json.dumps(told).encode()
            self.send_response(409 if is_refused else 200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = _answer  # noqa: N815 - their names are the library's

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            Connect(f"http://127.0.0.1:{server.server_port}", timeout=0.2).apply("a/b", {"connector.class": "p.Slow"})
        finally:
            server.shutdown()
    plugin = "/connector-plugins"
    puts = [f"PUT {plugin}/p.Slow/config/validate", "PUT /connectors/a%2Fb/config"]
    assert asked == [f"GET {plugin}", f"GET {plugin}", *puts]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *told: object) -> None:
        """Nothing on stderr."""


def test_what_was_done_before_connect_went_away_is_told() -> None:
    """`connect apply --json` prints what became of each step at its end: the first one's outcome was lost."""
    running_, gone = Step("shop", "unchanged"), Step("late", "unchanged")
    with running("shop", {}) as url:
        outcomes = reconcile(Connect(url), {}, [running_, gone])
        first = next(outcomes)
    [second] = outcomes
    assert (first.state, first.error) == ("RUNNING", None)
    assert (second.state, type(second.error)) == ("", Unreachable)
