"""Commands that pages and messages name are those that there are, and those that there are stand on some page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicator.cli import verbs
from replicator.config import yamlschema
from tests import messages, readme
from tests.unit import test_readme

PAGES = [readme.ROOT / "README.md", readme.ROOT / "CONTRIBUTING.md", *sorted((readme.ROOT / "docs").rglob("*.md"))]
MANUAL = [page for page in PAGES if page.parent.name != "decisions"]
EVERYWHERE = {"--env", "--conf", "--lake", "--json", "--source"}
"""Said once for all verbs that take them."""


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for inner, found in command.commands.items():
            yield from _commands(f"{name} {inner}", found)
    else:
        yield name, command


def _flags(command: Any) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("-")}


COMMANDS = {told: found for verb in verbs.VERBS for told, found in _commands(verb, verbs.load(verb))}
GROUPS = {" ".join(name.split()[:size]) for name in COMMANDS for size in (1, 2)} - COMMANDS.keys()


def wrong(code: str) -> str | None:
    """What is not right in words behind ``replicator``; None where verb and flags are there."""
    words = readme.words(re.sub(r"[][]|\.\.\.", " ", code))
    name = max(
        (told for told in (*COMMANDS, *GROUPS) if words[: len(told.split())] == told.split()), key=len, default=""
    )
    if not name:
        return f"there is no verb {words[0]}"
    rest = words[len(name.split()) :]
    if name in GROUPS:
        return f"{name} has no verb {rest[0]}" if rest else None
    if "ignore_unknown_options" in COMMANDS[name].context_settings:
        return None
    known = {*_flags(COMMANDS[name]), "--debug"}
    strange = [word for word in rest if re.match(r"--?[a-z]", word) and word.partition("=")[0] not in known]
    return f"{name} has no {strange[0]}" if strange else None


def of_page(text: str) -> list[str]:
    """The commands of ours in its code, blocks and sentences alike."""
    code = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    code += [line for block in re.findall(r"```(?:sh|text)\n(.*?)```", text, re.DOTALL) for line in block.split("\n")]
    found = [re.fullmatch(r"replicator\s+([a-z].*?)(?:\s+#.*)?", " ".join(each.split())) for each in code]
    return [each[1] for each in found if each is not None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(readme.ROOT)))
def test_a_page_names_verbs_and_flags_that_there_are(page: Path) -> None:
    """Whoever copies from a page finds what it says."""
    told = {code: wrong(code) for code in of_page(page.read_text(encoding="utf-8"))}
    assert {code: why for code, why in told.items() if why is not None} == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("`replicator statos`", "there is no verb statos"),
        ("`replicator connect plugin`", "connect has no verb plugin"),
        ("```sh\nreplicator verify --sampel 0.1\n```", "verify has no --sampel"),
        ("`replicator run silver [--contineous]`", "run has no --contineous"),
        ("`replicator connect offsets\nreset NAME --json`", "connect offsets reset has no --json"),
        ("```sh\nreplicator sql 'SELECT 1; SELECT 2' --fromat csv | cat\n```", "sql has no --fromat"),
        ("`replicator diff TABLE --from V|TIME [--ot V|TIME]`", "diff has no --ot"),
    ],
)
def test_what_there_is_not_is_seen(text: str, why: str) -> None:
    """A misspelt verb or flag on a page is found."""
    assert [wrong(code) for code in of_page(text)] == [why]


@pytest.mark.parametrize(
    "line",
    [
        "replicator run --env local | grep -v error",
        "replicator status --json | jq --raw-output .x",
        "replicator run && ls -la",
        "replicator run; ls -la",
        "replicator run || rm --force it",
        "replicator status > --file",
        "replicator status 2>/dev/null --x",
        'replicator sql "SELECT a -x FROM t" --lake .demo/lake',
        "replicator sql 'SELECT 1 --x' --env local",
    ],
)
def test_what_other_programs_of_a_line_take_is_not_asked_of_ours(line: str) -> None:
    """Nor what stands in quotes; the README's own test takes them, too."""
    assert [wrong(code) for code in of_page(f"```sh\n{line}\n```")] == [None]
    test_readme.check(line)


def test_every_command_is_told_in_the_manual() -> None:
    """A verb of a group too, by its name or in the table of its group."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in MANUAL)
    connect = (readme.ROOT / "docs/connectors.md").read_text(encoding="utf-8")
    shown = {name for name in COMMANDS if re.search(rf"\b{name}\b", text)}
    shown |= {name for name in COMMANDS if name.startswith("connect ") and f"`{name[8:]}" in connect}
    assert sorted(COMMANDS.keys() - shown) == []


def test_every_flag_is_told_where_its_command_is() -> None:
    """In a section that names both."""
    sections = [part for page in MANUAL for part in re.split(r"\n(?=#+ )", page.read_text(encoding="utf-8"))]
    untold = [
        f"{name} {flag}"
        for name, command in COMMANDS.items()
        for flag in sorted(_flags(command) - EVERYWHERE)
        if flag.startswith("--")
        and not any(
            re.search(rf"(?<![\w-]){flag}(?![\w-])", part) and re.search(rf"\b{name.split()[-1]}\b", part)
            for part in sections
        )
    ]
    assert untold == []


SAID = sorted(
    {
        (module, " ".join(code.split()))
        for module, text in messages.texts()
        for code in re.findall(r"`replicator ([a-z][^`]*)`", text)
    }
)


@pytest.mark.parametrize(("module", "code"), SAID, ids=[code for _, code in SAID])
def test_a_message_names_a_command_that_its_reader_can_give(module: str, code: str) -> None:
    """With all that it needs, where it is more than a verb's name."""
    assert wrong(code) is None, module
    if code in COMMANDS or code in GROUPS:
        return
    name = max((told for told in COMMANDS if f"{code} ".startswith(f"{told} ")), key=len)
    words = code.removeprefix(name).replace("{}", messages.VALUE).split()
    COMMANDS[name].make_context(name, words)


BLOCKS = yamlschema.build("settings")
OF_CODE = {"CONTRIBUTING.md", "architecture.md", "testing.md"}
"""Pages that name modules and attributes."""
SETTING = re.compile(rf"(?<![\w./$-])({'|'.join(BLOCKS['properties'])})\.(?!md\b|py\b)([a-z_]+)(?![\w./(=-]*\w)")
"""A key of a block, such as `lake.root`, that is not the beginning of something longer."""


def settings_of(block: str) -> set[str] | None:
    """The keys of a block of ``base.yaml``; None where it takes any."""
    told = json.dumps(BLOCKS["properties"][block])
    named = [BLOCKS["$defs"][name].get("properties", {}) for name in re.findall(r"#/\$defs/(\w+)", told)]
    keys = {key for each in named for key in each}
    return keys if keys and "additionalProperties" not in BLOCKS["properties"][block] else None


def test_a_setting_that_a_message_or_a_page_names_is_one_that_there_is() -> None:
    """By its block: whoever is told to set it finds it in base.yaml."""
    sentences = [text for _, text in messages.texts() if " " in text]
    pages = [page for page in MANUAL if page.name not in OF_CODE]
    sentences += [code for page in pages for code in re.findall(r"`([^`]+)`", page.read_text(encoding="utf-8"))]
    told = {each for text in sentences for each in SETTING.findall(text)}
    assert ("lake", "root") in told
    known = {block: settings_of(block) for block, _ in told}
    assert sorted(each for each in told if (keys := known[each[0]]) is not None and each[1] not in keys) == []
