"""``replicator lease``, and what a second driver says (reliability.md F-W1)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from replicator.errors import ConfigError, LeaseLost
from replicator.lake import Lake
from replicator.operate.lock import LeaseOptions, exclusive
from tests.builders import envelope
from tests.cli import said

ROOT = Path(__file__).resolve().parents[2]


def test_the_holder_of_a_stage_is_told_and_can_be_shut_out(tmp_path: Path) -> None:
    """Who, since when and by which token; afterwards nobody, and the holder's run does not end well."""
    lake = str(tmp_path)
    assert said("lease", "show", "--lake", lake) == ""
    assert said("lease", "break", "gold", "--lake", lake) == ""

    def work() -> None:
        with exclusive(Lake(lake), ("silver",), LeaseOptions(2.0)):
            [told] = json.loads(said("lease", "show", "--lake", lake, "--json"))
            assert (told["stage"], told["free"]) == ("silver", False)
            assert f"process {told['holder']['pid']} of" in said("lease", "show", "--lake", lake)
            said("lease", "break", "silver", "--lake", lake)
            assert "nobody" in said("lease", "show", "--lake", lake)
            time.sleep(0.5)

    with pytest.raises(LeaseLost):
        work()
    with pytest.raises(ConfigError, match=r"did you mean .silver"):
        said("lease", "break", "silvr", "--lake", lake)


def test_a_second_run_says_soon_that_the_lake_is_busy(tmp_path: Path) -> None:
    """The real command, while another process of ours holds the lease: exit 3, in 10 seconds, before any JVM starts."""
    with exclusive(Lake(str(tmp_path / "lake")), ("silver",), LeaseOptions()):
        began = time.monotonic()
        code, out, told = _ended(_started(tmp_path))
        assert time.monotonic() - began < 10
    assert (code, out) == (3, "")
    assert "silver of this lake is being written by process" in told
    assert f"`replicator lease break silver --lake {tmp_path / 'lake'}` fences it off" in told


@pytest.mark.spark
def test_of_two_runs_that_start_at_once_one_does_the_work(tmp_path: Path) -> None:
    """Both are the real command over the same records: one applies all of them, the other says who does."""
    (tmp_path / "lake").mkdir()
    done = [_ended(each) for each in [_started(tmp_path), _started(tmp_path)]]
    [(_, out, _), (_, nothing, told)] = sorted(done)
    assert [code for code, _, _ in sorted(done)] == [0, 3]
    assert [(line["stage"], line["applied"]) for line in json.loads(out)] == [("bronze", 2), ("silver", 2)]
    assert nothing == ""
    assert "bronze of this lake is being written by process" in told


def _started(folder: Path) -> subprocess.Popen[str]:
    """``replicator run --recorded`` over two records, in a process of its own."""
    events, place = folder / "events.jsonl", {"topic": "s.shop.orders", "partition": 0, "ts": 1700000000000}
    records = [
        {**place, "offset": k, "key": json.dumps({"k": k}), "payload": json.dumps(envelope("c", {"k": k}, pos=4 + k))}
        for k in (1, 2)
    ]
    events.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    code = "import sys; from replicator.cli import main; sys.argv[0] = 'replicator'; main()"
    words = ["run", "--recorded", str(events), "--lake", str(folder / "lake"), "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    return subprocess.Popen([sys.executable, "-c", code, *words], **pipes)


def _ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, stdout, and stderr in one line."""
    out, told = process.communicate()
    return process.returncode, out, " ".join(told.split())
