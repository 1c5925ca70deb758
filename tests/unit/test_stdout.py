"""``replicator ... | head -1``: a reader that has seen enough is no error, and no word of Python's is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import ended

ROOT = Path(__file__).parents[2]
MANY = ("sql", "SELECT * FROM range(300000)", "--engine", "duckdb", "--format")
LITTLE = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [(("--version",), 0), (("config", "show"), 0), (("--help",), 0), ((*MANY, "csv"), 10)],
    ids=["little", "a table", "help", "much"],
)
def test_a_reader_that_leaves_ends_the_program_without_a_word(
    tmp_path: Path, arguments: tuple[str, ...], read: int
) -> None:
    """141, as of programs that SIGPIPE ends: 1 would say that a table stopped; with little as with much to print."""
    lake = ("--lake", str(tmp_path)) if "sql" in arguments else ()
    out, to = os.pipe()
    command = [sys.executable, "-m", "replicator", *arguments, *lake]
    with subprocess.Popen(command, stdout=to, stderr=subprocess.PIPE, text=True, env=LITTLE, cwd=ROOT) as program:
        os.close(to)
        assert len(os.read(out, read)) == read
        os.close(out)
        assert program.stderr is not None
        assert (program.stderr.read(), program.wait()) == ("", 141)


def test_a_full_disk_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    """What is flushed last can fail like all before it, and exit code 0 would call a file whole that is not."""
    program = [sys.executable, "-m", "replicator", "--version"]
    command = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *program]
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, env=LITTLE, cwd=ROOT, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("error: OSError")


def test_a_closed_stdout_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    """``>&-``: one sentence with the way out, and exit code 2; Python's own words said that None has no `write`."""
    program = [sys.executable, "-m", "replicator", *MANY, "csv", "--lake", str(tmp_path)]
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=LITTLE, cwd=ROOT, check=False)
    told = "error: stdout is closed. Redirect the output with `> /dev/null` if it is not needed.\n"
    assert (done.returncode, done.stderr) == (2, told)


@pytest.mark.parametrize("written", ["table", "csv", "json"])
def test_letters_that_stdout_has_no_bytes_for_are_refused(tmp_path: Path, written: str) -> None:
    """Exit code 2 with the letter and the way out: in its place another one would be other data."""
    asked = ("sql", "SELECT 'é' AS word", "--engine", "duckdb", "--format", written, "--lake", str(tmp_path))
    done = ended(*asked, PYTHONIOENCODING="ascii")
    told = r"error: stdout is ascii, which cannot encode '\xe9'. Set PYTHONIOENCODING=utf-8, or LANG to a UTF-8 locale."
    assert (done.returncode, done.stderr) == (2, told + "\n")
