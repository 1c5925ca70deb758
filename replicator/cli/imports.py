"""``replicator import``: convert settings of other tools into source files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from replicator.cli import console
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from replicator.config.hudi_streamer import Translation

app = typer.Typer(name="import", help="Convert settings of other tools into source files.", no_args_is_help=True)


@app.command("hudi-streamer")
def hudi_streamer(
    file: Annotated[Path, typer.Argument(help="The properties file of Hudi's streaming tool.", metavar="FILE")],
    topic: Annotated[
        Optional[str],  # noqa: UP045 - typer on Python 3.10 reads this at run time
        typer.Option("--topic", help="Where the events come from, if the file does not say."),
    ] = None,
) -> None:
    """Print a file for conf/sources; options without an equivalent are listed on stderr."""
    import javaproperties
    import yaml

    from replicator.config import hudi_streamer as tool

    try:
        properties = tool.normalize(javaproperties.loads(_text(file)))
    except ValueError as error:
        what = f"not a properties file: {error}"
        raise ConfigError(what, where=str(file), fix="Escape each literal backslash with another one.") from error
    schema = properties.get(tool.SCHEMA_FILE)
    beside = None if schema is None else _find_file(file.parent, schema)
    found = tool.translate(properties, topic, None if beside is None else _text(beside))
    console.print_text(yaml.safe_dump(dict(found.document), sort_keys=False, allow_unicode=True).rstrip())
    _report(found)


def _report(found: Translation) -> None:
    console.narrate("The environment's file needs `formats: [delta, hudi]`.")
    for name, why in found.same.items():
        console.narrate(f"left out   {name}: {why}")
    for name, why in found.untold.items():
        console.narrate(f"NO EQUIVALENT {name}: {why}", style="yellow")


def _find_file(folder: Path, named: str) -> Path | None:
    """Return the file at its path, or the one of its last name in *folder*; None if neither exists."""
    return next((each for each in (Path(named), folder / named.rsplit("/", 1)[-1]) if each.is_file()), None)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}"
        raise ConfigError(what, where=str(file), fix="Check the path.") from error
    except UnicodeDecodeError as error:
        what = "the file is not UTF-8 text"
        raise ConfigError(
            what, where=str(file), fix="Save it as UTF-8, or name the file that is passed to the tool."
        ) from error
