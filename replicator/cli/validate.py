"""``replicator validate``: check the configuration without starting Spark or reaching any service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import endpoint, targets
from replicator.cli import options
from replicator.cli.console import narrate, print_json, print_text
from replicator.config import topicnames
from replicator.config.yamlfile import Problems
from replicator.debezium import known_losses
from replicator.errors import ConfigError

if TYPE_CHECKING:
    from replicator.config.settingkeys import TargetKeys
    from replicator.config.yamlfile import KeyPath
    from replicator.settings import Settings
    from replicator.spec import SourceSpec


def validate(env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None, as_json: options.Json = False) -> None:
    """Check configuration, sources and models; list everything that is wrong, with exit code 2.

    What loses information by nature, because of declared types or connector settings, is listed too.
    """
    settings = options.settings(env, conf)
    problems = Problems()
    _check_targets(settings, problems)
    _check_brokers(settings, problems)
    problems.raise_if_any()
    for source in settings.sources:
        if source.has_no_origin:
            narrate(f"warning: {source.name} has no bootstrap servers: set kafka.bootstrap_servers", style="yellow")
        for table in _excluded_tables(source):
            narrate(f"warning: {source.name} does not read {table}, which its file declares", style="yellow")
    found = _summary(settings)
    if as_json:
        print_json(found)
        return
    for what, values in found.items():
        print_text(f"{what}: {', '.join(values) if values else 'none'}")


def _excluded_tables(source: SourceSpec) -> list[str]:
    """Return the declared tables that ``include`` or ``exclude`` leaves out. Most are misspelled names, whose columns,
    hashes and masks would have no effect.
    """
    return [table for table in source.named if not topicnames.includes_table(source, table)]


def _check_targets(settings: Settings, problems: Problems) -> None:
    """Add a problem for each target whose keys its kind refuses, with its place in the configuration."""
    for name, target in settings.targets.items():
        if wrong := _wrong_target(name, target):
            problems.add(f"targets.{name}: {wrong}", settings.origins.get(("targets", name)))


def _check_brokers(settings: Settings, problems: Problems) -> None:
    """Add a problem for each address of Kafka without a port, with its place in the configuration."""
    shared: KeyPath = ("kafka", "bootstrap_servers")
    places: dict[KeyPath, str] = {("sources", source.name): source.bootstrap_servers for source in settings.sources}
    places |= {("canonical", feed.name): feed.bootstrap_servers for feed in settings.feeds}
    common = settings.kafka.bootstrap_servers
    own = {place: servers for place, servers in places.items() if servers != common}
    for place, servers in {shared: common, **own}.items():
        if servers and (wrong := _wrong_address(servers)):
            problems.add(f"bootstrap_servers: {wrong}", settings.origins.get(place))


def _wrong_address(servers: str) -> str | None:
    try:
        endpoint.parse_addresses(servers, "Kafka", "")
    except ConfigError as error:
        return error.what
    return None


def _wrong_target(name: str, target: TargetKeys) -> str | None:
    try:
        targets.sink(name, target)
    except ConfigError as error:
        return f"{error.what}. {error.fix}" if error.fix else error.what
    return None


def _summary(settings: Settings) -> dict[str, list[str]]:
    return {
        "lake": [settings.lake.root],
        "sources": [source.name for source in settings.sources],
        "models": [model.name for model in settings.models],
        "checks": [f"{model.name}: {check}" for model in settings.models for check in model.checks],
        "targets": list(settings.targets),
        "feeds": [feed.name for feed in settings.feeds],
        "connectors": [source.connector.name for source in settings.sources if source.connector is not None],
        "lossy": [line for source in settings.sources for line in known_losses.describe(source)],
    }
