"""``replicator doctor``: check that everything is in place that a run needs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import typer

from replicator.cli import options, probes
from replicator.cli.console import print_json, print_table
from replicator.errors import ConfigError, ReplicatorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from replicator.settings import Settings

    Probe = Callable[[], str]


@dataclass(frozen=True)
class Finding:
    """One line of the report; ``fix`` says how to fix it where ``ok`` is false, ``exit_code`` is the resulting exit
    code.
    """

    what: str
    ok: bool
    message: str
    fix: str = ""
    exit_code: int = 0


def doctor(env: options.Env = options.DEFAULT_ENV, conf: options.Conf = None, as_json: options.Json = False) -> None:
    """Check Python, Spark, Java, JARs, configuration, Kafka, Connect, Postgres and the lake.

    Exit code 2 if something is wrong with this installation, else 3 if a service is unreachable.
    """
    findings = list(_findings(env, conf))
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        rows = [(f.what, "ok" if f.ok else "failed", f.message, f.fix) for f in findings]
        print_table(["what", "state", "found", "how to fix"], rows)
    codes = {finding.exit_code for finding in findings} - {0}
    if codes:
        raise typer.Exit(min(codes))


def _findings(env: str, conf: Path | None) -> Iterator[Finding]:
    yield _run_probe("Python", probes.python)
    yield _run_probe("Spark", probes.spark)
    yield _run_probe("Java", probes.java)
    try:
        settings = options.settings(env, conf)
    except ConfigError as error:
        yield _failed("configuration", error)
        return
    yield Finding("configuration", ok=True, message=f"environment {env}")
    for what, probe in _probes(settings):
        yield _run_probe(what, probe)


def _probes(settings: Settings) -> Iterator[tuple[str, Probe]]:
    yield "JARs", partial(probes.jar_cache, settings.cache, settings.formats)
    clusters = {source.bootstrap_servers: source.options for source in settings.sources if not source.objects}
    clusters |= {feed.bootstrap_servers: feed.options for feed in settings.feeds}
    for servers, client in clusters.items():
        yield "Kafka", partial(probes.kafka, servers, client)
    if settings.connect.url:
        yield "Kafka Connect", partial(probes.connect, settings.connect.url, settings.connect.login)
    for name, target in settings.targets.items():
        served = [model for model in settings.models if model.is_served_by(name)]
        yield f"target {name}", partial(probes.target, name, target, served)
    for source in settings.sources:
        if source.objects:
            yield f"objects of {source.name}", partial(probes.objects, source.objects, settings.s3)
    yield "lake", partial(probes.lake, settings.lake.root, settings.s3, leased=settings.lake.lease is not None)


def _run_probe(what: str, probe: Probe) -> Finding:
    try:
        return Finding(what, ok=True, message=probe())
    except ReplicatorError as error:
        return _failed(what, error)


def _failed(what: str, error: ReplicatorError) -> Finding:
    text = f"{error.what} [{error.where}]" if error.where else error.what
    return Finding(what, ok=False, message=text, fix=error.fix or "", exit_code=error.exit_code)
