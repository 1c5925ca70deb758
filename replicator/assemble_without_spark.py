"""Settings -> what reads the lake without Spark. Raises ConfigError for a store that only Spark reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from replicator import names, targets
from replicator.catalog.control_reader import StoredControlReader
from replicator.lake import Lake
from replicator.operate.progress.arrow_survey import ArrowSurvey
from replicator.operate.runs import Runs
from replicator.spec import SourceSpec

if TYPE_CHECKING:
    from replicator.catalog.store import Store
    from replicator.settings import Settings


def arrow_survey(settings: Settings, store: Store) -> ArrowSurvey:
    """What ``status`` looks at where no JVM is needed for it."""
    return ArrowSurvey(
        Lake(settings.lake.root),
        store,
        settings.formats,
        {source.name: source for source in settings.sources},
        settings.models,
        {name: targets.sink(name, target, brief=True) for name, target in settings.targets.items()},
    )


def sources(settings: Settings, of: ArrowSurvey) -> list[SourceSpec]:
    """Those of the configuration, and what the lake has besides, by name."""
    configured = {source.name: source for source in settings.sources}
    present = map(names.decode, of.tables(of.lake.bronze_root()))
    every = {name: SourceSpec(name, "") for name in present} | configured
    return [every[name] for name in sorted(every)]


def control_reader(store: Store) -> StoredControlReader:
    """The lake's control rows."""
    return StoredControlReader(store, store.files())


def runs(settings: Settings, store: Store) -> Runs:
    """The runs of the lake."""
    return Runs(control_reader(store), Lake(settings.lake.root))
