"""``replicator demo-source load`` before any server is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from infra.sources import load
from replicator.cli import demo_source
from replicator.errors import ConfigError
from tests.cli import ended, said

NOWHERE = ["-h", "127.0.0.1", "-p", "9", "-d", "devdb", "-u", "devuser", "--password", "hidden"]


def loaded(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; what is said is said by a process of the command's own."""
    code = ended("demo-source", "load", *arguments).returncode
    told = capfd.readouterr()
    return code, told.out, told.err


def answered(*arguments: str) -> tuple[int, str, str]:
    """The same of what that process does, without one."""
    done = CliRunner().invoke(load.app, arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("sample", [[], ["classicmodels"]], ids=["northwind", "classicmodels"])
def test_a_server_that_is_not_there_is_exit_code_1_with_its_clients_words(
    sample: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """One error on stderr, nothing on stdout, no trace, no password."""
    asked = [*sample, *NOWHERE, "--create"]
    code, out, told = answered(*asked) if sample else loaded(capfd, *asked)
    assert (code, out) == (1, "")
    assert told.startswith("error: ")
    assert "127.0.0.1" in told
    assert "refused" in told
    assert "hidden" not in told


def test_a_declined_question_does_nothing_and_a_missing_host_is_usage() -> None:
    """Exit codes 0 and 2."""
    assert answered(*NOWHERE, "--no-create") == (0, "", "Nothing is changed.\n")
    code, out, told = answered("-d", "devdb")
    assert (code, out) == (2, "")
    assert "--host" in told


def test_without_the_checkout_it_says_where_the_samples_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package has none of them (infra is no part of it)."""
    monkeypatch.setattr(demo_source, "_CHECKOUT", tmp_path)
    with pytest.raises(ConfigError, match="in the project's checkout, not in the package"):
        said("demo-source", "load", *NOWHERE)
