"""Settings -> what reads the lake without Spark. Raises ConfigError for a store that only Spark reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import names, targets
from replicator.catalog.stored import StoredFacts
from replicator.lake import Lake
from replicator.operate.runs import Runs
from replicator.operate.where.direct import DirectSurvey
from replicator.spec import SourceSpec

if TYPE_CHECKING:
    from replicator.catalog.store import Store
    from replicator.settings import Settings


def direct(settings: Settings, store: Store) -> DirectSurvey:
    """What ``status`` looks at where no JVM is needed for it."""
    return DirectSurvey(
        Lake(settings.lake.root),
        store,
        settings.formats,
        {source.name: source for source in settings.sources},
        settings.models,
        {name: targets.sink(name, target, brief=True) for name, target in settings.targets.items()},
    )


def sources(settings: Settings, of: DirectSurvey) -> list[SourceSpec]:
    """Those of the configuration, and what the lake has besides, by name."""
    configured = {source.name: source for source in settings.sources}
    present = map(names.decode, of.tables(of.lake.bronze_root()))
    every = {name: SourceSpec(name, "") for name in present} | configured
    return [every[name] for name in sorted(every)]


def facts(store: Store) -> StoredFacts:
    """The lake's control rows."""
    return StoredFacts(store, store.files())


def runs(settings: Settings, store: Store) -> Runs:
    """The runs of the lake."""
    return Runs(facts(store), Lake(settings.lake.root))
