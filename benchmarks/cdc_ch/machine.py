"""What a report says of where it was made."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from replicator.environment import variable
from replicator.jvm.java import java_home


def described() -> dict[str, Any]:
    """Processor, memory, system, versions, the project's commit, how busy the machine was, and when."""
    processor = _field("/proc/cpuinfo", "model name")
    memory = round(int(_field("/proc/meminfo", "MemTotal").split()[0]) / 2**20, 1)
    return {
        "at": datetime.now(timezone.utc).isoformat("T", "seconds"),
        "machine": {"processor": processor, "cores": os.cpu_count(), "memory_gib": memory, "load": os.getloadavg()[0]},
        "system": {"kernel": platform.release(), "python": sys.version.split()[0], "java": _java()},
        "commit": _said(["git", "describe", "--always", "--dirty"]),
    }


def nowhere(text: str) -> str:
    """The same without the folders of this machine: of a path its last part stays."""
    return re.sub(r"""(?<=["\s=:,'])/(?:[\w.@+~-]+/)+""", ".../", text)


def _java() -> str:
    home = java_home(variable("JAVA_HOME"))
    lines = subprocess.run([str(home / "bin" / "java"), "-version"], capture_output=True, text=True, check=True).stderr
    return lines.splitlines()[-1]


def _field(file: str, name: str) -> str:
    lines = Path(file).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return done.stdout.strip()
