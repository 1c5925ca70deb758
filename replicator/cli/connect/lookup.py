"""Shared by the verbs of ``replicator connect``: the cluster, connectors by name, and the sources that
describe them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional, TypeVar

import typer

from replicator.cli.console import narrate
from replicator.errors import ConfigError, ReplicatorError
from replicator.spelling import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from replicator.connect.responses import ConnectorInfo
    from replicator.connect.rest import Connect
    from replicator.settings import Settings
    from replicator.spec import SourceSpec

Asked = TypeVar("Asked")
Found = TypeVar("Found")
Refusal = TypeVar("Refusal", bound=ReplicatorError)

Connectors = Annotated[list[str], typer.Argument(help="Names of connectors.", metavar="CONNECTOR...")]
AnyConnectors = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer on Python 3.10 reads this at run time
    typer.Argument(help="Only these connectors. Default: all.", metavar="[CONNECTOR]..."),
]
Sources = Annotated[
    Optional[list[str]],  # noqa: UP045 - as above
    typer.Argument(help="Only these sources. Default: all that describe a connector.", metavar="[SOURCE]..."),
]


def cluster(settings: Settings) -> Connect:
    """Return a client of Kafka Connect, which is not contacted yet. Raises ConfigError where none is configured."""
    from replicator.connect.rest import Connect

    if not settings.connect.url:
        raise ConfigError("no Kafka Connect is configured", fix="Set connect.url in the environment's file.")
    return Connect(settings.connect.url, login=settings.connect.login)


def sources_by_connector(settings: Settings, names: Sequence[str] | None) -> dict[str, SourceSpec]:
    """Return the sources whose file describes a connector, by the connector's name; where there is none, print a
    message. Raises ConfigError for an unknown source, and for a named one that describes no connector.
    """
    named = [settings.source(name) for name in names or ()]
    silent = next((source.name for source in named if source.connector is None), None)
    if silent is not None:
        raise ConfigError(f"the source {silent} describes no connector", fix="Add a `connector` block to its file.")
    found: dict[str, SourceSpec] = {}
    for source in named or settings.sources:
        if source.connector is not None:
            found[source.connector.name] = source
    if not found:
        narrate("No source describes a connector: add a `connector` block to its file.", style="yellow")
    return found


def find_connectors(connect: Connect, names: Sequence[str] | None) -> dict[str, ConnectorInfo]:
    """Return the connectors that Kafka Connect has, by name; all of them without names. Raises ConfigError for an
    unknown one.
    """
    every = connect.known()
    for name in names or ():
        if name not in every:
            raise ConfigError(f"Kafka Connect has no connector {name!r}{suggest(name, every)}")
    return {name: every[name] for name in names} if names else every


def ask_each(
    every: Mapping[str, Asked], ask: Callable[[str, Asked], Found], refusal: type[Refusal]
) -> tuple[dict[str, Found], dict[str, Refusal]]:
    """Query each item, and return the results and the errors by name: an error does not keep the others from being
    queried. It is raised where there is only one item.
    """
    found: dict[str, Found] = {}
    errors: dict[str, Refusal] = {}
    for name, each in every.items():
        try:
            found[name] = ask(name, each)
        except refusal as error:  # noqa: PERF203 - the others are queried nevertheless
            errors[name] = error
    if len(every) == len(errors) == 1:
        raise next(iter(errors.values()))
    return found, errors


def exit_with(codes: Collection[int]) -> None:
    """Exit with the lowest of the codes; return where there are none."""
    if codes:
        raise typer.Exit(min(codes))
