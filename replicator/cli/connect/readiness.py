"""``replicator connect check``: check that a source is ready to be captured."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from replicator.cli import console, options
from replicator.cli.connect import lookup
from replicator.errors import ConfigError, ReplicatorError

if TYPE_CHECKING:
    from replicator.databases.readiness.finding import Finding
    from replicator.spec import SourceSpec

_COLUMNS = ("source", "state", "what", "table", "found", "how to fix")
_STYLES = {"ok": "green", "advice": "yellow", "fix": "red"}


def check(
    sources: lookup.Sources = None,
    env: options.Env = options.DEFAULT_ENV,
    conf: options.Conf = None,
    as_json: options.Json = False,
) -> None:
    """Check the databases of sources: log, slots, publication, tables and rights. Each problem comes with its fix as
    SQL.

    Nothing is changed. The login is `database` of the source's file. Exit code 1 if something must be fixed. A database
    that does not answer is reported, and the others are checked.
    """
    settings = options.settings(env, conf)
    every = {source.name: source for source in lookup.sources_by_connector(settings, sources).values()}
    found, errors = lookup.ask_each(every, lambda _, source: _findings(source), ReplicatorError)
    if as_json:
        console.print_json([{"source": name, **asdict(each)} for name, findings in found.items() for each in findings])
    else:
        _print(found)
    for name, error in errors.items():
        console.narrate(f"{name}: {error}", style="red")
    codes = {error.exit_code for error in errors.values()}
    if any(each.level == "fix" for findings in found.values() for each in findings):
        codes.add(1)
    lookup.exit_with(codes)


def _findings(source: SourceSpec) -> list[Finding]:
    from replicator.databases.readiness import finding, preflight

    if source.database is None or source.connector is None:
        what = f"no connection to the database of {source.name} is configured"
        raise ConfigError(what, fix="Add a `database` block to the source's file: kind, host, user, password.")
    return finding.apply_declarations(preflight.check(source.database, source.connector), source.tables)


def _print(found: dict[str, list[Finding]]) -> None:
    from rich.text import Text

    rows = [
        (name, Text(each.level, style=_STYLES[each.level]), each.what, each.table, each.message, each.fix)
        for name, findings in found.items()
        for each in findings
    ]
    if rows:
        console.print_table(_COLUMNS, rows)
    for name, findings in found.items():
        count = sum(each.level == "fix" for each in findings)
        console.narrate(f"{name}: {count} to fix" if count else f"{name} is ready to be captured")
