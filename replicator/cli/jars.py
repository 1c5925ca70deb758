"""``replicator jars``: print the class path for ``spark-submit --jars``."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

from replicator.cli.console import narrate, print_text


class Formats(str, Enum):
    """The table formats that have JARs."""

    delta = "delta"
    hudi = "hudi"


def jars(
    fetch: Annotated[bool, typer.Option("--fetch", help="First download missing JARs.")] = False,
    formats: Annotated[
        Optional[list[Formats]],  # noqa: UP045 - typer reads it at run time
        typer.Option("--format", help="A table format; Delta is always included."),
    ] = None,
) -> None:
    """Print the verified JARs, separated by commas: spark-submit --jars "$(replicator jars)" ..."""
    from replicator import environment, settings
    from replicator import jars as jar_cache
    from replicator.jvm import class_archive, sparkline
    from replicator.jvm.java import java_home

    lock = jar_cache.load_lock(sparkline.installed().name, [each.value for each in formats or ()])
    if fetch:
        java = java_home(environment.variable("JAVA_HOME"))
        paths = jar_cache.fetch(lock, settings.cache_dir(), java=java)
        class_archive.ensure(java, narrate)
    else:
        paths = jar_cache.locate(lock, settings.cache_dir())
    print_text(",".join(map(str, paths)))
