"""Ctrl-C and SIGTERM: they end the program, not half of it, and the JVM goes with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from replicator.jvm import interrupts
from replicator.lake import Lake
from replicator.operate import lock


@pytest.fixture
def handler() -> Iterator[None]:
    """Whatever a test does to the handler of Ctrl-C is undone."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_counts_when_what_must_not_be_cut_off_is_done(handler: None) -> None:
    """A JVM that is half-way there would live on by itself."""
    done = []

    def work() -> None:
        with interrupts.defer():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [True]


def test_other_threads_are_left_alone() -> None:
    """Python delivers signals to the main thread only."""
    passed = []

    def work() -> None:
        with interrupts.defer():
            interrupts.cancel_on_interrupt(lambda: None)
            passed.append(True)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert passed == [True]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.spark
def test_ctrl_c_ends_a_query_and_leaves_the_session_in_order(
    spark: SparkSession, handler: None, caplog: pytest.LogCaptureFixture
) -> None:
    """What is at work is cancelled, and the next question gets its own answer."""
    interrupts.cancel_on_interrupt(spark.sparkContext.cancelAllJobs)
    timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        spark.range(10**12).where("id % 7 = 8").count()
    timer.join()
    assert spark.range(3).count() == 3
    assert caplog.records == []
    ends = time.monotonic() + 30
    while spark.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < ends, "the query goes on"
        time.sleep(0.1)


@pytest.mark.spark
def test_a_jvm_of_ours_leaves_both_signals_to_the_program(spark: SparkSession) -> None:
    """Who stops a service signals all of its processes: a JVM that ended by itself would fail the pass at hand."""
    status = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/status").read_text(encoding="ascii")
    ignored = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")), 16)
    assert [ignored >> number - 1 & 1 for number in (signal.SIGINT, signal.SIGTERM)] == [1, 1]


def test_ctrl_c_counts_also_where_the_jvm_did_not_start() -> None:
    """A signal to all processes reaches one that is half-way there: that is no failure of it."""

    def work() -> None:
        with interrupts.defer():
            os.kill(os.getpid(), signal.SIGINT)
            raise RuntimeError("the JVM ended")

    with pytest.raises(KeyboardInterrupt):
        work()


def test_what_comes_up_while_ctrl_c_is_heeded_is_exit_code_130() -> None:
    """The README's table: a scheduler would read 1 as a table that stopped."""
    program = (
        "import sys, replicator.cli as cli\n"
        "def interrupted(*_, **__):\n"
        "    try:\n"
        "        raise KeyboardInterrupt\n"
        "    finally:\n"
        "        raise RuntimeError('the JVM is gone')\n"
        "cli.app = interrupted\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("before", ["", 'trap "" INT; '], ids=["alone", "in the background of a shell"])
def test_sigterm_does_what_ctrl_c_does_and_says_so(tmp_path: Path, before: str) -> None:
    """Leases are let go, so that the next driver need not find out; 143, and one line for whoever reads the log."""
    lake, events = Lake(str(tmp_path / "lake")), tmp_path / "events.jsonl"
    events.touch()
    Path(lake.root).mkdir()
    command = [sys.executable, "-m", "replicator", "run", "--recorded", str(events), "--lake", lake.root]
    armed = {"REPLICATOR_FAILPOINTS_ALLOWED": "yes", "REPLICATOR_FAILPOINT": "lease.token_drawn:hang:1"}
    with subprocess.Popen(
        ["sh", "-c", f'{before}exec "$@"', "sh", *command],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **armed},
        cwd=Path(__file__).parents[2],
    ) as program:
        ends = time.monotonic() + 30
        while not Path(lake.token()).exists():
            assert time.monotonic() < ends, "no lease was taken"
            time.sleep(0.05)
        held = lock.read_leases(lake, ("bronze", "silver"), lock.LeaseOptions())
        program.terminate()
        assert program.stderr is not None
        assert program.stderr.read().splitlines()[1:] == ["terminated by SIGTERM"]
    assert program.returncode == 143
    assert [each.free for each in held] == [False, False]
    assert [each.free for each in lock.read_leases(lake, ("bronze", "silver"), lock.LeaseOptions())] == [True, True]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_run_that_goes_on_says_that_it_stops_and_the_same_once_more_ends_it_at_once(number: signal.Signals) -> None:
    """A pass may wait for a server for long; one signal that `timeout` sends twice is one."""
    program = (
        "import os, sys, time\n"
        "from replicator.cli import run\n"
        "stop = run._stop_on_signal()\n"
        "for after in (0, 0, run._AGAIN_SECONDS):\n"
        "    time.sleep(after)\n"
        f"    os.kill(os.getpid(), {number.value})\n"
        "    print(stop.is_set(), flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-number, "True\nTrue\n")
    assert done.stderr == "stopping: work in progress is finished first; repeat to stop at once\n"


@pytest.mark.spark
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("end", ["context.stop()", "gateway.proc.kill(); gateway.proc.wait()"], ids=["stopped", "gone"])
def test_what_fails_since_the_signal_ended_the_jvm_too_is_that_signal(told: bool, end: str) -> None:
    """Ctrl-C in a terminal and a service manager's SIGTERM reach the JVM of `spark-submit` as well: no error, be it
    raised, or told of a table whose work was cut off.
    """
    program = (
        "from threading import Event\n"
        "from replicator import session, settings\n"
        "from replicator.cli import run\n"
        "from replicator.errors import TableStopped\n"
        "from replicator.stages.run_report import ReportLine\n"
        "spark, stop, lines = session.session(settings.bare(None)), Event(), []\n"
        "context, gateway = spark.sparkContext._jsc, spark.sparkContext._gateway\n"
        f"stop.set() if {told} else None\n"
        "for work in (lambda: context.emptyRDD().count(), lambda: None):\n"
        "    try:\n"
        "        with run._suppress_shutdown_errors(stop, spark, lines.append) as heard:\n"
        f"            {end}\n"
        "            heard(ReportLine('silver', 'a', error=TableStopped('its job was cancelled')))\n"
        "            heard(ReportLine('silver', 'b'))\n"
        "            work()\n"
        "        print(None)\n"
        "    except BaseException as error:\n"
        "        print(isinstance(error, KeyboardInterrupt))\n"
        "print([line.table for line in lines])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    said = ["True", "True", "['b', 'b']"] if told else ["False", "None", "['a', 'b', 'a', 'b']"]
    assert done.stdout.splitlines() == said, done.stderr
