"""Commands in messages can be copied: they are of the lake that the message is about."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from replicator.cli import advice, console
from tests.cli import ended


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["status"], {}),
        (["status", "--env", "aws", "--json"], {"--env": "aws"}),
        (["run", "silver", "--env=aws", "--conf=a=b"], {"--env": "aws", "--conf": "a=b"}),
        (["verify", "--env", "aws", "--conf", "my conf", "--lake", "l"], {"--lake": "l"}),
        (["rebuild", "--all", "--lake", "l", "--declare", "d.yaml"], {"--lake": "l", "--declare": "d.yaml"}),
        (["status", "--env"], {"--env": ""}),
    ],
)
def test_the_options_that_say_which_lake_are_those_of_the_command(arguments: list[str], place: dict[str, str]) -> None:
    """Where a lake is given, no configuration is read."""
    assert advice.place_of(arguments) == place


@pytest.mark.parametrize(
    ("told", "completed"),
    [
        ("`replicator rebuild 'my orders'` and", "`replicator rebuild 'my orders' --env aws --conf 'my conf'` and"),
        ("`replicator status`", "`replicator status --env aws --conf 'my conf'`"),
        ("`replicator connect snapshot S T`", "`replicator connect snapshot S T --env aws --conf 'my conf'`"),
        ("`replicator rebuild --all --env b`", "`replicator rebuild --all --env b`"),
        ("`replicator jars` or `replicator connect`", "`replicator jars` or `replicator connect`"),
        ("`replicator nonsense`, `ls`, replicator status", "`replicator nonsense`, `ls`, replicator status"),
    ],
)
def test_a_command_gets_the_options_that_it_accepts(told: str, completed: str) -> None:
    """And none that it has already, or does not know."""
    assert advice.complete(told, {"--env": "aws", "--conf": "my conf"}) == completed


def test_a_lake_that_was_given_is_given_where_a_command_takes_one() -> None:
    """`connect` works on a configuration, and `rebuild` knows what a file declares."""
    place = {"--lake": "my lake", "--declare": "d.yaml"}
    declared = "`replicator rebuild x --lake 'my lake' --declare d.yaml`"
    assert advice.complete("`replicator rebuild x`", place) == declared
    assert advice.complete("`replicator status`", place) == "`replicator status --lake 'my lake'`"
    assert advice.complete("`replicator connect status`", place) == "`replicator connect status`"


def test_a_command_is_quoted_for_a_shell() -> None:
    """Names may hold blanks."""
    assert advice.command("rebuild", "shop/sales.my orders", "--dry-run") == (
        "`replicator rebuild 'shop/sales.my orders' --dry-run`"
    )


def test_a_message_is_of_the_command_of_its_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever prints it."""
    for arguments, end in ((["status", "--env", "aws"], " --env aws"), (["status"], "")):
        monkeypatch.setattr(sys, "argv", ["replicator", *arguments])
        console.narrate("See `replicator runs`.")
        assert capsys.readouterr().err == f"See `replicator runs{end}`.\n"


def test_an_error_of_a_command_names_commands_of_its_lake(tmp_path: Path) -> None:
    """Also where it comes from below the command line."""
    for layer in ("bronze", "_replicator/runs"):
        (tmp_path / layer).mkdir(parents=True)
    done = ended("runs", "nobody", "--lake", str(tmp_path))
    assert done.returncode == 2
    assert f"`replicator runs --lake {tmp_path}` lists the existing ones." in done.stderr
