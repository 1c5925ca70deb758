"""Leases between real processes, on a local disk and on S3 (reliability.md F-W1, F-W2)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from replicator.errors import LakeBusy, LeaseLost
from replicator.lake import Lake
from replicator.operate.lock import LeaseOptions, exclusive
from tests.cli import said
from tests.contract.lease_place import Place
from tests.contract.s3_server import BUCKET, S3Server

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(120)
def test_of_two_processes_that_start_at_once_one_works(place: Place) -> None:
    """Ten times: one holds the lease, the other says busy, without having waited for it to be let go (F-W1)."""
    endpoint = str(place.terms.s3.endpoint) if place.terms.s3 else ""
    command = [sys.executable, "-m", "tests.contract.lease_process", endpoint]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen(command, **pipes) as one, subprocess.Popen(command, **pipes) as other:
        both = (one, other)
        for process in both:
            assert process.stdout.readline() == "ready\n"
        numbers = []
        for turn in range(10):
            for process in both:
                _tell(process, f"{place.root}/{turn % 5}")
            told = [json.loads(process.stdout.readline()) for process in both]
            assert sorted(each["is"] for each in told) == ["busy", "works"], told
            [works], [busy] = ([e for e in told if e["is"] == kind] for kind in ("works", "busy"))
            assert busy["seconds"] < place.terms.length
            numbers.append(works["token"])
            _tell(both[told.index(works)], "done")
            assert both[told.index(works)].stdout.readline() == "gone\n"
        assert numbers == [1] * 5 + [2] * 5
        for process in both:
            process.stdin.close()


@pytest.mark.timeout(120)
def test_a_process_that_was_stopped_for_too_long_may_not_write(place: Place) -> None:
    """SIGSTOP for twice its lease: a second takes over, and the sleeper's next look at the lease refuses (F-W2)."""
    endpoint = str(place.terms.s3.endpoint) if place.terms.s3 else ""
    command = [sys.executable, "-m", "tests.contract.lease_process", endpoint]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    brief = replace(place.terms, length=1.2)
    with subprocess.Popen(command, **pipes) as sleeper:
        assert sleeper.stdout.readline() == "ready\n"
        _tell(sleeper, place.root)
        assert json.loads(sleeper.stdout.readline())["is"] == "works"
        sleeper.send_signal(signal.SIGSTOP)
        with exclusive(Lake(place.root), ("silver",), brief) as fence:
            assert fence.token.number == 2
            time.sleep(1.2)
            sleeper.send_signal(signal.SIGCONT)
            _tell(sleeper, "done")
            assert sleeper.stdout.readline().startswith("LeaseLost")
            fence.check()
        sleeper.stdin.close()


def test_the_command_line_finds_the_leases_of_a_lake_on_s3(s3: S3Server, tmp_path: Path) -> None:
    """With the settings of ``s3``: who holds what, a second run is busy, and the holder can be shut out."""
    lake, told = f"s3a://{BUCKET}/{uuid4().hex}", {"endpoint": s3.endpoint, "access_key": "k", "secret_key": "s"}
    settings = {"lake": {"root": lake, "lease": "6 seconds"}, "s3": told | {"path_style": True}}
    (tmp_path / "dev.yaml").write_text(json.dumps(settings))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "shop.yaml").write_text("{name: shop, bootstrap_servers: 127.0.0.1:9}")
    at = ("--conf", str(tmp_path), "--env", "dev")

    def work() -> None:
        with exclusive(Lake(lake), ("silver",), LeaseOptions(6.0, s3=s3.keys)):
            [held] = json.loads(said("lease", "show", *at, "--json"))
            assert (held["stage"], held["free"]) == ("silver", False)
            with pytest.raises(LakeBusy, match="silver of this lake"):
                said("run", "silver", *at)
            said("lease", "break", "silver", *at)
            assert "nobody" in said("lease", "show", *at)
            time.sleep(1)

    with pytest.raises(LeaseLost):
        work()


def _tell(process: subprocess.Popen[str], line: str) -> None:
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
