"""Topics on the command line: finding the cluster of a topic, and reading its records."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from replicator.errors import BadRecording, ConfigError
from replicator.spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    import typer

    from replicator.debezium.event_reader import KafkaRecord
    from replicator.settings import Settings

_FILE_PATTERN = r"[.]{1,2}|[.]{0,2}/.*|.*[.](jsonl|ndjson|gz)"
"""Names that begin like a path or end like a file of events, which no topic or table does."""


def recorded_file(what: str, elsewhere: str | None = None) -> Path | None:
    """Return the named file of recorded events, or a pipe of them; None for a name that may be a topic or a table, as
    any other is with ``elsewhere``, the option that was given and says where such are. Raises ConfigError where the
    name can only be a file, and that option was given or no such file exists (BadRecording).
    """
    path = Path(what)
    if elsewhere is not None:
        if re.fullmatch(_FILE_PATTERN, what):
            raise ConfigError(f"{what} is a file, which needs no {elsewhere}", fix=f"Omit {elsewhere}.")
        return None
    if path.exists() and not path.is_dir():
        return path
    if re.fullmatch(_FILE_PATTERN, what):
        reason = "it is a folder" if path.is_dir() else "the file does not exist"
        raise BadRecording(f"a recorded file cannot be read: {reason}", where=what, fix="Check the path.")
    return None


def settings_of(env: str, conf: Path | None, lake: str | None, brokers: str | None) -> Settings:
    """Return the configuration, or the defaults where a lake or a cluster is given by option."""
    from replicator import settings as configuration

    return configuration.load(conf, env) if lake is None and brokers is None else configuration.bare(lake)


def source_of(settings: Settings, topic: str, brokers: str | None) -> SourceSpec | None:
    """Return the source that reads a topic, or one made up for the topic of a feed or of ``--brokers``; None where the
    configuration does not know the topic.
    """
    if brokers is not None:
        return _ad_hoc_source(topic, brokers, settings)
    found = next((each for each in settings.sources if each.matches(topic)), None)
    if found is not None:
        return replace(found, topics=re.escape(topic))
    feed = next((each for each in settings.feeds if each.topic == topic), None)
    return (
        None if feed is None else replace(_ad_hoc_source(topic, feed.bootstrap_servers, settings), options=feed.options)
    )


def require_source(settings: Settings, topic: str, brokers: str | None) -> SourceSpec:
    """Return the source of a topic; one that no source reads is looked for in the configured cluster. Raises
    ConfigError where there is none.
    """
    servers = settings.kafka.bootstrap_servers
    found = source_of(settings, topic, brokers) or (_ad_hoc_source(topic, servers, settings) if servers else None)
    if found is None:
        fix = "Give --brokers HOST:PORT, or `kafka: {bootstrap_servers: ...}` in the configuration."
        raise ConfigError(f"no source reads {topic!r}, and no Kafka is configured to look for it.", fix=fix)
    return found


def sample_records(
    context: typer.Context, what: str, limit: int, brokers: str | None, env: str, conf: Path | None
) -> Iterator[KafkaRecord]:
    """Return the first ``limit`` records of a file, or the last ``limit`` of each partition of a topic."""
    from replicator.debezium.event_reader import StartingOffset

    file = recorded_file(what, None if brokers is None else "--brokers")
    if file is not None:
        from replicator.sources import kcat_files

        return islice(kcat_files.read_records(file), limit)
    from replicator import session
    from replicator.cli.options import is_debug
    from replicator.sources.consumer import Topic

    settings = settings_of(env, conf, None, brokers)
    source = require_source(settings, what, brokers)
    jvm = session.jvm(settings, debug=is_debug(context))
    return Topic(what, source.bootstrap_servers, source.options).records(jvm, StartingOffset(last=limit), follow=False)


def _ad_hoc_source(topic: str, servers: str, settings: Settings) -> SourceSpec:
    name = topic.split(".", maxsplit=1)[0]
    return SourceSpec(name, re.escape(topic), bootstrap_servers=servers, options=settings.kafka.options)
