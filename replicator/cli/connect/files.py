"""Connectors as the sources' files describe them: ``validate``, ``diff``, ``apply``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from replicator.cli import console, options
from replicator.cli.connect import lookup
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from replicator.connect.differences import Step
    from replicator.connect.reconcile import Outcome
    from replicator.settings import Settings

_Prune = Annotated[bool, typer.Option("--prune", help="Delete Debezium's connectors that no file describes.")]
_PruneAsDifference = Annotated[
    bool, typer.Option("--prune", help="Count Debezium's connectors that no file describes as differences.")
]
_CHANGES = ("connector", "then", "key", "runs", "wanted")


def validate(
    sources: lookup.Sources = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Validate each connector configuration with Kafka Connect, key by key; nothing is created. Exit code 2 if one
    would be refused.

    The plugins try to log in to their databases.
    """
    settings = options.settings(env, conf)
    connect, wanted = lookup.cluster(settings), _wanted_configurations(settings, sources)
    found, errors = lookup.ask_each(wanted, connect.validate, ConfigError)
    if as_json:
        console.print_json([{"connector": name, **asdict(each)} for name, remarks in found.items() for each in remarks])
    else:
        for name in [name for name, remarks in found.items() if not remarks]:
            console.narrate(f"{name}: no problems found")
        rows = [
            (name, "refused" if each.refused else "warning", each.key, each.what, each.fix)
            for name, remarks in found.items()
            for each in remarks
        ]
        if rows:
            console.print_table(("connector", "then", "key", "what is wrong", "how to fix"), rows)
    for name, error in errors.items():
        console.narrate(f"{name}: {error}", style="red")
    if errors or any(each.refused for remarks in found.values() for each in remarks):
        raise typer.Exit(ConfigError.exit_code)


def diff(
    sources: lookup.Sources = None,
    prune: _PruneAsDifference = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Show how the running connectors differ from the files; exit code 1 if they do."""
    todo = _steps(options.settings(env, conf), sources, prune=prune)
    _print_steps(todo, as_json=as_json)
    if _has_changes(todo):
        raise typer.Exit(1)


def apply(
    sources: lookup.Sources = None,
    prune: _Prune = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change and change nothing.")] = False,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Create the connectors of the files that do not exist, and update those that differ.

    A paused or stopped connector stays paused or stopped. Exit code 2 if a configuration is refused, 1 if a connector
    fails; the others are processed.
    """
    settings = options.settings(env, conf)
    todo = _steps(settings, sources, prune=prune)
    if dry_run or not as_json:
        _print_steps(todo, as_json=as_json)
    if dry_run:
        return
    outcomes = _reconcile(settings, sources, todo)
    if as_json:
        console.print_json([_outcome(each) for each in outcomes])
    codes = {each.error.exit_code for each in outcomes if each.error is not None}
    if codes:
        raise typer.Exit(min(codes))


def _wanted_configurations(settings: Settings, sources: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """Return the configuration of each described connector, by its name."""
    from replicator.connect.configuration import configuration

    found = lookup.sources_by_connector(settings, sources)
    return {name: configuration(source.connector) for name, source in found.items() if source.connector is not None}


def _steps(settings: Settings, sources: Sequence[str] | None, *, prune: bool) -> list[Step]:
    from replicator.connect.reconcile import plan

    if prune and sources:
        raise ConfigError("--prune applies to all sources", fix="Omit the names of sources.")
    wanted = _wanted_configurations(settings, sources)
    found = plan(lookup.cluster(settings), wanted, prune=prune)
    return [step for step in found if step.connector in wanted] if sources else found


def _reconcile(settings: Settings, sources: Sequence[str] | None, todo: Iterable[Step]) -> list[Outcome]:
    from replicator.connect.reconcile import reconcile

    outcomes, wanted = [], _wanted_configurations(settings, sources)
    for outcome in reconcile(lookup.cluster(settings), wanted, todo):
        for each in outcome.idle:
            message = f"{outcome.step.connector}: {each.key}: {each.what}"
            console.narrate(f"{message}. {each.fix}" if each.fix else message, style="yellow")
        if outcome.error is not None:
            console.narrate(f"{outcome.step.connector}: {outcome.error}", style="red")
        elif outcome.step.action != "foreign":
            console.narrate(f"{outcome.step.connector}: {outcome.state or 'deleted, with its offsets kept'}")
        outcomes.append(outcome)
    return outcomes


def _has_changes(todo: Iterable[Step]) -> bool:
    return any(step.action in ("create", "update", "delete") for step in todo)


def _print_steps(todo: Sequence[Step], *, as_json: bool) -> None:
    if as_json:
        console.print_json([asdict(step) for step in todo])
        return
    rows = [
        (step.connector, step.action, change.key, change.runs or "", change.wanted or "")
        for step in todo
        for change in step.changes
    ]
    rows += [(step.connector, step.action, "", "", "") for step in todo if step.action == "delete"]
    if rows:
        console.print_table(_CHANGES, rows)
    for step in todo:
        if step.action == "unchanged":
            console.narrate(f"{step.connector} matches its file")
        elif step.action == "foreign":
            console.narrate(f"{step.connector} is not described by a file, and is left unchanged")


def _outcome(outcome: Outcome) -> Mapping[str, object]:
    error = None if outcome.error is None else str(outcome.error)
    idle = [{"key": each.key, "fix": each.fix} for each in outcome.idle]
    return {**asdict(outcome.step), "state": outcome.state, "error": error, "no_effect": idle}
