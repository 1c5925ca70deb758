"""README.md says nothing that is not there: commands parse, targets, jobs and files exist, examples load."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from infra.local.__main__ import _VERBS as STACK_VERBS
from replicator import settings
from replicator.cli import verbs
from replicator.config import modelfile, sourcefile, yamlschema
from replicator.config.declarekeys import DeclareKeys
from replicator.config.feedfile import FeedKeys
from replicator.config.modelfile import ModelKeys
from replicator.config.settingkeys import Keys
from replicator.config.sourcekeys import SourceKeys
from replicator.debezium.type_parser import parse_type
from tests import readme

MANUAL = ("README.md", "docs/tables.md", "docs/operate.md")
"""What a user reads first; its pages name every verb."""
PAGES_WITH_EXAMPLES = ("README.md", *sorted(f"docs/{page.name}" for page in (readme.ROOT / "docs").glob("*.md")))
COMMANDS = [
    each for page in PAGES_WITH_EXAMPLES for section in readme.sections(page) for each in readme.commands(section, page)
]
TEXT = "\n".join(line for page in MANUAL for lines in readme.sections(page).values() for line in lines)
PLAIN = {"cat", "export", ".", "python", "aws", "docker"}
"""Programs that are not ours; ``python`` reads a here-document."""


def parses(words: list[str]) -> None:
    """Raises a usage error unless the words behind ``replicator`` are a verb and its flags."""
    name, *words = [word for word in words if word != "--debug"]
    command: Any = verbs.load(name)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(command.name, words)


def substituted(command: str) -> list[str]:
    """The commands inside ``$(...)``."""
    return re.findall(r"\$\(([^)]*)\)", command)


def check(command: str) -> None:
    program, *words = shlex.split(" ".join(readme.words(command.split("\n", 1)[0])))
    if program == "make":
        targets = (readme.ROOT / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^{target}:", targets, re.MULTILINE) for target in words)
    elif program == "replicator":
        parses(words)
    elif program == "spark-submit":
        [at] = [index for index, word in enumerate(words) if word.startswith("jobs/")]
        assert (readme.ROOT / words[at]).is_file()
        stage = words[at].removeprefix("jobs/").removesuffix(".py")
        parses(["run", stage, *words[at + 1 :]])
    elif words[:2] == ["-m", "infra.local"]:
        assert words[2] in STACK_VERBS
    elif words[:1] == ["-m"]:
        assert words[1:] in (["infra.sample_source"], ["infra.northwind_source"])
    elif program != "eval":
        assert program in PLAIN
    for inner in substituted(command):
        check(inner)


@pytest.mark.parametrize("command", COMMANDS, ids=[command.split("\n")[0][:60] for command in COMMANDS])
def test_every_command_is_one_that_there_is(command: str) -> None:
    """What a reader copies has the targets, verbs, flags and jobs that it names."""
    check(command)


@pytest.mark.parametrize("code", sorted(set(re.findall(r"`(replicator [^`]*|make [^`]*|spark-submit [^`]*)`", TEXT))))
def test_every_command_in_a_sentence_is_one_that_there_is(code: str) -> None:
    """The same for commands inside text, where ``FILE...`` stands for a file."""
    check(code.replace("...", ""))


def test_every_verb_is_told_in_the_manual() -> None:
    """A verb that nobody reads about is a verb that nobody uses."""
    missing = [verb for verb in verbs.VERBS if not re.search(rf"\b{verb}\b", TEXT)]
    assert missing == []


def test_python_in_here_documents_compiles() -> None:
    """A misspelt block fails here and not at a reader's."""
    documents = [command for command in COMMANDS if command.startswith("python - <<")]
    assert documents
    for document in documents:
        compile(document.split("\n", 1)[1].rsplit("\n", 1)[0], "README.md", "exec")


KINDS = (Keys, SourceKeys, DeclareKeys, ModelKeys, FeedKeys)
EXAMPLES = [(page, text) for page in PAGES_WITH_EXAMPLES for text in readme.shown("yaml", page)]


def wrong(kind: type[BaseModel], values: Any) -> list[str]:
    """What a kind of file says against these values, but that there are more keys in a whole file."""
    try:
        kind.model_validate(values)
    except ValidationError as error:
        return [f"{each['loc']}: {each['msg']}" for each in error.errors() if each["type"] != "missing"]
    return []


@pytest.mark.parametrize(("page", "text"), EXAMPLES, ids=[f"{page} {text.split()[0]}" for page, text in EXAMPLES])
def test_every_yaml_that_a_page_shows_is_taken(page: str, text: str) -> None:
    """It is YAML, and a file, or a part of one, of some kind that the configuration has."""
    found = [wrong(kind, yaml.safe_load(text)) for kind in KINDS]
    assert [] in found, (page, min(found, key=len))


def keys(kind: str) -> set[str]:
    """Every key of a kind of file, at any depth."""
    schema = yamlschema.build(kind)
    return {key for part in (schema, *schema.get("$defs", {}).values()) for key in part.get("properties", {})}


@pytest.mark.parametrize("kind", yamlschema.KINDS)
def test_every_key_is_told_in_code_of_some_page(kind: str) -> None:
    """Or in base.yaml, which is the page of its keys: a key that is not told is found by nobody."""
    texts = [(readme.ROOT / page).read_text(encoding="utf-8") for page in PAGES_WITH_EXAMPLES]
    code = [part for text in texts for part in re.findall(r"```ya?ml\n.*?```|`[^`\n]+`", text, re.DOTALL)]
    told = set(re.findall(r"\w+", "\n".join([*code, (readme.ROOT / "conf/base.yaml").read_text(encoding="utf-8")])))
    assert sorted(keys(kind) - told) == []


PAGES = [*readme.ROOT.glob("*.md"), *(readme.ROOT / "docs").rglob("*.md")]
WRITTEN_BY_THE_READER = {"conf/models/dim_offices.sql", "conf/models/dim_offices.yaml", "conf/sources/shop.yaml"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(readme.ROOT)))
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    """Links of every Markdown page, from where it is, and paths in its text that are no patterns."""
    text = page.read_text(encoding="utf-8")
    in_text = set(re.findall(r"`((?:conf|docs|infra|jobs|replicator|tests)/[\w./-]+)`", text)) - WRITTEN_BY_THE_READER
    paths = {to for to, _ in readme.links(page)} | {readme.ROOT / path for path in in_text}
    assert [str(path) for path in sorted(paths) if not path.exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(readme.ROOT)))
def test_every_heading_that_a_page_links_to_is_there(page: Path) -> None:
    """A renamed heading takes readers to the top of a long page, without a word."""
    told = [(to, anchor) for to, anchor in readme.links(page) if anchor]
    assert [(str(to), anchor) for to, anchor in told if anchor not in readme.headings(to)] == []


def test_a_link_may_lead_to_the_second_heading_of_a_name_and_to_another_site(tmp_path: Path) -> None:
    """The one by a number, as pages are shown; the other is not asked for. A remark in code is no heading."""
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n[b](https://a.org/x#y) [c](#same-1) [d](page.md)\n## Same\n```sh\n# Same\n```\n## Same\n",
        encoding="utf-8",
    )
    assert readme.links(page) == [(page, "same-1"), (page, "")]
    assert readme.headings(page) == {"a", "same", "same-1"}


def test_the_example_of_a_model_is_a_valid_one(tmp_path: Path) -> None:
    """Copied into conf/, it passes `replicator validate`."""
    conf = tmp_path / "conf"
    shutil.copytree(readme.ROOT / "conf", conf)
    for suffix in (".sql", ".yaml"):
        (conf / f"models/dim_offices{suffix}").write_text(
            readme.file(f"conf/models/dim_offices{suffix}"), encoding="utf-8"
        )
    assert "dim_offices" in [model.name for model in settings.load(conf, "local", {}).models]


def test_the_example_of_a_declaration_is_a_valid_one(tmp_path: Path) -> None:
    """Its table and types are understood."""
    path = tmp_path / "declare.yaml"
    path.write_text(readme.file("declare.yaml"), encoding="utf-8")
    [declared] = sourcefile.load_declarations(path)
    assert (declared.table, len(declared.columns)) == ("sales.orders", 3)


def test_the_example_of_a_source_is_a_valid_one(tmp_path: Path) -> None:
    """The part of conf/sources that is shown for a new table."""
    path = tmp_path / "source.yaml"
    path.write_text(readme.file("conf/sources"), encoding="utf-8")
    assert [declared.truncate for declared in sourcefile.load_declarations(path)] == ["fail"]


def test_the_example_of_a_connector_is_a_valid_one(tmp_path: Path) -> None:
    """The source's file of "Connectors", whose password is a reference."""
    path = tmp_path / "source.yaml"
    path.write_text(readme.file("conf/sources/shop.yaml"), encoding="utf-8")
    told = sourcefile.load_declare_file(path).connector
    assert (told.kind, told.tables, told.slot) == ("postgresql", ("sales.orders", "sales.lines"), "shop")


def test_the_types_that_are_named_exist() -> None:
    """Those of the sentence about declared types."""
    sentence = TEXT[TEXT.index("Decimals are declared as") : TEXT.index("A wrong name is refused")]
    types = set(re.findall(r"`([a-z_]+(?:\([\d,]+\))?)`", sentence)) - {"precise"}
    assert len(types) > 10
    for name in types:
        parse_type(name)


def test_the_inputs_of_the_example_are_its_placeholders() -> None:
    """Braces in the SQL are the inputs of the YAML."""
    assert modelfile.placeholders(readme.file("conf/models/dim_offices.sql")) == {"offices"}
