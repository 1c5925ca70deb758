"""Failpoints: every name is one place in the code, and what is armed happens once, there, if somebody allowed it."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from replicator import environment, failpoints
from replicator.errors import ConfigError
from replicator.failpoints import POINTS, Killed

PACKAGE = Path(failpoints.__file__).parent
ALLOWED = {"REPLICATOR_FAILPOINTS_ALLOWED": "yes"}


def hits() -> Counter[str]:
    """What the package's calls of ``failpoints.hit`` say; one that says no plain text fails."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr == "hit" and ast.unparse(node.func) == "failpoints.hit":
                [name] = [ast.literal_eval(argument) for argument in node.args]
                found[name] += 1
    return found


def test_every_registered_point_is_in_the_code_and_no_other() -> None:
    """A name in the table that nothing comes to, or a place without a sentence, would be a hole in the sweep."""
    assert set(hits()) == set(POINTS)


def test_nothing_happens_until_the_named_hit_and_then_once() -> None:
    """``name:action:nth``; other points do not count, and what is not watched any more costs nothing."""
    with failpoints.watched(failpoints.parse("silver.merged:raise:2")):
        failpoints.hit("silver.merged")
        failpoints.hit("gold.merged")
        with pytest.raises(Killed, match=r"hit 2 of silver[.]merged"):
            failpoints.hit("silver.merged")
        failpoints.hit("silver.merged")
    failpoints.hit("silver.merged")


def test_sleep_goes_on_afterwards() -> None:
    """For races: the others get so long."""
    armed = failpoints.parse("silver.merged:sleep=0.01:1")
    assert armed.seconds == 0.01
    with failpoints.watched(armed):
        failpoints.hit("silver.merged")
    assert armed.hits == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("silver.merge:kill:1", "did you mean 'silver.merged'"),
        ("silver.merged", "name:action:nth"),
        ("silver.merged:kill:0", "name:action:nth"),
        ("silver.merged:explode:1", "kill, raise, hang and sleep"),
        ("silver.merged:kill=3:1", "name:action:nth"),
    ],
)
def test_what_is_no_failpoint_is_refused(text: str, told: str) -> None:
    """A sweep over a misspelled name would kill nothing and pass."""
    with pytest.raises(ConfigError, match=told):
        failpoints.parse(text)


def test_nobody_dies_by_one_variable_alone() -> None:
    """A production that has the first by accident does not start; without it the second means nothing."""
    wanted = {"REPLICATOR_FAILPOINT": "silver.merged:kill:1"}
    assert environment.failpoint({**wanted, **ALLOWED}) == "silver.merged:kill:1"
    assert environment.failpoint(ALLOWED) is None
    with pytest.raises(ConfigError, match="failpoints are not allowed"):
        environment.failpoint(wanted)


@pytest.mark.parametrize(
    ("armed", "allowed", "code", "said"),
    [
        ("silver.merged:kill:1", "yes", 0, "silver.merged:kill:1 is armed"),
        ("silver.merged:kill:1", "", 2, "failpoints are not allowed"),
        ("silver.merge:kill:1", "yes", 2, "did you mean"),
    ],
)
def test_the_command_line_arms_what_its_environment_says(armed: str, allowed: str, code: int, said: str) -> None:
    """As ``jobs/*.py`` do, which call it; it says so on stderr."""
    told = {"REPLICATOR_FAILPOINT": armed, "REPLICATOR_FAILPOINTS_ALLOWED": allowed}
    command = [sys.executable, "-c", "from replicator.cli import main; main()", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **told})
    assert (done.returncode, said in " ".join(done.stderr.split())) == (code, True), done.stderr


def child(action: str) -> subprocess.Popen[str]:
    """A process with a child, which comes to a point where that happens."""
    code = (
        "import subprocess, sys\nfrom replicator import failpoints\n"
        "print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid, flush=True)\n"
        f"failpoints.arm(failpoints.parse('silver.merged:{action}:1'))\nfailpoints.hit('silver.merged')\nprint('alive')"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)


def test_kill_takes_the_whole_process_group() -> None:
    """A driver's JVM is a child of Python: it must not commit after the driver's death."""
    process = child("kill")
    told, _ = process.communicate(timeout=60)
    assert (process.returncode, "alive" in told) == (-signal.SIGKILL, False)
    with pytest.raises(ProcessLookupError):
        os.kill(_gone(int(told)), 0)


def test_hang_stays_until_somebody_ends_it() -> None:
    """For leases that run out and clients that wait."""
    process = child("hang")
    try:
        assert process.stdout is not None
        assert process.stdout.readline()  # it is about to come there
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        told, _ = process.communicate(timeout=60)
    assert "alive" not in told


def _gone(pid: int) -> int:
    """The process, once the system has cleared it away or five seconds have passed."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            break
        if state == "Z":  # nobody asks for its end where no init does
            return 2**22 + 1
        time.sleep(0.02)
    return pid
